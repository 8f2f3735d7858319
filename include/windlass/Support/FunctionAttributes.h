// One attribute of many arguments or results. Set one by one, each would copy the list of all.
#ifndef WINDLASS_SUPPORT_FUNCTIONATTRIBUTES_H
#define WINDLASS_SUPPORT_FUNCTIONATTRIBUTES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace windlass {

namespace detail {
template <class GetDict>
llvm::SmallVector<mlir::DictionaryAttr> withAttribute(llvm::StringRef name, llvm::ArrayRef<mlir::Attribute> values,
                                                      mlir::MLIRContext *context, GetDict getDict) {
  llvm::SmallVector<mlir::DictionaryAttr> result;
  for (auto [index, value] : llvm::enumerate(values)) {
    mlir::NamedAttrList list(getDict(index));
    if (value)
      list.set(name, value);
    result.push_back(list.getDictionary(context));
  }
  return result;
}
} // namespace detail

/// Sets `name` of each argument; where the value is null the argument stays as it is.
inline void setEachArgAttr(mlir::func::FuncOp function, llvm::StringRef name, llvm::ArrayRef<mlir::Attribute> values) {
  function.setAllArgAttrs(detail::withAttribute(name, values, function.getContext(),
                                                [&](unsigned index) { return function.getArgAttrDict(index); }));
}

/// Sets `name` of each result; where the value is null the result stays as it is.
inline void setEachResultAttr(mlir::func::FuncOp function, llvm::StringRef name,
                              llvm::ArrayRef<mlir::Attribute> values) {
  function.setAllResultAttrs(detail::withAttribute(name, values, function.getContext(),
                                                   [&](unsigned index) { return function.getResultAttrDict(index); }));
}

} // namespace windlass

#endif
