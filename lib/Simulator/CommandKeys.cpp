#include "windlass/Simulator/CommandKeys.h"

#include "windlass/Dialect/Sched/IR/Norms.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Dialect/Sched/Transforms/FuseEpilogues.h"
#include "windlass/Support/TensorBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace windlass;

/// Of what fused functions are called by.
static constexpr size_t kMostNameBytes = 48;
/// Integers that are no indices.
static constexpr int64_t kAnyInteger = int64_t(1) << 20;

static int64_t offsetOf(Value buffer) { return buffer.getDefiningOp<sched::BufferOp>().getOffset(); }

/// What a command does in step programs: `own_part` copies one block of many.
static bool isOwnPart(Operation *command) {
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  return launch && launch.getKernel() == "own_part";
}

static MemRefType typeOf(Operation *command, unsigned operand) {
  auto type = llvm::cast<MemRefType>(command->getOperand(operand).getType());
  return operand == 0 && isOwnPart(command) ? dropBlocks(type) : type;
}

MemRefType windlass::dropBlocks(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset;
  if (type.getRank() == 0 || failed(type.getStridesAndOffset(strides, offset)))
    return type;
  auto layout = StridedLayoutAttr::get(type.getContext(), 0, ArrayRef<int64_t>(strides).drop_front());
  auto dropped = MemRefType::get(type.getShape().drop_front(), type.getElementType(), layout);
  return dropped.getLayout().isIdentity() ? MemRefType::get(dropped.getShape(), dropped.getElementType()) : dropped;
}

static std::string textOf(MemRefType type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << type.getElementType() << '[';
  llvm::interleave(type.getShape(), out, "x");
  out << ']';
  SmallVector<int64_t> strides;
  int64_t offset, dense = 1;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return text;
  bool isDense = true;
  for (int64_t i = type.getRank(); i-- > 0; dense *= type.getDimSize(i))
    isDense &= type.getDimSize(i) == 1 || strides[i] == dense;
  if (!isDense) {
    out << '{';
    llvm::interleave(strides, out, ",");
    out << '}';
  }
  return text;
}

/// Elements of a view, each once however often it repeats, and from the first to the last.
static std::pair<double, int64_t> countElements(MemRefType type) {
  SmallVector<int64_t> strides;
  int64_t offset, span = 1;
  double distinct = 1;
  if (failed(type.getStridesAndOffset(strides, offset)))
    return {0, 0};
  for (auto [size, stride] : llvm::zip(type.getShape(), strides)) {
    if (size == 0)
      return {0, 0};
    span += (size - 1) * stride;
    distinct *= stride == 0 ? 1 : static_cast<double>(size);
  }
  return {distinct, span};
}

static double getBytes(MemRefType type) {
  return countElements(type).first * static_cast<double>(getElementBytes(type.getElementType()));
}

bool windlass::addsLater(Operation *command) {
  if (auto launch = llvm::dyn_cast<sched::LaunchOp>(command))
    return launch.getAccumulateAfterFirst();
  auto map = llvm::dyn_cast<sched::LaunchMapOp>(command);
  return map && map.getAccumulateAfterFirst();
}

static bool adds(Operation *command, bool isLater) {
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  return (launch && launch.getAccumulate()) || (isLater && addsLater(command));
}

/// Multiply-adds are two; what is not a product counts roughly, by element.
static double countFlops(sched::LaunchOp op) {
  llvm::StringRef kernel = op.getKernel();
  auto elements = [](Value value) {
    return static_cast<double>(llvm::cast<MemRefType>(value.getType()).getNumElements());
  };
  auto isSquare = [&](unsigned operands) {
    return llvm::all_of(op.getIns().take_front(operands),
                        [](Value value) { return llvm::cast<MemRefType>(value.getType()).getRank() == 4; });
  };
  if (sched::isProduct(kernel) && op.getIns().size() >= 2 && !op.getOuts().empty()) {
    auto a = llvm::cast<MemRefType>(op.getIns()[0].getType());
    auto rank = op.getSettings().getAs<IntegerAttr>("contract_rank");
    double depth = 1;
    for (int64_t size : a.getShape().take_back(rank ? std::clamp<int64_t>(rank.getInt(), 0, a.getRank()) : 0))
      depth *= static_cast<double>(size);
    return 2 * depth * elements(op.getOuts()[0]);
  }
  bool isGradient = kernel == "attention_grad";
  if ((kernel == "attention" || isGradient) && op.getIns().size() >= (isGradient ? 4u : 3u) &&
      isSquare(isGradient ? 4 : 3)) {
    // Two products of tokens, keys and width; their gradients are five.
    auto key = llvm::cast<MemRefType>(op.getIns()[isGradient ? 2 : 1].getType());
    double products = isGradient ? 5 : 2, share = op.getSettings().contains("causal") ? 0.5 : 1;
    return 2 * products * share * elements(op.getIns()[isGradient ? 1 : 0]) * static_cast<double>(key.getDimSize(2));
  }
  if (std::optional<sched::UpdateOperands> update = sched::getUpdateOperands(op)) {
    double all = 0;
    for (size_t i = 0; i < update->parameters; ++i)
      all += elements(op.getIns()[i * update->operands]);
    return 7 * all;
  }
  double each = llvm::StringSwitch<double>(kernel)
                    .Case("softmax", 20)
                    .Cases({"softmax_cross_entropy", "softmax_cross_entropy_grad"}, 18)
                    .Case("softmax_cross_entropy_with_grad", 36)
                    .Case("dropout", 25)
                    .Cases({"layer_norm", "rms_norm", "add_layer_norm", "add_rms_norm"}, 8)
                    .Cases({"layer_norm_grad", "rms_norm_grad"}, 14)
                    .Cases({"copy", "own_part", "fill", "constant", "iota"}, 0)
                    .Default(1);
  double most = 0;
  for (Value value : op->getOperands())
    most = std::max(most, elements(value));
  return each * most;
}

const std::string &CommandKeys::getFunctionText(FlatSymbolRefAttr name) {
  auto [found, isNew] = functions.try_emplace(name.getValue().str());
  auto function = isNew ? module.lookupSymbol<func::FuncOp>(name.getAttr()) : nullptr;
  if (!function)
    return found->second;
  std::string names, body;
  llvm::raw_string_ostream out(body);
  llvm::DenseMap<Value, unsigned> numbers;
  for (Value argument : function.getArguments())
    out << argument.getType() << ' ' << (numbers[argument] = numbers.size()) << ';';
  for (Operation &op : function.getBody().front()) {
    out << op.getName().getStringRef() << op.getAttrDictionary() << '(';
    llvm::interleave(op.getOperands(), out, [&](Value value) { out << numbers.lookup(value); }, ",");
    out << ')';
    for (Value result : op.getResults())
      out << result.getType() << ' ' << (numbers[result] = numbers.size());
    out << ';';
    if (!llvm::isa<arith::ConstantOp, func::ReturnOp>(op) && names.size() < kMostNameBytes)
      names += (names.empty() ? "" : "+") + op.getName().stripDialect().str();
  }
  std::string hash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(body)), true);
  return found->second = "map." + (names.empty() ? std::string("copy") : names) + "." + hash.substr(0, 12);
}

const CommandKey &CommandKeys::get(Operation *command, bool isLater) {
  auto [found, isNew] = keys.try_emplace({command, addsLater(command) && isLater});
  CommandKey &key = found->second;
  if (!isNew)
    return key;
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  auto map = llvm::dyn_cast<sched::LaunchMapOp>(command);
  std::string name = launch ? launch.getKernel().str() : getFunctionText(map.getFunctionAttr());
  if (isOwnPart(command))
    name = "copy";
  Type element = getElementTypeOrSelf(command->getOperand(0));
  bool isNarrow = llvm::isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  bool multiplies = launch && sched::isProduct(name);
  // Memory counts, and older profiles know the kernel alone that moves as much of it.
  std::string family = llvm::StringSwitch<std::string>(name)
                           .Case("softmax_cross_entropy_with_grad", "softmax_cross_entropy_grad")
                           .Case("add_layer_norm", "layer_norm")
                           .Case("add_rms_norm", "rms_norm")
                           .Default(name);
  key.work.family = makeFamily(multiplies ? "matmul" : launch ? family : "map", isNarrow);
  key.work.isNarrow = isNarrow && (multiplies || name == "attention" || name == "attention_grad");
  llvm::raw_string_ostream out(key.text);
  // What was measured of one is not true of the other.
  if (multiplies && train::getPrecision(module) == "tf32") {
    key.work.family = kTf32Products;
    out << "tf32 ";
  }
  out << name << '(';
  size_t ins = launch ? launch.getIns().size() : map.getIns().size();
  std::map<int64_t, unsigned> seen;
  for (auto [i, value] : llvm::enumerate(command->getOperands())) {
    out << (i == ins ? ") -> " : i > 0 ? ", " : "") << textOf(typeOf(command, i));
    auto [first, isFirst] = seen.try_emplace(offsetOf(value), i);
    if (!isFirst)
      out << " =" << first->second;
    if (isFirst || i >= ins)
      key.work.bytes += getBytes(typeOf(command, i));
  }
  // Which values a constant has costs nothing.
  if (launch && !launch.getSettings().empty() && !isOwnPart(command) && name != "constant")
    out << ' ' << launch.getSettings();
  if (adds(command, isLater))
    out << " adds";
  if (launch)
    key.work.flops = countFlops(launch);
  // Of a table only the chosen rows are read.
  if (launch && (name == "embedding" || name == "gather" || name == "gather_elements"))
    key.work.bytes -= getBytes(typeOf(command, 0)) - getBytes(typeOf(command, ins));
  if (map)
    for (Value value : map.getOuts())
      key.work.flops += static_cast<double>(llvm::cast<MemRefType>(value.getType()).getNumElements());
  return key;
}

/// Below what integers of an operand have to be.
static int64_t getLimit(sched::LaunchOp op, unsigned operand) {
  llvm::StringRef kernel = op.getKernel();
  auto sizeOf = [](Value value, int64_t dim) {
    auto type = llvm::cast<MemRefType>(value.getType());
    dim = dim < 0 ? dim + type.getRank() : dim;
    return dim >= 0 && dim < type.getRank() ? type.getDimSize(dim) : 1;
  };
  auto setting = [&](llvm::StringRef name) {
    auto value = op.getSettings().getAs<IntegerAttr>(name);
    return value ? value.getInt() : 0;
  };
  if (op.getIns().empty() || op.getOuts().empty())
    return kAnyInteger;
  Value table = kernel == "embedding" ? op.getIns()[0] : op.getOuts()[0];
  if (kernel == "embedding" || kernel == "embedding_grad") {
    // The first rows of a table's parts: all begin where the table does.
    if (operand == 2)
      return 1;
    return op.getIns().size() > 2 ? setting("all_rows") : sizeOf(table, 0);
  }
  if (kernel == "gather" || kernel == "gather_elements")
    return sizeOf(op.getIns()[0], setting("axis"));
  if (kernel == "scatter_add" || kernel == "scatter_elements_add")
    return sizeOf(op.getOuts()[0], setting("axis"));
  if (kernel == "softmax_cross_entropy")
    return sizeOf(op.getIns()[0], -1);
  if (kernel == "softmax_cross_entropy_grad" || kernel == "softmax_cross_entropy_with_grad")
    return sizeOf(op.getOuts().back(), -1);
  return kAnyInteger;
}

std::vector<CommandOperand> windlass::getOperands(Operation *command, bool isLater) {
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  size_t ins = launch ? launch.getIns().size() : llvm::cast<sched::LaunchMapOp>(command).getIns().size();
  std::map<int64_t, unsigned> seen;
  std::vector<CommandOperand> operands;
  for (auto [i, value] : llvm::enumerate(command->getOperands())) {
    auto [found, isFirst] = seen.try_emplace(offsetOf(value), operands.size());
    if (isFirst)
      operands.push_back({typeOf(command, i).getElementType(), 0, launch ? getLimit(launch, i) : kAnyInteger, false});
    CommandOperand &operand = operands[found->second];
    operand.elements = std::max(operand.elements, countElements(typeOf(command, i)).second);
    operand.isRead |= i < ins || (adds(command, isLater) && (!launch || sched::addsToResult(launch, i - ins)));
  }
  return operands;
}
