#include "Html.h"

#include "windlass/Support/Markup.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>
#include <cstdio>

using namespace windlass;
using namespace windlass::report;

static constexpr char kHead[] = R"(<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
)";

static constexpr char kStyle[] = R"(<style>
:root { color-scheme: light dark; --line: #8884; --c0: #1f6fb4; --c1: #d1670f; --c2: #2d8a4e; --c3: #8a4fb0; --c4: #888; --c5: #b03a5b;
  --c6: #1c8a8a; --c7: #9a7b12; }
@media (prefers-color-scheme: dark) { :root { --c0: #6cb2eb; --c1: #f0a35e; --c2: #6fcf97; --c3: #c39bd9; --c4: #aaa; --c5: #ef8fa8;
  --c6: #67d0d0; --c7: #d9bd5c; } }
body { font: 15px/1.45 system-ui, sans-serif; max-width: 760px; margin: 2em auto; padding: 0 1em; } body.wide { max-width: 1120px; }
h1 { font-size: 1.5em; margin-bottom: 0; } h2 { font-size: 1.1em; margin: 1.8em 0 .4em; }
table { border-collapse: collapse; } td, th { padding: .2em 1em .2em 0; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th { font-weight: 500; white-space: nowrap; } tr { border-bottom: 1px solid var(--line); } td.number { text-align: right; } td.number, td.sizes, td.split { white-space: nowrap; }
figure { margin: 0; } svg { width: 100%; height: auto; } svg text { font-size: 11px; fill: currentColor; }
.grid { stroke: var(--line); } .line { fill: none; stroke-width: 1.6; } .none { opacity: .7; }
.scroll { overflow-x: auto; } .scroll svg { min-width: 680px; } .scroll td, .scroll th { overflow-wrap: normal; }
.s0 { --c: var(--c0); } .s1 { --c: var(--c1); } .s2 { --c: var(--c2); } .s3 { --c: var(--c3); }
.s4 { --c: var(--c4); } .s5 { --c: var(--c5); } .s6 { --c: var(--c6); } .s7 { --c: var(--c7); }
.line { stroke: var(--c); } .roof { fill: none; stroke: currentColor; stroke-width: 1.6; } .dot, .part { fill: var(--c); } .key::before { content: "■ "; color: var(--c); }
.chip { border: 1px solid var(--c); border-left-width: .5em; padding: 0 .35em; margin-right: .3em; white-space: nowrap; }
</style>
)";

std::string report::openPage(llvm::StringRef title, bool isWide) {
  return std::string(kHead) + "<title>" + escapeMarkup(title) + "</title>\n" + kStyle + "</head><body" +
         (isWide ? " class=\"wide\"" : "") + "><main>\n";
}

std::string report::closePage() { return "</main></body></html>\n"; }

std::string report::writeRowHeader(llvm::StringRef name) {
  return name.empty() ? "<td></td>" : "<th>" + escapeMarkup(name) + "</th>";
}

std::string report::writeTable(const Facts &facts) {
  std::string html = "<table>\n";
  for (const auto &[name, value] : facts)
    html += "<tr>" + writeRowHeader(name) + "<td>" + escapeMarkup(value) + "</td></tr>\n";
  return html + "</table>\n";
}

std::string report::writeKey(size_t colour, llvm::StringRef name) {
  return llvm::formatv("<span class=\"key s{0}\">{1}</span> ", colour % kColours, escapeMarkup(name));
}

std::string report::coordinate(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

std::string report::shortNumber(double value) {
  double size = std::abs(value);
  const char *unit = size >= 1e10 ? "G" : size >= 1e7 ? "M" : size >= 1e4 ? "k" : "";
  char text[32];
  std::snprintf(text, sizeof text, "%.4g%s", value / (*unit == 'G' ? 1e9 : *unit == 'M' ? 1e6 : *unit ? 1e3 : 1), unit);
  return text;
}

double report::roundStep(double span, int count) {
  double raw = span / count, power = std::pow(10, std::floor(std::log10(raw)));
  for (double factor : {1.0, 2.0, 5.0})
    if (raw <= factor * power)
      return factor * power;
  return 10 * power;
}
