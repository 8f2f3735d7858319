#include "BufferContents.h"

using namespace mlir;
using namespace windlass;
using cpp::Label;

Label windlass::getOperator(Operation *command) {
  auto id = command->getAttrOfType<StringAttr>(train::kIdAttr);
  return id ? Label::ofName(id.getValue()) : Label();
}

/// Returns the operator of a command, or the name of what it runs where it belongs to no operator.
static Label labelOf(Operation *command) {
  if (Label label = getOperator(command); !label.empty())
    return label;
  if (auto launch = dyn_cast<sched::LaunchOp>(command))
    return Label::ofName(launch.getRow().name);
  return {};
}

/// Returns the operands that a command writes; for an all_reduce, `in` is `out`.
static MutableOperandRange outsOf(Operation *command) {
  if (auto launch = dyn_cast<sched::LaunchOp>(command))
    return launch.getOutsMutable();
  if (auto map = dyn_cast<sched::LaunchMapOp>(command))
    return map.getOutsMutable();
  return cast<sched::LaunchCollectiveOp>(command).getOutsMutable();
}

static Label labelOf(sched::ResourceOp resource) {
  llvm::StringRef logical = resource.getLogicalName().value_or(resource.getSymName());
  switch (resource.getKind()) {
  case sched::ResourceKind::input:
    return "input " + Label::ofName(logical);
  case sched::ResourceKind::parameter:
    return Label::ofName(logical);
  case sched::ResourceKind::master:
    return "master copy of " + Label::ofName(logical);
  case sched::ResourceKind::gradient:
    return "gradient of " + Label::ofName(logical);
  case sched::ResourceKind::reduced:
    return "reduced gradient of " + Label::ofName(logical);
  case sched::ResourceKind::state: {
    // `<weight>/exp_avg`.
    auto [weight, part] = logical.rsplit('/');
    return Label::ofName(part) + " of " + Label::ofName(weight);
  }
  case sched::ResourceKind::scalar:
    return resource.getScalar() ? Label::ofName(stringifyHyperparameter(*resource.getScalar())) : Label();
  case sched::ResourceKind::value:
  case sched::ResourceKind::loss:
  case sched::ResourceKind::grad_norm:
  case sched::ResourceKind::evaluate:
  case sched::ResourceKind::squares:
  case sched::ResourceKind::sent:
  case sched::ResourceKind::received:
    return Label::ofName(logical);
  }
  return {};
}

static Label andMore(Label first, size_t others) {
  return others == 0 ? first : std::move(first) + " and " + Label::ofNumber(others) + " more";
}

BufferContents::BufferContents(sched::ProgramOp program, llvm::ArrayRef<func::FuncOp> functions) {
  for (auto resource : program.getOps<sched::ResourceOp>())
    if (std::optional<sched::Place> place = sched::getPlace(resource))
      resources[place->arena].try_emplace(place->offset, resource);
  for (func::FuncOp function : functions)
    for (Operation &op : function.getBody().front().without_terminator())
      if (isa<sched::LaunchOp, sched::LaunchMapOp, sched::LaunchCollectiveOp>(op))
        addCommand(&op);
}

void BufferContents::addCommand(Operation *command) {
  MutableOperandRange outs = outsOf(command);
  unsigned firstOut = outs.empty() ? command->getNumOperands() : (*outs.begin()).getOperandNumber();
  for (OpOperand &operand : command->getOpOperands()) {
    sched::Extent extent = sched::getExtent(operand.get());
    Label label = getResources(extent);
    if (label.empty() && operand.getOperandNumber() < firstOut)
      label = getWritten(extent);
    labels[&operand] = label;
  }
  for (auto [result, out] : llvm::enumerate(outs)) {
    sched::Extent extent = sched::getExtent(out.get());
    write(extent, command, result);
    if (labels[&out].empty())
      labels[&out] = getWritten(extent);
  }
}

Label BufferContents::getResources(const sched::Extent &extent) const {
  auto found = resources.find(extent.arena);
  if (found == resources.end())
    return {};
  auto [begin, end] = extent.bytes;
  // The one that begins at or before the buffer, and those that begin inside of it.
  auto position = found->second.upper_bound(begin);
  if (position != found->second.begin())
    --position;
  Label first;
  size_t others = 0;
  for (; position != found->second.end() && position->first < end; ++position) {
    sched::ResourceOp resource = position->second;
    if (!sched::getExtent(resource)->overlaps(extent))
      continue;
    if (first.empty())
      first = labelOf(resource);
    else
      ++others;
  }
  return andMore(first, others);
}

Label BufferContents::getWritten(const sched::Extent &extent) const {
  auto found = written.find(extent.arena);
  if (found == written.end())
    return {};
  auto [begin, end] = extent.bytes;
  auto position = found->second.upper_bound(begin);
  if (position != found->second.begin())
    --position;
  const Piece *first = nullptr;
  bool isOneResult = true;
  llvm::SmallPtrSet<Operation *, 4> others;
  for (; position != found->second.end() && position->first < end; ++position) {
    const Piece &piece = position->second;
    if (piece.end <= begin)
      continue;
    if (!first)
      first = &piece;
    else if (piece.writer != first->writer)
      others.insert(piece.writer);
    isOneResult &= piece.result == first->result || piece.writer != first->writer;
  }
  if (!first)
    return {};
  Label label = labelOf(first->writer);
  // A unit's results are what it moves.
  if (auto collective = dyn_cast<sched::LaunchCollectiveOp>(first->writer);
      collective && collective.getIns().size() > 1 && !collective.exchangesRows())
    label = labels.lookup(&collective.getInsMutable()[first->result]);
  else if (isOneResult && first->result > 0)
    label = "result " + Label::ofNumber(first->result) + " of " + label;
  return andMore(label, others.size());
}

void BufferContents::write(const sched::Extent &extent, Operation *writer, unsigned result) {
  Pieces &pieces = written[extent.arena];
  auto [begin, end] = extent.bytes;
  if (begin >= end)
    return;
  auto position = pieces.upper_bound(begin);
  if (position != pieces.begin())
    --position;
  // What is left of earlier ranges on both sides.
  while (position != pieces.end() && position->first < end) {
    auto [first, piece] = *position;
    if (piece.end <= begin) {
      ++position;
      continue;
    }
    position = pieces.erase(position);
    if (first < begin)
      pieces[first] = {begin, piece.writer, piece.result};
    if (piece.end > end)
      pieces[end] = piece;
  }
  pieces[begin] = {end, writer, result};
}
