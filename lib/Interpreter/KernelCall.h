// What a reference kernel receives, and the table that it enters itself in.
#ifndef WINDLASS_LIB_INTERPRETER_KERNELCALL_H
#define WINDLASS_LIB_INTERPRETER_KERNELCALL_H

#include "windlass/Interpreter/Kernels.h"

#include "llvm/ADT/StringMap.h"

namespace windlass::interpreter {

/// One call. Results have their shape and hold zeros. The first failed requirement is the call's error; a kernel
/// returns as soon as `isBad`, before it indexes anything by what it required.
class KernelCall {
public:
  KernelCall(llvm::StringRef name, mlir::DictionaryAttr attributes, llvm::ArrayRef<Tensor> inputs,
             llvm::MutableArrayRef<Tensor> results)
      : name(name), attributes(attributes), inputs(inputs), results(results) {}

  llvm::StringRef name;
  mlir::DictionaryAttr attributes;
  llvm::ArrayRef<Tensor> inputs;
  llvm::MutableArrayRef<Tensor> results;

  /// Records the text as the call's error unless the condition holds; returns the condition.
  bool require(bool condition, const llvm::Twine &text);
  bool isBad() const { return !error.empty(); }
  llvm::StringRef getError() const { return error; }

  /// Attributes by name; a missing one is an error of the call unless a default is given.
  int64_t integer(llvm::StringRef key, std::optional<int64_t> fallback = std::nullopt);
  double number(llvm::StringRef key);
  llvm::SmallVector<int64_t> integers(llvm::StringRef key);
  bool flag(llvm::StringRef key) const;

  /// Requires inputs and results of that number and all floats among them of one kind, which it returns.
  ElementKind floats();
  bool requireCounts(size_t inputCount, size_t resultCount);
  bool requireShape(const Tensor &tensor, llvm::ArrayRef<int64_t> shape, llvm::StringRef what);

private:
  std::string error;
};

using Kernel = void (*)(KernelCall &);
using KernelTable = llvm::StringMap<Kernel>;

// Each family adds its kernels under the op's full name.
void addElementwiseKernels(KernelTable &table);
void addStructuralKernels(KernelTable &table);
void addContractionKernels(KernelTable &table);
void addConvolutionKernels(KernelTable &table);
void addReductionKernels(KernelTable &table);
void addIndexingKernels(KernelTable &table);
void addAttentionKernels(KernelTable &table);
void addExpertKernels(KernelTable &table);
void addRandomKernels(KernelTable &table);
void addLossKernels(KernelTable &table);
void addOptimizerKernels(KernelTable &table);

} // namespace windlass::interpreter

#endif
