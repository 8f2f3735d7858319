// The table of kernels of L5 and what is known of each.
#ifndef WINDLASS_TOOLS_WINDLASS_OPT_KERNELTABLE_H
#define WINDLASS_TOOLS_WINDLASS_OPT_KERNELTABLE_H

#include "llvm/Support/raw_ostream.h"

namespace windlass {

/// Prints one row per kernel, with a column for each cell of its row in Kernels.def, and whether emission and
/// interpreter have what the row promises. False where they have not.
bool printKernelTable(llvm::raw_ostream &out, llvm::raw_ostream &errors);

} // namespace windlass

#endif
