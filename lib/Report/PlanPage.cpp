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

constexpr double kGap = 6, kTop = 14;
/// The most devices and stages that are drawn: more cannot be told apart.
constexpr size_t kMostDevices = 256, kMostStages = 64;

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
         drawTimeline(page.timeline) + writeShares(page) + "<h2>Memory of a device</h2>\n" + drawMemory(page.memory) +
         closePage();
}
