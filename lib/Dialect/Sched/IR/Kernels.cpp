#include "windlass/Dialect/Sched/IR/Kernels.h"

#include "windlass/Dialect/Train/IR/TrainOps.h"
#include "windlass/rt/kernels.h"

#include "llvm/ADT/StringMap.h"

using namespace windlass;
using namespace windlass::sched;

namespace {

//===----------------------------------------------------------------------===//
// The cells of Kernels.def
//===----------------------------------------------------------------------===//

constexpr bool yes = true, no = false;

constexpr OperandCounts between(unsigned least, unsigned most) { return {OperandCounts::Kind::plain, least, most}; }
constexpr OperandCounts exactly(unsigned count) { return between(count, count); }
constexpr OperandCounts terms(unsigned least, unsigned most) { return {OperandCounts::Kind::terms, least, most}; }
constexpr OperandCounts parameters(unsigned each, unsigned scalars, unsigned most) {
  return {OperandCounts::Kind::parameters, each, each, scalars, most};
}

template <class... Pairs> constexpr InPlace inPlace(InPlace::Mode mode, Pairs... pairs) {
  return {{pairs...}, sizeof...(pairs), mode};
}
constexpr InPlace separate() { return inPlace(InPlace::Mode::may); }
constexpr InPlace may(InPlace::Pair pair) { return inPlace(InPlace::Mode::may, pair); }
constexpr InPlace may(InPlace::Pair first, InPlace::Pair second) { return inPlace(InPlace::Mode::may, first, second); }
constexpr InPlace must(InPlace::Pair pair) { return inPlace(InPlace::Mode::must, pair); }
constexpr InPlace must(InPlace::Pair first, InPlace::Pair second) {
  return inPlace(InPlace::Mode::must, first, second);
}
constexpr InPlace must(InPlace::Pair first, InPlace::Pair second, InPlace::Pair third) {
  return inPlace(InPlace::Mode::must, first, second, third);
}
constexpr InPlace dropped(InPlace::Pair pair) { return inPlace(InPlace::Mode::dropped, pair); }

constexpr KernelFlops each(double count) { return {KernelFlops::Kind::each, count}; }
constexpr KernelFlops operandsEach(double count) { return {KernelFlops::Kind::operands, count}; }
constexpr KernelFlops product() { return {KernelFlops::Kind::product, 2}; }
constexpr KernelFlops convolution(BufferNumber convolved, BufferNumber weight) {
  return {KernelFlops::Kind::convolution, 2, 0, convolved, weight};
}
constexpr KernelFlops attention(double products, unsigned query) {
  return {KernelFlops::Kind::attention, products, query};
}
constexpr KernelFlops experts(unsigned input, double ups, double downs) {
  return {KernelFlops::Kind::experts, ups, input, {}, {}, downs};
}
constexpr KernelFlops updates(double count) { return {KernelFlops::Kind::updates, count}; }

constexpr BufferNumber in(unsigned number) { return {number, false}; }
constexpr BufferNumber out(unsigned number) { return {number, true}; }
constexpr IndexLimit unlimited() { return {IndexLimit::Kind::unlimited}; }
constexpr IndexLimit rowsOf(BufferNumber table) { return {IndexLimit::Kind::rows, table.number, table.isResult}; }
constexpr IndexLimit axisOf(BufferNumber of) { return {IndexLimit::Kind::axis, of.number, of.isResult}; }
constexpr IndexLimit classesOf(BufferNumber of) { return {IndexLimit::Kind::classes, of.number, of.isResult}; }

constexpr KernelRow kTable[] = {
#define KERNEL(name, origin, operands, results, inPlace, accumulation, rows, flops, bytes, key, settings, family,      \
               indices, scratch, entry, interpreter, nullBackend, host)                                                \
  {KernelKind::name,                                                                                                   \
   #name,                                                                                                              \
   KernelOrigin::origin,                                                                                               \
   operands,                                                                                                           \
   results,                                                                                                            \
   inPlace,                                                                                                            \
   Accumulation::accumulation,                                                                                         \
   Rows::rows,                                                                                                         \
   flops,                                                                                                              \
   MovedBytes::bytes,                                                                                                  \
   KernelKind::key,                                                                                                    \
   SettingsInKey::settings,                                                                                            \
   KernelKind::family,                                                                                                 \
   indices,                                                                                                            \
   ScratchRule::scratch,                                                                                               \
   #entry,                                                                                                             \
   KernelSemantics::interpreter,                                                                                       \
   nullBackend,                                                                                                        \
   host},
#include "windlass/Dialect/Sched/IR/Kernels.def"
#undef KERNEL
};

} // namespace

//===----------------------------------------------------------------------===//
// Operands and results
//===----------------------------------------------------------------------===//

size_t KernelRow::countParameters(KernelArity arity) const {
  return hasParameters() ? (arity.operands - operands.scalars) / operands.least : 0;
}

bool KernelRow::takes(KernelArity arity) const {
  auto isWithin = [](const OperandCounts &counts, size_t count) {
    return count >= counts.least && count <= counts.most;
  };
  switch (operands.kind) {
  case OperandCounts::Kind::plain:
    return isWithin(operands, arity.operands) && isWithin(results, arity.results);
  case OperandCounts::Kind::terms:
    return arity.operands >= arity.terms && isWithin(operands, arity.operands - arity.terms) &&
           isWithin(results, arity.results);
  case OperandCounts::Kind::parameters:
    break;
  }
  if (arity.operands < operands.scalars + operands.least || (arity.operands - operands.scalars) % operands.least)
    return false;
  size_t count = countParameters(arity);
  return count <= operands.mostParameters && arity.results % count == 0 && isWithin(results, arity.results / count);
}

bool KernelRow::mayWriteOver(KernelArity arity, size_t operand, size_t result) const {
  return inPlace.mode != InPlace::Mode::dropped && mayShare(arity, operand, result);
}

bool KernelRow::mayShare(KernelArity arity, size_t operand, size_t result) const {
  if (hasTerms())
    operand = operand < arity.terms ? 0 : operand - arity.terms + 1;
  if (size_t count = countParameters(arity)) {
    size_t each = arity.results / count;
    if (operand >= count * operands.least || operand / operands.least != result / each)
      return false;
    operand %= operands.least;
    result %= each;
  }
  return llvm::any_of(inPlace.getPairs(),
                      [&](InPlace::Pair pair) { return pair.operand == operand && pair.result == result; });
}

std::optional<size_t> KernelRow::getReplaced(KernelArity arity, size_t result) const {
  if (inPlace.mode != InPlace::Mode::must)
    return std::nullopt;
  size_t count = countParameters(arity), each = count ? arity.results / count : arity.results;
  for (InPlace::Pair pair : inPlace.getPairs())
    if (pair.result == result % each)
      return result / each * operands.least + pair.operand;
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Rows by name
//===----------------------------------------------------------------------===//

llvm::ArrayRef<KernelRow> sched::getKernelTable() { return kTable; }

const KernelRow &sched::getRow(KernelKind kind) { return kTable[static_cast<size_t>(kind)]; }

std::optional<KernelKind> sched::symbolizeKernelKind(llvm::StringRef name) {
  static const llvm::StringMap<KernelKind> kinds = [] {
    llvm::StringMap<KernelKind> kinds;
    for (const KernelRow &row : kTable)
      kinds[row.name] = row.kind;
    return kinds;
  }();
  auto found = kinds.find(name);
  return found == kinds.end() ? std::nullopt : std::optional(found->second);
}

llvm::StringRef sched::stringifyKernelKind(KernelKind kind) { return getRow(kind).name; }

const KernelRow *sched::findRow(mlir::Operation *op) {
  if (!llvm::isa_and_nonnull<train::TrainDialect>(op->getDialect()))
    return nullptr;
  auto kind = symbolizeKernelKind(op->getName().stripDialect());
  return kind ? &getRow(*kind) : nullptr;
}

std::optional<KernelKind> sched::getKernelOfSum(KernelKind kind) {
  for (const KernelRow &row : kTable)
    if (row.hasTerms() && row.family == kind)
      return row.kind;
  return std::nullopt;
}
