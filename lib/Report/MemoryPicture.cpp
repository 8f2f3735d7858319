#include "windlass/Report/MemoryPicture.h"

#include "Html.h"
#include "Svg.h"

#include "windlass/Report/Page.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

constexpr double kHeight = 300, kNames = 76, kTop = 14, kBottom = 34;
/// The most moments that are drawn: more cannot be told apart.
constexpr size_t kMostMoments = 900;

/// Chooses at most kMostMoments moments: of neighbours the one at which the layers are highest.
static std::vector<size_t> chooseMoments(const std::vector<Layer> &layers, size_t count) {
  auto heightAt = [&](size_t i) {
    double sum = 0;
    for (const Layer &layer : layers)
      sum += orZero(layer.values[i]);
    return sum;
  };
  size_t group = (count + kMostMoments - 1) / kMostMoments;
  std::vector<size_t> chosen;
  for (size_t i = 0; i < count; i += group) {
    size_t best = i;
    for (size_t j = i + 1; j < std::min(count, i + group); ++j)
      if (heightAt(j) > heightAt(best))
        best = j;
    chosen.push_back(best);
  }
  return chosen;
}

std::string report::drawMemory(const MemoryPicture &picture) {
  size_t count = SIZE_MAX;
  for (const Layer &layer : picture.layers)
    count = std::min(count, layer.values.size());
  if (picture.layers.empty() || count == 0)
    return "<p class=\"none\">The device holds nothing.</p>\n";
  std::vector<size_t> moments = chooseMoments(picture.layers, count);
  std::vector<double> below(moments.size());
  std::vector<std::vector<double>> tops;
  double most = 0;
  for (const Layer &layer : picture.layers) {
    for (auto [i, moment] : llvm::enumerate(moments)) {
      below[i] += std::max(0.0, orZero(layer.values[moment]));
      most = std::max(most, below[i]);
    }
    tops.push_back(below);
  }
  if (most <= 0)
    return "<p class=\"none\">The device holds nothing.</p>\n";
  double span = kWidth - kNames - kRight, room = kHeight - kTop - kBottom, bottom = kHeight - kBottom;
  auto atX = [&](size_t moment) { return kNames + span * static_cast<double>(moment) / static_cast<double>(count); };
  auto atY = [&](double bytes) { return bottom - room * bytes / most; };
  std::string svg = openSvg(kWidth, kHeight, "Device memory over the commands of a step");
  for (size_t layer = tops.size(); layer-- > 0;) {
    // An area from the axis to the layer's top; the layers below are drawn over it.
    std::string points = coordinate(atX(0)) + "," + coordinate(bottom);
    for (size_t i = 0; i < moments.size(); ++i) {
      size_t end = i + 1 < moments.size() ? moments[i + 1] : count;
      std::string y = coordinate(atY(tops[layer][i]));
      points += " " + coordinate(atX(i == 0 ? 0 : moments[i])) + "," + y + " " + coordinate(atX(end)) + "," + y;
    }
    svg += llvm::formatv("<polygon class=\"part s{0}\" points=\"{1} {2},{3}\"/>\n", layer % kColours, points,
                         coordinate(atX(count)), coordinate(bottom));
  }
  double step = std::exp2(std::floor(std::log2(most / 4)));
  for (double bytes = 0; bytes <= most; bytes += step)
    svg += gridLine(kNames, atY(bytes), kWidth - kRight, atY(bytes)) +
           text(kNames - 6, atY(bytes) + 4, "end", formatBytes(static_cast<int64_t>(bytes)));
  double free = 0;
  for (const auto &[name, first] : picture.functions) {
    double x = atX(std::min(first, count));
    svg += gridLine(x, kTop, x, bottom);
    if (x < free)
      continue;
    svg += text(x + 3, bottom + 16, "start", name);
    free = x + 8 * static_cast<double>(name.size());
  }
  svg += "</svg><figcaption>";
  for (auto [index, layer] : llvm::enumerate(picture.layers)) {
    double largest = 0;
    for (double value : layer.values)
      largest = std::max(largest, orZero(value));
    svg += writeKey(index, layer.name + " " + formatBytes(static_cast<int64_t>(largest)));
  }
  svg += "</figcaption></figure>\n";
  return svg + "<p>At most " + formatBytes(static_cast<int64_t>(most)) +
         (picture.limit > 0 ? " of " + formatBytes(picture.limit) : "") +
         ", command after command; each name has the most that its part takes.</p>\n";
}
