// The tables of constants whose elements differ.
#ifndef WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_CONSTANTS_H
#define WINDLASS_LIB_CONVERSION_SCHEDTOEMITC_CONSTANTS_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "llvm/ADT/MapVector.h"

#include <string>
#include <vector>

namespace windlass {

/// Names a table for each constant of a program's launches, equal constants one.
class Constants {
public:
  explicit Constants(sched::ProgramOp program);

  bool empty() const { return tables.empty(); }
  /// Returns the name of the table with the elements of a launch; empty where the launch writes no constant.
  std::string getTable(sched::LaunchOp op) const;
  /// Returns the definitions of the tables: the bits of each element, in row-major order.
  std::vector<std::string> getLines() const;

private:
  llvm::MapVector<mlir::Attribute, std::string> tables; // elements -> name
};

} // namespace windlass

#endif
