#include "windlass/Report/PlanPage.h"

#include "Html.h"
#include "Svg.h"

#include "windlass/Report/Page.h"
#include "windlass/Support/Markup.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>

using namespace windlass;
using namespace windlass::report;

namespace {

constexpr double kGap = 6, kMemoryHeight = 300, kMemoryLeft = 76, kTop = 14, kBottom = 34;
/// The most moments and devices that are drawn: more cannot be told apart.
constexpr size_t kMostMoments = 900, kMostDevices = 256, kMostStages = 64;

std::string writeShares(const PlanPage &page) {
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>stream</th>";
  for (const std::string &name : page.windows)
    html += "<th>" + escapeMarkup(name) + "</th>";
  html += "<th>idle</th></tr>\n";
  for (const auto &[name, shares] : llvm::ArrayRef(page.shares).take_front(kMostLanes)) {
    double idle = 1;
    html += "<tr><th>" + escapeMarkup(name) + "</th>";
    for (double share : shares) {
      idle -= orZero(share);
      html += llvm::formatv("<td class=\"number\">{0:f1} %</td>", 100 * orZero(share));
    }
    html += llvm::formatv("<td class=\"number\">{0:f1} %</td></tr>\n", std::max(0.0, 100 * idle));
  }
  return page.shares.empty() ? "" : html + "</table></div>\n";
}

/// Chooses at most kMostMoments moments: of neighbours the one at which the layers are highest.
std::vector<size_t> chooseMoments(const std::vector<Layer> &layers, size_t count) {
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

std::string drawMemory(const PlanPage &page) {
  size_t count = SIZE_MAX;
  for (const Layer &layer : page.memory)
    count = std::min(count, layer.values.size());
  if (page.memory.empty() || count == 0)
    return "<p class=\"none\">The device holds nothing.</p>\n";
  std::vector<size_t> moments = chooseMoments(page.memory, count);
  std::vector<double> below(moments.size());
  std::vector<std::vector<double>> tops;
  double most = 0;
  for (const Layer &layer : page.memory) {
    for (auto [i, moment] : llvm::enumerate(moments)) {
      below[i] += std::max(0.0, orZero(layer.values[moment]));
      most = std::max(most, below[i]);
    }
    tops.push_back(below);
  }
  if (most <= 0)
    return "<p class=\"none\">The device holds nothing.</p>\n";
  double span = kWidth - kMemoryLeft - kRight, room = kMemoryHeight - kTop - kBottom, bottom = kMemoryHeight - kBottom;
  auto atX = [&](size_t moment) {
    return kMemoryLeft + span * static_cast<double>(moment) / static_cast<double>(count);
  };
  auto atY = [&](double bytes) { return bottom - room * bytes / most; };
  std::string svg = openSvg(kWidth, kMemoryHeight, "Device memory over the commands of a step");
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
    svg += gridLine(kMemoryLeft, atY(bytes), kWidth - kRight, atY(bytes)) +
           text(kMemoryLeft - 6, atY(bytes) + 4, "end", formatBytes(static_cast<int64_t>(bytes)));
  double free = 0;
  for (const auto &[name, first] : page.functions) {
    double x = atX(std::min(first, count));
    svg += gridLine(x, kTop, x, bottom);
    if (x < free)
      continue;
    svg += text(x + 3, bottom + 16, "start", name);
    free = x + 8 * static_cast<double>(name.size());
  }
  svg += "</svg><figcaption>";
  for (auto [index, layer] : llvm::enumerate(page.memory)) {
    double largest = 0;
    for (double value : layer.values)
      largest = std::max(largest, orZero(value));
    svg += writeKey(index, layer.name + " " + formatBytes(static_cast<int64_t>(largest)));
  }
  svg += "</figcaption></figure>\n";
  return svg + "<p>At most " + formatBytes(static_cast<int64_t>(most)) + " of " + formatBytes(page.memoryLimit) +
         ", command after command; each name has the most that its part takes.</p>\n";
}

/// Draws the devices of each stage as a grid, rows and columns by mesh axes.
std::string drawMesh(const PlanPage &page) {
  constexpr double kCell = 15;
  std::string svg;
  double y = kTop, width = 0;
  size_t shown = std::min(page.stages.size(), kMostStages);
  for (size_t i = 0; i < shown; ++i) {
    const Stage &stage = page.stages[i];
    int64_t columns = 1, rows = 1;
    std::string axes;
    for (auto [index, axis] : llvm::enumerate(stage.axes)) {
      (index + 1 < stage.axes.size() ? rows : columns) *= axis.second;
      axes += (axes.empty() ? "" : " × ") + axis.first + " " + std::to_string(axis.second);
    }
    svg += text(kLeft - 8, y + 11, "end", stage.name);
    double x = kLeft;
    if (rows <= int64_t(kMostDevices) && columns <= int64_t(kMostDevices) && rows * columns <= int64_t(kMostDevices)) {
      // Lines of up to 64 devices.
      int64_t perLine = std::max<int64_t>(1, 64 / columns) * columns, all = rows * columns;
      for (int64_t device = 0; device < all; ++device)
        svg += rectangle(i,
                         kLeft + static_cast<double>(device % perLine) * kCell +
                             3 * static_cast<double>(device % perLine / columns),
                         y + static_cast<double>(device / perLine) * kCell, kCell - 2, kCell - 2);
      int64_t longest = std::min(all, perLine);
      x += static_cast<double>(longest) * kCell + 3 * static_cast<double>(longest / columns);
      y += kCell * static_cast<double>((all - 1) / perLine);
    }
    std::string words = axes.empty() ? "one device" : axes;
    svg += text(x + 8, y + 11, "start", words);
    width = std::max(width, x + 8 + 7 * static_cast<double>(words.size()));
    y += kCell + kGap;
  }
  std::string html =
      openSvg(std::max(kWidth, width), y, "The devices by stage and mesh axes") + svg + "</svg></figure>\n";
  if (shown < page.stages.size())
    html += llvm::formatv("<p class=\"none\">{0} more stages are not drawn.</p>\n", page.stages.size() - shown);
  return html;
}

std::string writeRows(const PlanPage &page) {
  if (page.rows.empty())
    return "<p class=\"none\">One rank computes everything.</p>\n";
  std::vector<std::string> axes;
  for (const Stage &stage : page.stages)
    for (const auto &[name, size] : stage.axes)
      if (!llvm::is_contained(axes, name))
        axes.push_back(name);
  std::string html = "<div class=\"scroll\" tabindex=\"0\"><table>\n<tr><th>operators</th><th>number</th><th>split</th>"
                     "<th>weight between steps</th></tr>\n";
  for (const SplitRow &row : page.rows) {
    html += llvm::formatv("<tr><td>{0}</td><td class=\"number\">{1}</td><td class=\"split\">",
                          escapeMarkup(row.operators), row.count);
    for (const auto &[factor, its] : row.splits) {
      auto colour = static_cast<size_t>(its.empty() ? 0 : llvm::find(axes, its.front()) - axes.begin());
      html += llvm::formatv("<span class=\"chip s{0}\">{1}: {2}</span> ", colour % kColours, escapeMarkup(factor),
                            escapeMarkup(llvm::join(its, "+")));
    }
    html += (row.splits.empty() ? "whole" : "") + std::string("</td><td>") + escapeMarkup(row.weight) + "</td></tr>\n";
  }
  html += "</table></div>\n";
  if (page.moreRows > 0)
    html += llvm::formatv("<p class=\"none\">and {0} more</p>\n", page.moreRows);
  return html;
}

} // namespace

std::string report::writePlanPage(const PlanPage &page) {
  return openPage(page.title + " – Windlass plan", /*isWide=*/true) + "<h1>" + escapeMarkup(page.title) +
         "</h1>\n<p>A plan for training it.</p>\n" + writeTable(page.facts) + "<h2>Devices</h2>\n" + drawMesh(page) +
         "<h2>How operators are split</h2>\n" + writeRows(page) + "<h2>Predicted step</h2>\n" +
         drawTimeline(page.timeline) + writeShares(page) + "<h2>Memory of a device</h2>\n" + drawMemory(page) +
         closePage();
}
