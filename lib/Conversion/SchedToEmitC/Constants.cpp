#include "Constants.h"

#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace windlass;

/// Returns the definition of a table with the bits of a constant's elements.
static std::vector<std::string> tableOf(Attribute constant, llvm::StringRef name) {
  constexpr size_t kMostColumns = 100;
  auto elements = cast<DenseElementsAttr>(constant);
  unsigned bytes = std::max(1u, elements.getElementType().getIntOrFloatBitWidth() / 8);
  std::vector<std::string> lines = {"constexpr std::uint" + std::to_string(8 * bytes) + "_t " + name.str() + "[] = {"};
  std::string line;
  auto add = [&](const llvm::APInt &bits) {
    line += (line.empty() ? "    0x" : ", 0x") + llvm::utohexstr(bits.getZExtValue(), /*LowerCase=*/true);
    if (line.size() < kMostColumns)
      return;
    lines.push_back(line + ",");
    line.clear();
  };
  if (isa<FloatType>(elements.getElementType())) {
    for (const llvm::APFloat &number : elements.getValues<llvm::APFloat>())
      add(number.bitcastToAPInt());
  } else {
    for (const llvm::APInt &number : elements.getValues<llvm::APInt>())
      add(number);
  }
  if (!line.empty())
    lines.push_back(line);
  lines.push_back("};");
  return lines;
}

Constants::Constants(sched::ProgramOp program) {
  program.walk([&](sched::LaunchOp op) {
    if (op.getKernel() == sched::KernelKind::constant)
      if (auto elements = op.getSettings().getAs<DenseElementsAttr>(sched::kConstantValue))
        tables.insert({elements, "constant_" + std::to_string(tables.size())});
  });
}

std::string Constants::getTable(sched::LaunchOp op) const {
  return tables.lookup(op.getSettings().getAs<DenseElementsAttr>(sched::kConstantValue));
}

std::vector<std::string> Constants::getLines() const {
  std::vector<std::string> lines;
  for (const auto &[elements, name] : tables)
    llvm::append_range(lines, tableOf(elements, name));
  return lines;
}
