#include "windlass/Dialect/Plan/Transforms/Segments.h"

#include "windlass/Dialect/Plan/IR/ChunkCounter.h"
#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"
#include "windlass/Dialect/Train/IR/TrainFunctions.h"
#include "windlass/Support/TensorBytes.h"

#include "llvm/ADT/MapVector.h"

#include <tuple>

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;

//===----------------------------------------------------------------------===//
// Blocks and their labels
//===----------------------------------------------------------------------===//

std::vector<SegmentBlock> plan::getSegmentBlocks(ModuleOp module) {
  std::vector<SegmentBlock> blocks;
  auto function = train::getMicrobatchFunction(module);
  if (!function || function.isExternal())
    return blocks;
  llvm::DenseMap<StringAttr, size_t> known;
  for (Operation &op : function.front()) {
    auto segment = op.getAttrOfType<SegmentAttr>(kSegmentAttr);
    if (!segment)
      continue;
    auto [position, isNew] = known.try_emplace(segment.getBlock(), blocks.size());
    if (isNew) {
      SegmentBlock block;
      block.name = segment.getBlock().getValue().str();
      block.index = blocks.size();
      blocks.push_back(std::move(block));
    }
    SegmentBlock &block = blocks[position->second];
    size_t part = llvm::find(block.parts, segment.getPart().getValue()) - block.parts.begin();
    if (part == block.parts.size()) {
      block.parts.push_back(segment.getPart().getValue().str());
      block.ops.emplace_back();
    }
    block.ops[part].push_back(&op);
  }
  return blocks;
}

std::vector<std::string> SegmentBlock::getLabels() const {
  std::vector<std::string> labels = {kKeptLabel};
  if (parts.size() > 1) {
    llvm::append_range(labels, parts);
    labels.push_back(kHalvesLabel);
  }
  labels.push_back(kBlockLabel);
  return labels;
}

static int64_t getSegment(Operation *op) {
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
  return strategy ? strategy.getSegment() : -1;
}

static void setSegment(Operation *op, int64_t segment) {
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttr);
  op->setAttr(kStrategyAttr, StrategyAttr::get(op->getContext(), strategy.getSplits(), segment));
}

std::optional<std::string> SegmentBlock::getLabel() const {
  SmallVector<int64_t> numbers;
  for (const auto &part : ops) {
    for (Operation *op : part)
      if (getSegment(op) != getSegment(part.front()))
        return std::nullopt;
    numbers.push_back(getSegment(part.front()));
  }
  if (llvm::all_of(numbers, [](int64_t number) { return number < 0; }))
    return kKeptLabel;
  if (llvm::all_equal(numbers))
    return kBlockLabel;
  if (numbers.size() != 2)
    return std::nullopt;
  return numbers[0] < 0 ? parts[1] : numbers[1] < 0 ? parts[0] : kHalvesLabel;
}

std::vector<SmallVector<Operation *>> SegmentBlock::getSegments(StringRef label) const {
  std::vector<SmallVector<Operation *>> segments;
  for (auto [part, own] : llvm::zip_equal(parts, ops)) {
    if (label == kBlockLabel && !segments.empty())
      llvm::append_range(segments.back(), own);
    else if (label == kBlockLabel || label == kHalvesLabel || label == part)
      segments.push_back(own);
  }
  return segments;
}

void SegmentBlock::setLabel(StringRef label) const {
  for (const auto &part : ops)
    for (Operation *op : part)
      setSegment(op, -1);
  for (auto [i, segment] : llvm::enumerate(getSegments(label)))
    for (Operation *op : segment)
      setSegment(op, 2 * index + static_cast<int64_t>(i));
}

//===----------------------------------------------------------------------===//
// What recomputation means
//===----------------------------------------------------------------------===//

bool Recomputation::isFree(Operation *op) { return llvm::isa<train::ConstantOp, train::IotaOp, train::ReadOp>(op); }
bool Recomputation::isView(Operation *op) {
  return llvm::isa<train::ReshapeOp, train::TransposeOp, train::BroadcastOp>(op);
}

Recomputation::Recomputation(func::FuncOp microbatch)
    : microbatch(microbatch), mesh(microbatch->getParentOfType<ModuleOp>()->getAttrOfType<MeshAttr>(kMeshAttr)) {
  for (auto stash : microbatch.getOps<train::StashOp>()) {
    stashes[stash.getValue()] = stash;
    SmallVector<Operation *> users(stash.getResult().getUsers());
    llvm::DenseSet<Operation *> seen(users.begin(), users.end());
    while (!users.empty()) {
      Operation *user = users.pop_back_val();
      // Views cost nothing, so their readers decide.
      if ((isView(user) || llvm::isa<train::SliceOp>(user)) && !user->use_empty()) {
        for (Operation *next : user->getUsers())
          if (seen.insert(next).second)
            users.push_back(next);
        continue;
      }
      Attribute id = user->getAttr(train::kForwardAttr);
      if (!llvm::is_contained(readers[stash], id))
        readers[stash].push_back(id);
    }
  }
}

void Recomputation::clear() {
  segments.clear();
  added.clear();
  needed.clear();
}

void Recomputation::add(ArrayRef<Operation *> ops) {
  llvm::DenseSet<Operation *> own(ops.begin(), ops.end());
  llvm::DenseSet<Attribute> ids;
  for (Operation *op : ops)
    ids.insert(op->getAttr(train::kIdAttr));
  auto isDropped = [&](Value value) {
    train::StashOp stash = stashes.lookup(value);
    return stash && !needed.contains(value) &&
           llvm::all_of(readers.lookup(stash), [&](Attribute reader) { return ids.contains(reader); });
  };
  auto isStashed = [&](Value value) { return added.contains(value) || (stashes.contains(value) && !isDropped(value)); };

  Segment segment;
  llvm::DenseSet<Operation *> copied;
  SmallVector<Operation *> open;
  auto copy = [&](Operation *op) {
    if (copied.insert(op).second)
      open.push_back(op);
  };
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (isDropped(result)) {
        segment.dropped.push_back(stashes.lookup(result));
        copy(op);
      }
  llvm::SetVector<Value> inputs;
  while (!open.empty()) {
    SmallVector<Value> values(open.pop_back_val()->getOperands());
    while (!values.empty()) {
      Value value = values.pop_back_val();
      Operation *source = value.getDefiningOp();
      if (!source || isFree(source))
        continue;
      if (own.contains(source) && !isStashed(value))
        copy(source);
      else if (isView(source) && !isStashed(value))
        llvm::append_range(values, source->getOperands());
      else
        inputs.insert(value);
    }
  }
  for (Value value : inputs) {
    needed.insert(value);
    if (!stashes.contains(value))
      added.insert(value);
  }
  for (Operation *op : ops)
    if (copied.contains(op))
      segment.ops.push_back(op);
  for (train::StashOp stash : segment.dropped)
    for (Operation *user : stash.getResult().getUsers())
      if (!segment.before || user->isBeforeInBlock(segment.before))
        segment.before = user;
  if (segment.before)
    segments.push_back(std::move(segment));
}

void Recomputation::addChosen() {
  // A segment ends where a chunk does, since a position recomputes only what it runs.
  ChunkCounter chunks(microbatch->getParentOfType<ModuleOp>()->getAttrOfType<PipelineAttr>(kPipelineAttr));
  llvm::MapVector<std::pair<int64_t, int64_t>, SmallVector<Operation *>> chosen;
  for (Operation &op : microbatch.front()) {
    int64_t chunk = chunks.advance(op);
    if (int64_t segment = getSegment(&op); segment >= 0)
      chosen[{segment, chunk}].push_back(&op);
  }
  for (auto &[number, ops] : llvm::reverse(chosen))
    add(ops);
}

int64_t Recomputation::getBytes(Value value) const {
  return getTensorBytes(getLayout(value).getLocalType(llvm::cast<RankedTensorType>(value.getType()), mesh));
}

double Recomputation::getFlops(Operation *op) const {
  auto compute = llvm::dyn_cast<train::TrainOpInterface>(op);
  if (!compute)
    return 0;
  double flops = compute.getCost().flops;
  for (FactorAxesAttr split : op->getAttrOfType<StrategyAttr>(kStrategyAttr).getSplits())
    for (StringAttr axis : split.getAxes())
      flops /= static_cast<double>(mesh.sizeOf(axis.getValue()));
  return flops;
}

int64_t Recomputation::getFreedBytes() const {
  int64_t bytes = 0;
  for (const Segment &segment : segments)
    for (train::StashOp stash : segment.dropped)
      if (!needed.contains(stash.getValue()))
        bytes += getBytes(stash.getResult());
  for (Value value : added)
    bytes -= getBytes(value);
  return bytes;
}

double Recomputation::getFlops() const {
  double flops = 0;
  for (const Segment &segment : segments)
    for (Operation *op : segment.ops)
      flops += getFlops(op);
  return flops;
}

int64_t Recomputation::getStashBytes() {
  int64_t bytes = 0;
  for (auto stash : microbatch.getOps<train::StashOp>())
    bytes += getBytes(stash.getResult());
  return bytes;
}

double Recomputation::getAllFlops() {
  double flops = 0;
  for (Operation &op : microbatch.front())
    flops += getFlops(&op);
  return flops;
}

//===----------------------------------------------------------------------===//
// The order in which segments are taken
//===----------------------------------------------------------------------===//

RecomputeSteps::RecomputeSteps(ModuleOp module) {
  std::vector<SegmentBlock> all = getSegmentBlocks(module);
  blocks = all.size();
  Recomputation recompute(train::getMicrobatchFunction(module));
  auto measure = [&](std::initializer_list<ArrayRef<Operation *>> parts) {
    recompute.clear();
    for (ArrayRef<Operation *> part : parts)
      recompute.add(part);
    return std::pair(recompute.getFreedBytes(), recompute.getFlops());
  };
  // Equally good segments are in program order.
  auto byDensity = [](const Step &a, const Step &b) {
    double forA = static_cast<double>(a.bytes) * b.flops, forB = static_cast<double>(b.bytes) * a.flops;
    return std::tuple(forB, a.block, a.part) < std::tuple(forA, b.block, b.part);
  };
  for (auto [i, block] : llvm::enumerate(all))
    for (size_t part = 0; part < block.parts.size(); ++part)
      if (auto [bytes, flops] = measure({block.ops[part]}); bytes > 0)
        steps.push_back({i, part, block.parts.size() == 1 ? kBlockLabel : block.parts[part], bytes, flops});
  llvm::sort(steps, byDensity);
  parts = steps.size();

  std::vector<Step> joins;
  for (auto [i, block] : llvm::enumerate(all)) {
    if (llvm::count_if(steps, [&, i = i](const Step &step) { return step.block == i; }) < 2)
      continue;
    auto [apartBytes, apartFlops] = measure({block.ops[1], block.ops[0]});
    if (auto [bytes, flops] = measure({block.getSegments(kBlockLabel).front()}); bytes > apartBytes)
      joins.push_back({i, 0, kBlockLabel, bytes - apartBytes, std::max(0.0, flops - apartFlops)});
  }
  llvm::sort(joins, byDensity);
  llvm::append_range(steps, joins);

  for (size_t count = 0; count <= steps.size(); ++count) {
    recompute.clear();
    std::vector<std::string> labels = getLabels(count);
    for (const SegmentBlock &block : llvm::reverse(all)) {
      std::vector<SmallVector<Operation *>> segments = block.getSegments(labels[block.index]);
      for (const auto &segment : llvm::reverse(segments))
        recompute.add(segment);
    }
    freed.push_back(recompute.getFreedBytes());
  }
}

std::vector<std::string> RecomputeSteps::getLabels(size_t count) const {
  std::vector<std::string> labels(blocks, kKeptLabel);
  for (const Step &step : ArrayRef(steps).take_front(count)) {
    std::string &label = labels[step.block];
    bool isSecondHalf = label != kKeptLabel && step.label != kBlockLabel;
    label = isSecondHalf ? kHalvesLabel : step.label;
  }
  return labels;
}

void RecomputeSteps::apply(ModuleOp module, size_t count) const {
  for (auto [block, label] : llvm::zip_equal(getSegmentBlocks(module), getLabels(count)))
    block.setLabel(label);
}
