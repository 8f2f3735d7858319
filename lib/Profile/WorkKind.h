// What the table of kernels says about the work of a profile's families.
#ifndef WINDLASS_LIB_PROFILE_WORKKIND_H
#define WINDLASS_LIB_PROFILE_WORKKIND_H

#include "llvm/ADT/StringRef.h"

namespace windlass {

/// What the arithmetic of a kernel is.
enum class WorkKind { elements, product, convolution, attention, experts };

/// Returns the kind of the kernel that a family, such as `matmul.narrow`, is named after; `elements` where no kernel
/// has the name.
WorkKind getWorkKind(llvm::StringRef family);

} // namespace windlass

#endif
