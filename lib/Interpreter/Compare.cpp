// How far the tensors of two runs are apart.
#include "windlass/Interpreter/Interpreter.h"

#include <cmath>
#include <limits>

using namespace windlass::interpreter;
using llvm::StringRef;

static double squareOf(const Tensor &tensor) {
  double sum = 0;
  for (int64_t i = 0; i < tensor.getElements(); ++i)
    sum += tensor.at(i) * tensor.at(i);
  return sum;
}

llvm::Expected<std::vector<Deviation>> windlass::interpreter::compare(const TensorMap &reference,
                                                                      const TensorMap &other) {
  auto kindOf = [](StringRef name) { return name.split('.').first.str(); };
  // Sum of squares of each kind, in each of the two.
  std::map<std::string, double> squares, otherKinds;
  for (const auto &[name, tensor] : reference)
    squares[kindOf(name)] += squareOf(tensor);
  for (const auto &[name, tensor] : other)
    otherKinds[kindOf(name)] = 0;
  for (const auto &[name, tensor] : other)
    if (squares.count(kindOf(name)) && !reference.count(name))
      return llvm::createStringError("only the second has the tensor " + name);

  std::map<std::string, Deviation> deviations;
  for (const auto &[name, tensor] : reference) {
    std::string kind = kindOf(name);
    if (!otherKinds.count(kind))
      continue;
    auto found = other.find(name);
    if (found == other.end())
      return llvm::createStringError("only the first has the tensor " + name);
    if (tensor.getShape() != found->second.getShape())
      return llvm::createStringError("the tensor " + name + " differs in shape");
    double difference = 0;
    for (int64_t i = 0; i < tensor.getElements(); ++i) {
      double a = tensor.at(i), b = found->second.at(i);
      // Equal infinities and two NaNs agree.
      double d = a == b || (std::isnan(a) && std::isnan(b)) ? 0 : a - b;
      difference += d * d;
    }
    double scale = std::max(std::sqrt(squareOf(tensor)), 1e-3 * std::sqrt(squares[kind]));
    double value = difference == 0 ? 0 : std::sqrt(difference) / scale;
    if (std::isnan(value))
      value = std::numeric_limits<double>::infinity();
    Deviation &worst = deviations[kind];
    worst.kind = kind;
    ++worst.tensors;
    if (value > worst.value || worst.worst.empty()) {
      worst.value = value;
      worst.worst = name;
    }
  }
  std::vector<Deviation> result;
  for (auto &[kind, deviation] : deviations)
    result.push_back(deviation);
  return result;
}
