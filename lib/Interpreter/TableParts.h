// Places of rows, or experts, in a table of which a rank may have some parts only.
#ifndef WINDLASS_LIB_INTERPRETER_TABLEPARTS_H
#define WINDLASS_LIB_INTERPRETER_TABLEPARTS_H

#include "KernelCall.h"

namespace windlass::interpreter {

constexpr int64_t kNoPlace = -1;

/// Returns indices as i64, each in [0, size); `negative` says that negative ones count from the end.
llvm::SmallVector<int64_t> indicesOf(KernelCall &call, const Tensor &tensor, int64_t size, bool negative);

/// Returns the places of ids in a table of parts that begin at the rows `first` of `allRows`; kNoPlace for a row that
/// is in none.
llvm::SmallVector<int64_t> placesOfIds(KernelCall &call, const Tensor &ids, const Tensor &first, int64_t rows,
                                       int64_t allRows);

} // namespace windlass::interpreter

#endif
