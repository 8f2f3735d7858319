// Tensors and calls of reference kernels, short enough to read in a test.
#ifndef WINDLASS_UNITTESTS_INTERPRETER_TESTTENSORS_H
#define WINDLASS_UNITTESTS_INTERPRETER_TESTTENSORS_H

#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/Interpreter/Kernels.h"

#include "mlir/IR/Builders.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <vector>

namespace windlass::interpreter {

class KernelTest : public testing::Test {
protected:
  KernelTest() : context(mlir::MLIRContext::Threading::DISABLED), builder(&context) {
    context.loadDialect<train::TrainDialect>();
  }

  Tensor tensor(llvm::ArrayRef<int64_t> shape, std::vector<double> values, ElementKind kind = ElementKind::f64) {
    Tensor result(kind, shape);
    EXPECT_EQ(static_cast<int64_t>(values.size()), result.getElements());
    for (size_t i = 0; i < values.size(); ++i)
      result.set(i, values[i]);
    return result;
  }
  Tensor integers(llvm::ArrayRef<int64_t> shape, std::vector<double> values) {
    return tensor(shape, std::move(values), ElementKind::i64);
  }
  Tensor booleans(llvm::ArrayRef<int64_t> shape, std::vector<double> values) {
    return tensor(shape, std::move(values), ElementKind::boolean);
  }
  /// Returns values that differ from each other and from small integers.
  Tensor varied(llvm::ArrayRef<int64_t> shape, double start = 0.3) {
    Tensor result(ElementKind::f64, shape);
    for (int64_t i = 0; i < result.getElements(); ++i)
      result.set(i, std::sin(start + 1.7 * i));
    return result;
  }
  static std::vector<double> values(const Tensor &tensor) {
    std::vector<double> result;
    for (int64_t i = 0; i < tensor.getElements(); ++i)
      result.push_back(tensor.at(i));
    return result;
  }

  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape) {
    return mlir::RankedTensorType::get(shape, builder.getF32Type());
  }
  mlir::RankedTensorType type(llvm::ArrayRef<int64_t> shape, mlir::Type element) {
    return mlir::RankedTensorType::get(shape, element);
  }
  mlir::NamedAttribute integer(llvm::StringRef name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  }
  mlir::NamedAttribute number(llvm::StringRef name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  }
  mlir::NamedAttribute list(llvm::StringRef name, llvm::ArrayRef<int64_t> value) {
    return builder.getNamedAttr(name, builder.getDenseI64ArrayAttr(value));
  }
  mlir::NamedAttribute unit(llvm::StringRef name) { return builder.getNamedAttr(name, builder.getUnitAttr()); }

  /// Returns the results of `train.<name>`; a failed call fails the test and gives one scalar zero per result.
  std::vector<Tensor> call(llvm::StringRef name, std::vector<Tensor> inputs, std::vector<mlir::RankedTensorType> types,
                           std::vector<mlir::NamedAttribute> attributes = {}, Precision precision = Precision::f64) {
    auto results = evaluate(("train." + name).str(), builder.getDictionaryAttr(attributes), inputs, types, precision);
    if (!results) {
      ADD_FAILURE() << llvm::toString(results.takeError());
      return std::vector<Tensor>(types.size());
    }
    return std::vector<Tensor>(results->begin(), results->end());
  }
  std::vector<double> valuesOf(llvm::StringRef name, std::vector<Tensor> inputs, mlir::RankedTensorType result,
                               std::vector<mlir::NamedAttribute> attributes = {}) {
    return values(call(name, std::move(inputs), {result}, std::move(attributes)).front());
  }
  std::string errorOf(llvm::StringRef name, std::vector<Tensor> inputs, std::vector<mlir::RankedTensorType> types,
                      std::vector<mlir::NamedAttribute> attributes = {}) {
    auto results =
        evaluate(("train." + name).str(), builder.getDictionaryAttr(attributes), inputs, types, Precision::f64);
    if (results)
      return "no error";
    return llvm::toString(results.takeError());
  }

  mlir::MLIRContext context;
  mlir::Builder builder;
};

} // namespace windlass::interpreter

#endif
