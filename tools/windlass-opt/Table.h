// Tables of the compiler's facts, with a row for each thing and no cell empty without a reason.
#ifndef WINDLASS_TOOLS_WINDLASS_OPT_TABLE_H
#define WINDLASS_TOOLS_WINDLASS_OPT_TABLE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/Support/raw_ostream.h"

#include <string>
#include <vector>

namespace windlass {

/// A cell: what the thing has, or why it has nothing.
struct Cell {
  std::string text;
  bool isReason = false;
};

struct TableRow {
  std::string name;
  std::vector<Cell> cells;
};

/// Prints the rows with a title over each column, the first of them over the names. Reasons stand in parentheses.
/// False, with a line in `errors` for each, where a cell is empty.
bool printTable(llvm::ArrayRef<llvm::StringRef> titles, llvm::ArrayRef<TableRow> rows, llvm::raw_ostream &out,
                llvm::raw_ostream &errors);

} // namespace windlass

#endif
