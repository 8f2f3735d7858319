#include "Table.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/Format.h"

using namespace windlass;

bool windlass::printTable(llvm::ArrayRef<llvm::StringRef> titles, llvm::ArrayRef<TableRow> rows, llvm::raw_ostream &out,
                          llvm::raw_ostream &errors) {
  auto textOf = [](const Cell &cell) { return cell.isReason ? "(" + cell.text + ")" : cell.text; };
  bool isComplete = true;
  std::vector<size_t> widths;
  for (llvm::StringRef title : titles)
    widths.push_back(title.size());
  for (const TableRow &row : rows) {
    widths[0] = std::max(widths[0], row.name.size());
    for (auto [column, cell] : llvm::enumerate(row.cells)) {
      widths[column + 1] = std::max(widths[column + 1], textOf(cell).size());
      if (cell.text.empty()) {
        errors << row.name << " has nothing for " << titles[column + 1] << " and no reason\n";
        isComplete = false;
      }
    }
  }
  for (auto [title, width] : llvm::zip_equal(titles, widths))
    out << "| " << llvm::left_justify(title, width) << ' ';
  out << "|\n";
  for (const TableRow &row : rows) {
    out << "| " << llvm::left_justify(row.name, widths[0]);
    for (auto [column, cell] : llvm::enumerate(row.cells))
      out << " | " << llvm::left_justify(textOf(cell), widths[column + 1]);
    out << " |\n";
  }
  return isComplete;
}
