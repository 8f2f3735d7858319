// What all pages share: their head and style, tables, keys and numbers in SVG.
#ifndef WINDLASS_LIB_REPORT_HTML_H
#define WINDLASS_LIB_REPORT_HTML_H

#include "windlass/Report/Run.h"

#include "llvm/ADT/StringRef.h"

namespace windlass::report {

/// The colours that a picture has, as classes `s0` to `s7`.
constexpr size_t kColours = 8;

/// Returns a page's HTML up to its body: it may load nothing, whatever text is in it. Wide pages take more of a screen.
std::string openPage(llvm::StringRef title, bool isWide = false);
/// Returns the end of a page.
std::string closePage();

/// Returns what heads a row of a table; a row that goes on with the one above has no name.
std::string writeRowHeader(llvm::StringRef name);
/// Returns a table of two columns.
std::string writeTable(const Facts &facts);

/// Returns what says that a colour stands for `name`, as an entry of a legend.
std::string writeKey(size_t colour, llvm::StringRef name);

/// Returns a coordinate as text.
std::string coordinate(double value);

/// Returns a number in four digits, with k, M or G where it is large.
std::string shortNumber(double value);

/// Returns 1, 2 or 5 times a power of ten, such that about `count` steps of it make `span`, which is above 0.
double roundStep(double span, int count);

} // namespace windlass::report

#endif
