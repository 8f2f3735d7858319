// The parts that pictures are drawn of.
#ifndef WINDLASS_LIB_REPORT_SVG_H
#define WINDLASS_LIB_REPORT_SVG_H

#include "llvm/ADT/StringRef.h"

#include <string>

namespace windlass::report {

/// The width of a picture, the part of it left of what is drawn, for names, and the margin on the right.
constexpr double kWidth = 1040, kLeft = 230, kRight = 16;

/// Returns a value, or 0 where it is not finite.
double orZero(double value);

/// Opens a picture, which scrolls where the page is narrower.
std::string openSvg(double width, double height, llvm::StringRef title);

std::string rectangle(size_t colour, double x, double y, double width, double height);
std::string gridLine(double x1, double y1, double x2, double y2);
/// Returns words at a point; `anchor` is start, middle or end.
std::string text(double x, double y, llvm::StringRef anchor, llvm::StringRef words);

} // namespace windlass::report

#endif
