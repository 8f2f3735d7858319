#include "KernelTable.h"

#include "Table.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/IR/Kernels.h"
#include "windlass/Interpreter/Interpreter.h"

#include "llvm/Support/FormatVariadic.h"

using namespace windlass;
using namespace windlass::sched;

namespace {

constexpr llvm::StringRef kTitles[] = {"kernel",  "origin",       "operands",    "results",       "in place", "adds to",
                                       "rows",    "FLOPs",        "bytes",       "timed as",      "family",   "indices",
                                       "scratch", "runtime call", "interpreter", "null back end", "host"};

Cell getOrigin(const KernelRow &row) {
  constexpr llvm::StringRef names[] = {"operator", "lowering", "fusion"};
  return {names[static_cast<unsigned>(row.origin)].str()};
}

std::string countText(unsigned least, unsigned most) {
  return least == most ? std::to_string(least)
                       : llvm::formatv("{0} {1} {2}", least, most == least + 1 ? "or" : "to", most).str();
}

Cell getOperands(const KernelRow &row) {
  const OperandCounts &of = row.operands;
  switch (of.kind) {
  case OperandCounts::Kind::plain:
    return {countText(of.least, of.most)};
  case OperandCounts::Kind::terms:
    return {"2 or 3 terms, " + countText(of.least, of.most)};
  case OperandCounts::Kind::parameters:
    return {llvm::formatv("{0} of each parameter, {1} at most; {2} scalars", of.least, of.mostParameters, of.scalars)
                .str()};
  }
  return {};
}

Cell getResults(const KernelRow &row) {
  return {countText(row.results.least, row.results.most) + (row.hasParameters() ? " of each parameter" : "")};
}

Cell getInPlace(const KernelRow &row) {
  constexpr llvm::StringRef modes[] = {"may be", "is", "is dropped"};
  std::string text;
  for (InPlace::Pair pair : row.inPlace.getPairs())
    text += llvm::formatv("{0}{1} {2} over {3}", text.empty() ? "" : ", ", pair.result,
                          modes[static_cast<unsigned>(row.inPlace.mode)], pair.operand);
  return text.empty() ? Cell{"writes nothing that it reads", true} : Cell{text};
}

Cell getAccumulation(const KernelRow &row) {
  constexpr llvm::StringRef names[] = {"overwrites", "all", "sums", "all but 0", "all but 0, 1"};
  return {names[static_cast<unsigned>(row.accumulation)].str(), !row.canAccumulate()};
}

Cell getFlops(const KernelRow &row) {
  switch (row.flops.kind) {
  case KernelFlops::Kind::each:
    return row.flops.count == 0 ? Cell{"computes nothing", true}
                                : Cell{llvm::formatv("{0:F0} each", row.flops.count).str()};
  case KernelFlops::Kind::operands:
    return {llvm::formatv("{0:F0} each of all operands", row.flops.count).str()};
  case KernelFlops::Kind::product:
    return {"product"};
  case KernelFlops::Kind::convolution:
    return {"convolution"};
  case KernelFlops::Kind::attention:
    return {llvm::formatv("{0:F0} products of {1}", row.flops.count, row.flops.query).str()};
  case KernelFlops::Kind::experts:
    return {llvm::formatv("{0:F0} and {1:F0} products of experts", row.flops.count, row.flops.downs).str()};
  case KernelFlops::Kind::updates:
    return {llvm::formatv("{0:F0} each parameter", row.flops.count).str()};
  }
  return {};
}

Cell getBytes(const KernelRow &row) {
  constexpr llvm::StringRef names[] = {"operands", "chosen rows", "one block"};
  return {names[static_cast<unsigned>(row.bytes)].str()};
}

Cell getKey(const KernelRow &row) {
  return {(stringifyKernelKind(row.key) + (row.settings == SettingsInKey::untimed ? ", any settings" : "")).str()};
}

Cell getIndices(const KernelRow &row) {
  constexpr llvm::StringRef names[] = {"takes none", "rows", "axis", "classes"};
  llvm::StringRef name = names[static_cast<unsigned>(row.indices.kind)];
  if (row.indices.kind == IndexLimit::Kind::unlimited)
    return {name.str(), true};
  return {llvm::formatv("{0} of {1} {2}", name, row.indices.isResult ? "result" : "operand", row.indices.number).str()};
}

Cell getScratch(const KernelRow &row) {
  constexpr llvm::StringRef names[] = {"needs none", "product",   "convolution",
                                       "norm_grad",  "attention", "attention_grad",
                                       "experts",    "experts_grad"};
  return {names[static_cast<unsigned>(row.scratch)].str(), row.scratch == ScratchRule::none};
}

Cell getCall(const KernelRow &row) { return hasRuntimeCall(row.kind) ? Cell{row.entry.str()} : Cell(); }

Cell getInterpreter(const KernelRow &row) {
  if (!interpreter::interpreterRuns(row.kind))
    return {};
  return {row.semantics == KernelSemantics::op ? ("train." + row.name).str() : "own rule"};
}

} // namespace

bool windlass::printKernelTable(llvm::raw_ostream &out, llvm::raw_ostream &errors) {
  std::vector<TableRow> rows;
  for (const KernelRow &row : getKernelTable()) {
    Cell rowOrder = {row.rows == Rows::dense ? "dense" : "any"}, family = {stringifyKernelKind(row.family).str()},
         nullBackend = {row.isInNullBackend ? "yes" : ""},
         host = row.runsOnHost ? Cell{"yes"} : Cell{"device only", true};
    rows.push_back({row.name.str(),
                    {getOrigin(row), getOperands(row), getResults(row), getInPlace(row), getAccumulation(row), rowOrder,
                     getFlops(row), getBytes(row), getKey(row), family, getIndices(row), getScratch(row), getCall(row),
                     getInterpreter(row), nullBackend, host}});
  }
  out << "Operands and results count from 0. In parentheses: why there is nothing.\n";
  return printTable(kTitles, rows, out, errors);
}
