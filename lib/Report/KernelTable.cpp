#include "KernelTable.h"

#include "windlass/Support/Markup.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>

using namespace windlass;
using namespace windlass::report;

/// The most kernels that have a row of their own.
static constexpr size_t kMostRows = 20;

/// Returns a cell with `amount / seconds`, empty where one of them is unknown.
static std::string writeRate(double amount, double seconds, double unit, llvm::StringRef suffix = "") {
  std::string text;
  if (amount > 0 && seconds > 0)
    text = llvm::formatv("{0:f1}{1}", amount / seconds / unit, suffix);
  return "<td class=\"number\">" + text + "</td>";
}

static std::string writeRow(const Run &run, const Kernel &kernel) {
  double steps = std::max(1.0, run.kernelSteps), whole = std::max(run.kernelSeconds, 1e-12);
  std::string row = llvm::formatv(
      "<tr><td>{0}</td><td class=\"sizes\">{1}</td><td class=\"number\">{2:f1}</td><td class=\"number\">{3:f3}</td>"
      "<td class=\"number\">{4:f1} %</td>",
      escapeMarkup(kernel.name), escapeMarkup(kernel.sizes), kernel.calls / steps, 1e3 * kernel.seconds / steps,
      100 * kernel.seconds / whole);
  return row + writeRate(kernel.flops, kernel.seconds, 1e9) + writeRate(kernel.bytes, kernel.seconds, 1e9) +
         writeRate(kernel.roofSeconds, kernel.seconds, 0.01, " %") + "</tr>\n";
}

std::string report::writeKernels(const Run &run) {
  if (run.kernels.empty())
    return "<p class=\"none\">Not recorded: train with --profile.</p>\n";
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>kernel</th><th>sizes</th><th>calls per step"
                     "</th><th>ms per step</th><th>share</th><th>GFLOP/s</th><th>GB/s</th><th>of the roof</th></tr>\n";
  size_t own = std::min(run.kernels.size(), kMostRows);
  for (const Kernel &kernel : llvm::ArrayRef(run.kernels).take_front(own))
    html += writeRow(run, kernel);
  if (own < run.kernels.size()) {
    Kernel rest = {"all others", "", 0, 0};
    for (const Kernel &kernel : llvm::ArrayRef(run.kernels).drop_front(own)) {
      rest.calls += kernel.calls;
      rest.seconds += kernel.seconds;
      rest.flops += kernel.flops;
      rest.bytes += kernel.bytes;
      rest.roofSeconds += kernel.roofSeconds;
    }
    html += writeRow(run, rest);
  }
  return html + "</table></div>\n";
}
