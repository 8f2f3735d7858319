// Makes a problem smaller without losing its optimum.
#ifndef WINDLASS_SEARCH_SHRINK_H
#define WINDLASS_SEARCH_SHRINK_H

#include "windlass/Search/Shrunk.h"

namespace windlass::search {

/// Drops labels that cannot be chosen or are dominated, joins nodes whose labels determine each other, folds edges
/// whose tables are sums, eliminates nodes without memory and of degree 2 at most, and drops rows of memory that cannot
/// be exceeded or are implied by others. `work` bounds the operations of the steps that are not linear.
Shrunk shrink(const Problem &problem, int64_t work = int64_t(1) << 32);

} // namespace windlass::search

#endif
