// The table of operators and what each of them answers.
#ifndef WINDLASS_TOOLS_WINDLASS_OPT_OPTABLE_H
#define WINDLASS_TOOLS_WINDLASS_OPT_OPTABLE_H

#include "llvm/Support/raw_ostream.h"

namespace windlass {

/// Prints one row per operator of `train`, with a column per part that an operator has, and a reason in each cell that
/// is empty. False where a cell has neither, or an operator has no example.
bool printOpTable(llvm::raw_ostream &out, llvm::raw_ostream &errors);

} // namespace windlass

#endif
