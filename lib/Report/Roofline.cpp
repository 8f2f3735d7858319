#include "Roofline.h"

#include "Html.h"
#include "Svg.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

namespace {

constexpr double kPictureWidth = 720, kPictureHeight = 320, kNames = 64, kTop = 12, kRightMargin = 20, kBelow = 34;
/// The powers of ten that are drawn at most, on each axis: beyond them numbers are absurd.
constexpr double kLeastPower = -6, kMostPower = 18;
/// The radius of a dot that stands for all of the time, and of the smallest one.
constexpr double kLargestDot = 24, kSmallestDot = 2.5;

/// A kernel by the powers of ten of operations per byte and operations per second.
struct Dot {
  double intensity, rate, share;
  size_t colour;
};

/// Powers of ten from one whole number to another.
struct Decades {
  double low = kMostPower, high = kLeastPower;
  void add(double power) {
    low = std::min(low, std::floor(power));
    high = std::max(high, std::ceil(power));
  }
  /// Returns where a power lies, from 0 to 1.
  double place(double power) const { return (power - low) / (high - low); }
};

bool isDrawn(double power) { return power > kLeastPower && power < kMostPower; }

/// Returns the kernels that compute, the longest first, and the names that have a colour of their own.
std::vector<Dot> placeDots(const Run &run, std::vector<std::string> &names) {
  std::vector<Dot> dots;
  for (const Kernel &kernel : run.kernels) {
    if (kernel.flops <= 0 || kernel.bytes <= 0 || kernel.seconds <= 0)
      continue;
    Dot dot = {std::log10(kernel.flops / kernel.bytes), std::log10(kernel.flops / kernel.seconds),
               kernel.seconds / std::max(run.kernelSeconds, kernel.seconds), 0};
    if (!isDrawn(dot.intensity) || !isDrawn(dot.rate))
      continue;
    dot.colour = static_cast<size_t>(llvm::find(names, kernel.name) - names.begin());
    if (dot.colour == names.size() && names.size() < kColours)
      names.push_back(names.size() + 1 < kColours ? kernel.name : "others");
    dot.colour = std::min(dot.colour, kColours - 1);
    dots.push_back(dot);
  }
  return dots;
}

} // namespace

std::string report::drawRoofline(const Run &run) {
  std::vector<std::string> names;
  std::vector<Dot> dots = placeDots(run, names);
  double peak = std::log10(run.flopsRate), ridge = peak - std::log10(run.bytesRate);
  if (dots.empty() || !isDrawn(peak) || !isDrawn(ridge))
    return "";
  Decades x, y;
  x.add(ridge);
  y.add(peak);
  for (const Dot &dot : dots) {
    x.add(dot.intensity);
    y.add(dot.rate);
  }
  // A decade on each side of the ridge, so that both roofs are seen.
  x.add(ridge - 1);
  x.add(ridge + 1);
  y.add(peak - 1);
  double bottom = kPictureHeight - kBelow;
  auto atX = [&](double power) { return kNames + x.place(power) * (kPictureWidth - kNames - kRightMargin); };
  auto atY = [&](double power) { return bottom - y.place(power) * (bottom - kTop); };
  std::string svg = openSvg(kPictureWidth, kPictureHeight, "Kernels against the machine's roofline");
  for (double power = x.low; power <= x.high; ++power)
    svg += gridLine(atX(power), kTop, atX(power), bottom) +
           text(atX(power), bottom + 16, "middle", shortNumber(std::pow(10, power)));
  svg += text(kPictureWidth - kRightMargin, kPictureHeight - 3, "end", "operations per byte of memory");
  for (double power = y.low; power <= y.high; ++power)
    svg += gridLine(kNames, atY(power), kPictureWidth - kRightMargin, atY(power)) +
           text(kNames - 6, atY(power) + 4, "end", shortNumber(std::pow(10, power - 9)));
  svg += text(kNames + 4, kTop + 10, "start", "GFLOP/s");
  // The roof rises with memory up to the ridge; it begins where it leaves the picture's lower or left end.
  double begin = std::max(x.low, ridge - (peak - y.low));
  svg += llvm::formatv("<polyline class=\"roof\" points=\"{0},{1} {2},{3} {4},{3}\"/>\n", coordinate(atX(begin)),
                       coordinate(atY(peak - (ridge - begin))), coordinate(atX(ridge)), coordinate(atY(peak)),
                       coordinate(atX(x.high)));
  for (const Dot &dot : dots)
    svg += llvm::formatv("<circle class=\"dot s{0}\" cx=\"{1}\" cy=\"{2}\" r=\"{3}\"/>\n", dot.colour,
                         coordinate(atX(dot.intensity)), coordinate(atY(dot.rate)),
                         coordinate(std::max(kSmallestDot, kLargestDot * std::sqrt(dot.share))));
  svg += "</svg><figcaption>";
  for (auto [colour, name] : llvm::enumerate(names))
    svg += writeKey(colour, name);
  return svg + "</figcaption></figure>\n<p>The line is the roof: " + shortNumber(run.bytesRate / 1e9) +
         " GB/s of memory, then " + shortNumber(run.flopsRate / 1e9) +
         " GFLOP/s. A dot's area stands for its share of the time; dots above the roof take their operands from "
         "caches.</p>\n";
}
