#include "Svg.h"

#include "Html.h"

#include "windlass/Support/Markup.h"

#include "llvm/Support/FormatVariadic.h"

#include <cmath>

using namespace windlass;

double report::orZero(double value) { return std::isfinite(value) ? value : 0; }

std::string report::openSvg(double width, double height, llvm::StringRef title) {
  return llvm::formatv(
      "<figure class=\"scroll\" tabindex=\"0\"><svg viewBox=\"0 0 {0} {1}\" role=\"img\"><title>{2}</title>\n",
      coordinate(width), coordinate(height), escapeMarkup(title));
}

std::string report::rectangle(size_t colour, double x, double y, double width, double height) {
  return llvm::formatv("<rect class=\"part s{0}\" x=\"{1}\" y=\"{2}\" width=\"{3}\" height=\"{4}\"/>\n",
                       colour % kColours, coordinate(x), coordinate(y), coordinate(width), coordinate(height));
}

std::string report::gridLine(double x1, double y1, double x2, double y2) {
  return llvm::formatv("<line class=\"grid\" x1=\"{0}\" y1=\"{1}\" x2=\"{2}\" y2=\"{3}\"/>", coordinate(x1),
                       coordinate(y1), coordinate(x2), coordinate(y2));
}

std::string report::text(double x, double y, llvm::StringRef anchor, llvm::StringRef words) {
  return llvm::formatv("<text x=\"{0}\" y=\"{1}\" text-anchor=\"{2}\">{3}</text>\n", coordinate(x), coordinate(y),
                       anchor, escapeMarkup(words));
}
