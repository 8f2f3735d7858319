//===- TracedArguments.h - arguments of a traced call -----------*- C++ -*-===//

#ifndef WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_TRACEDARGUMENTS_H
#define WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_TRACEDARGUMENTS_H

#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"

namespace windlass {

/// The arguments of a call of the traced program as the exporter prints them: `(%x, None, [1, 2]), kwargs = {p: 0.1}`.
/// Every text is accepted; a text of another form has no arguments. The text must outlive the object.
class TracedArguments {
public:
  explicit TracedArguments(llvm::StringRef text);

  /// Returns the argument at `position`, or the one called `name`; empty where the call gives neither, so that the
  /// callee's default holds.
  llvm::StringRef get(size_t position, llvm::StringRef name) const;
  /// Returns the argument as a number; `fallback` where it is not given or is no number.
  double getNumber(size_t position, llvm::StringRef name, double fallback) const;
  bool isTrue(size_t position, llvm::StringRef name) const { return get(position, name) == "True"; }

private:
  llvm::SmallVector<llvm::StringRef> positional;
  llvm::SmallVector<std::pair<llvm::StringRef, llvm::StringRef>> named;
};

/// Returns the names that the text mentions as `%NAME`, in their order, each as often as it occurs.
llvm::SmallVector<llvm::StringRef> findMentions(llvm::StringRef arguments);

} // namespace windlass

#endif // WINDLASS_LIB_CONVERSION_ONNXTOTRAIN_TRACEDARGUMENTS_H
