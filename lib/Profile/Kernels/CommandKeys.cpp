#include "windlass/Profile/Kernels/CommandKeys.h"

#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Strides.h"
#include "windlass/Dialect/Sched/IR/Updates.h"
#include "windlass/Support/TensorBytes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/SHA256.h"

using namespace mlir;
using namespace windlass;

/// The length from which on the name of a fused function gets no further operator.
static constexpr size_t kMostNameBytes = 48;
/// The bound of integers that are no indices.
static constexpr int64_t kAnyInteger = int64_t(1) << 20;

/// Returns the type of what a command reads or writes of an operand: one block of an operand of blocks.
static MemRefType typeOf(Operation *command, unsigned operand) {
  auto type = llvm::cast<MemRefType>(command->getOperand(operand).getType());
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  return operand == 0 && launch && launch.getRow().bytes == sched::MovedBytes::block ? dropBlocks(type) : type;
}

MemRefType windlass::dropBlocks(MemRefType type) {
  auto strides = sched::getStrides(type);
  if (type.getRank() == 0 || !strides)
    return type;
  auto layout = StridedLayoutAttr::get(type.getContext(), 0, ArrayRef<int64_t>(*strides).drop_front());
  auto dropped = MemRefType::get(type.getShape().drop_front(), type.getElementType(), layout);
  return dropped.getLayout().isIdentity() ? MemRefType::get(dropped.getShape(), dropped.getElementType()) : dropped;
}

static std::string textOf(MemRefType type) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << type.getElementType() << '[';
  llvm::interleave(type.getShape(), out, "x");
  out << ']';
  auto strides = sched::getStrides(type);
  if (!strides)
    return text;
  int64_t dense = 1;
  bool isDense = true;
  for (int64_t i = type.getRank(); i-- > 0; dense *= type.getDimSize(i))
    isDense &= type.getDimSize(i) == 1 || (*strides)[i] == dense;
  if (!isDense) {
    out << '{';
    llvm::interleave(*strides, out, ",");
    out << '}';
  }
  return text;
}

/// Returns the elements of a view, each counted once however often it repeats, and the number from the first to the
/// last.
static std::pair<double, int64_t> countElements(MemRefType type) {
  auto strides = sched::getStrides(type);
  if (!strides)
    return {0, 0};
  int64_t span = 1;
  double distinct = 1;
  for (auto [size, stride] : llvm::zip_equal(type.getShape(), *strides)) {
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

/// Counts FLOPs. A multiply-add counts as two; what is not a product counts roughly, by element.
static double countFlops(sched::LaunchOp op) {
  using Kind = sched::KernelFlops::Kind;
  const sched::KernelFlops &flops = op.getRow().flops;
  auto elements = [](Value value) {
    return static_cast<double>(llvm::cast<MemRefType>(value.getType()).getNumElements());
  };
  switch (flops.kind) {
  case Kind::product: {
    auto a = llvm::cast<MemRefType>(op.getIns()[0].getType());
    double depth = 1;
    for (int64_t size :
         a.getShape().take_back(std::clamp<int64_t>(op.getIntegerSetting("contract_rank"), 0, a.getRank())))
      depth *= static_cast<double>(size);
    return flops.count * depth * elements(op.getOuts()[0]);
  }
  case Kind::convolution: {
    auto of = [&](sched::BufferNumber buffer) { return (buffer.isResult ? op.getOuts() : op.getIns())[buffer.number]; };
    auto kernels = static_cast<double>(llvm::cast<MemRefType>(of(flops.weight).getType()).getDimSize(0));
    return flops.count * elements(of(flops.convolved)) * elements(of(flops.weight)) / std::max(kernels, 1.0);
  }
  case Kind::attention: {
    auto key = llvm::cast<MemRefType>(op.getIns()[flops.query + 1].getType());
    double share = op.getSettings().contains("causal") ? 0.5 : 1, keys = key.getRank() > 2 ? key.getDimSize(2) : 1;
    return 2 * flops.count * share * elements(op.getIns()[flops.query]) * keys;
  }
  case Kind::experts: {
    auto shapeOf = [&](unsigned operand) {
      return llvm::cast<MemRefType>(op.getIns()[flops.query + operand].getType()).getShape();
    };
    double choices = elements(op.getIns()[flops.query + 1]), stored = std::max<double>(shapeOf(3)[0], 1);
    // The share of the choices whose experts are here, where all are chosen equally often.
    double all = op.getSettings().contains("all_rows") ? op.getIntegerSetting("all_rows") : stored;
    double ups = elements(op.getIns()[flops.query + 3]) * (sched::getExpertGate(op) ? 2 : 1);
    return 2 * choices / std::max(all, 1.0) *
           (flops.count * ups + flops.downs * elements(op.getIns()[flops.query + 4]));
  }
  case Kind::updates: {
    sched::UpdateOperands update = *sched::getUpdateOperands(op);
    double all = 0;
    for (size_t i = 0; i < update.parameters; ++i)
      all += elements(op.getIns()[i * update.operands]);
    return flops.count * all;
  }
  case Kind::operands: {
    double all = 0;
    for (Value in : op.getIns())
      all += elements(in);
    return flops.count * all;
  }
  case Kind::each:
    break;
  }
  double most = 0;
  for (Value value : op->getOperands())
    most = std::max(most, elements(value));
  return flops.count * most;
}

const std::string &CommandKeys::getTypeText(MemRefType type) {
  // A command of a repeated block has the types of the others.
  auto [found, isNew] = types.try_emplace(type);
  if (isNew)
    found->second = textOf(type);
  return found->second;
}

const CommandKeys::Function &CommandKeys::getFunction(FlatSymbolRefAttr name) {
  auto [found, isNew] = functions.try_emplace(name.getValue().str());
  auto function = isNew ? program.lookupSymbol<func::FuncOp>(name.getAttr()) : nullptr;
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
    found->second.isTranscendental |= op.hasTrait<train::Transcendental>();
    if (!llvm::isa<arith::ConstantOp, func::ReturnOp>(op) && names.size() < kMostNameBytes)
      names += (names.empty() ? "" : "+") + op.getName().stripDialect().str();
  }
  std::string hash = llvm::toHex(llvm::SHA256::hash(llvm::arrayRefFromStringRef(body)), true);
  found->second.text = "map." + (names.empty() ? std::string("copy") : names) + "." + hash.substr(0, 12);
  return found->second;
}

const CommandKey &CommandKeys::get(Operation *command, bool isLater) {
  auto [found, isNew] = keys.try_emplace({command, addsLater(command) && isLater});
  CommandKey &key = found->second;
  if (!isNew)
    return key;
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  auto map = llvm::dyn_cast<sched::LaunchMapOp>(command);
  const sched::KernelRow *row = launch ? &launch.getRow() : nullptr;
  const Function *function = map ? &getFunction(map.getFunctionAttr()) : nullptr;
  std::string name = row ? sched::stringifyKernelKind(row->key).str() : function->text;
  Type element = getElementTypeOrSelf(command->getOperand(0));
  bool isNarrow = llvm::isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  key.work.family = makeFamily(row                          ? sched::stringifyKernelKind(row->family).str()
                               : function->isTranscendental ? "transcendental"
                                                            : "map",
                               isNarrow);
  key.work.isNarrow = isNarrow && row && row->multipliesMatrices();
  llvm::raw_string_ostream out(key.text);
  // Times measured in one precision do not hold for the other.
  if (row && row->isProduct() && train::getPrecision(program->getParentOfType<ModuleOp>()) == "tf32") {
    key.work.family = kTf32Products;
    out << "tf32 ";
  }
  out << name << '(';
  size_t ins = launch ? launch.getIns().size() : map.getIns().size();
  std::map<sched::Place, unsigned> seen;
  for (auto [i, value] : llvm::enumerate(command->getOperands())) {
    out << (i == ins ? ") -> " : i > 0 ? ", " : "") << getTypeText(typeOf(command, i));
    auto [first, isFirst] = seen.try_emplace(sched::getPlace(value), i);
    if (!isFirst)
      out << " =" << first->second;
    if (isFirst || i >= ins)
      key.work.bytes += getBytes(typeOf(command, i));
  }
  if (launch && !launch.getSettings().empty() && row->settings == sched::SettingsInKey::timed)
    out << ' ' << launch.getSettings();
  if (adds(command, isLater)) {
    out << " adds";
    // A map takes as long as memory does; of what it adds to, each element is read too.
    for (size_t i = ins; map && i < command->getNumOperands(); ++i)
      key.work.bytes += getBytes(typeOf(command, i));
  }
  if (launch)
    key.work.flops = countFlops(launch);
  if (row && row->bytes == sched::MovedBytes::chosen)
    key.work.bytes -= getBytes(typeOf(command, 0)) - getBytes(typeOf(command, ins));
  if (map)
    for (Value value : map.getOuts())
      key.work.flops += static_cast<double>(llvm::cast<MemRefType>(value.getType()).getNumElements());
  return key;
}

/// Returns the exclusive upper bound of the integers of an operand.
static int64_t getLimit(sched::LaunchOp op, unsigned operand) {
  using Kind = sched::IndexLimit::Kind;
  const sched::IndexLimit &limit = op.getRow().indices;
  auto getSize = [&](int64_t dim) {
    Value of = limit.isResult ? op.getOuts()[limit.number] : op.getIns()[limit.number];
    auto type = llvm::cast<MemRefType>(of.getType());
    dim = dim < 0 ? dim + type.getRank() : dim;
    return dim >= 0 && dim < type.getRank() ? type.getDimSize(dim) : 1;
  };
  switch (limit.kind) {
  case Kind::unlimited:
    return kAnyInteger;
  case Kind::rows: {
    // The last operand is where parts of the table begin, if there are any: all begin where the table does.
    bool hasParts = op.getIns().size() > op.getRow().operands.least;
    if (hasParts && operand + 1 == op.getIns().size())
      return 1;
    return hasParts ? op.getIntegerSetting("all_rows") : getSize(0);
  }
  case Kind::axis:
    return getSize(op.getIntegerSetting("axis"));
  case Kind::classes:
    return getSize(-1);
  }
  llvm_unreachable("unknown limit of indices");
}

std::vector<CommandOperand> windlass::getOperands(Operation *command, bool isLater) {
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  size_t ins = launch ? launch.getIns().size() : llvm::cast<sched::LaunchMapOp>(command).getIns().size();
  std::map<sched::Place, unsigned> seen;
  std::vector<CommandOperand> operands;
  for (auto [i, value] : llvm::enumerate(command->getOperands())) {
    auto [found, isFirst] = seen.try_emplace(sched::getPlace(value), operands.size());
    if (isFirst)
      operands.push_back({typeOf(command, i).getElementType(), 0, launch ? getLimit(launch, i) : kAnyInteger, false});
    CommandOperand &operand = operands[found->second];
    operand.elements = std::max(operand.elements, countElements(typeOf(command, i)).second);
    operand.isRead |= i < ins || (launch ? launch.addsTo(i - ins, isLater) : adds(command, isLater));
  }
  return operands;
}
