#include "windlass/Dialect/Sched/Analysis/MemoryCourse.h"

#include "windlass/Dialect/Sched/Analysis/CommandMoves.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Support/TensorBytes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

static int64_t getPermanentBytes(ArenaOp arena) {
  auto bytes = arena->getAttrOfType<IntegerAttr>(kPermanentBytesAttr);
  return bytes ? bytes.getInt() : 0;
}

/// Adds up resources and slots of the device arena by content. What the arena holds permanently besides is named last.
static std::vector<std::pair<std::string, int64_t>> listPermanent(ProgramOp program, ArenaOp arena) {
  llvm::MapVector<StringRef, int64_t, std::map<StringRef, unsigned>> bytes;
  for (StringRef name : {"weights", "gradients", "optimizer state", "inputs", "slots of micro-batches"})
    bytes[name] = 0;
  for (auto slots : program.getOps<SlotsOp>())
    if (slots.getArena() == arena.getSymName())
      bytes["slots of micro-batches"] += static_cast<int64_t>(slots.getCount() * slots.getBytes());
  for (auto resource : program.getOps<ResourceOp>()) {
    if (resource.getArena() != arena.getSymName())
      continue;
    StringRef name = "others";
    switch (resource.getKind()) {
    case ResourceKind::parameter:
    case ResourceKind::master:
      name = "weights";
      break;
    case ResourceKind::gradient:
    case ResourceKind::reduced:
      name = "gradients";
      break;
    case ResourceKind::state:
      name = "optimizer state";
      break;
    case ResourceKind::input:
      name = "inputs";
      break;
    default:
      break;
    }
    bytes[name] += getTensorBytes(resource.getTensorType());
  }
  int64_t named = 0;
  for (const auto &[name, count] : bytes)
    named += count;
  bytes["others"] += std::max<int64_t>(0, getPermanentBytes(arena) - named);
  std::vector<std::pair<std::string, int64_t>> listed;
  for (const auto &[name, count] : bytes)
    if (count > 0)
      listed.push_back({name.str(), count});
  return listed;
}

namespace {

/// Bytes of the arena that are reused within a step, from the first to the last command that touches them.
struct Lifetime {
  int64_t begin = 0, end = 0;
  size_t first = 0, last = 0;
  bool isInForward = false, isInBackward = false;
};

} // namespace

MemoryCourse sched::followMemory(ProgramOp program) {
  MemoryCourse course;
  ArenaOp arena = getDeviceArena(program);
  if (!arena)
    return course;
  int64_t permanent = getPermanentBytes(arena);
  // By the number of the value.
  std::map<int64_t, Lifetime> lifetimes;
  size_t now = 0;
  for (func::FuncOp function : getStepFunctions(program)) {
    StepRole role = getStep(function).getRole();
    if (role == StepRole::init || role == StepRole::evaluate)
      continue;
    course.functions.push_back({function.getSymName().str(), now});
    for (Operation &op : function.front()) {
      if (!isCommand(&op))
        continue;
      auto [ins, outs] = getInsAndOuts(&op);
      for (ValueRange buffers : {ins, outs})
        for (Value buffer : buffers) {
          std::optional<int64_t> storage = getStorage(buffer);
          Extent extent = getExtent(buffer);
          auto [begin, end] = extent.bytes;
          if (!storage || extent.arena != arena.getSymNameAttr() || begin < permanent)
            continue;
          Lifetime &its = lifetimes.try_emplace(*storage, Lifetime{begin, end, now, now}).first->second;
          its.begin = std::min(its.begin, begin);
          its.end = std::max(its.end, end);
          its.last = now;
          its.isInForward |= role == StepRole::forward;
          its.isInBackward |= isOfBackward(role);
        }
      ++now;
    }
  }
  for (const auto &[name, bytes] : listPermanent(program, arena))
    course.layers.push_back({name, std::vector<int64_t>(now, bytes)});
  // First by how much each command changes them.
  std::vector<int64_t> stash(now + 1), others(now + 1);
  for (const auto &[storage, its] : lifetimes) {
    std::vector<int64_t> &changes = its.isInForward && its.isInBackward ? stash : others;
    auto bytes = static_cast<int64_t>(llvm::alignTo(static_cast<uint64_t>(its.end - its.begin), kAlignment));
    changes[its.first] += bytes;
    changes[its.last + 1] -= bytes;
  }
  for (std::vector<int64_t> *bytes : {&stash, &others}) {
    std::partial_sum(bytes->begin(), bytes->end(), bytes->begin());
    bytes->pop_back();
  }
  course.layers.push_back({"kept for the backward pass", std::move(stash)});
  course.layers.push_back({"activations and scratch", std::move(others)});
  return course;
}
