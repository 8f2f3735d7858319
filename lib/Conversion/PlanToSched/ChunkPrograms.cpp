#include "ChunkPrograms.h"

#include "ChunkFlow.h"

#include "windlass/Dialect/Plan/Transforms/LayoutInference.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::sched;

ChunkPrograms::ChunkPrograms(ProgramOp whole, const schedule::Placement &placement)
    : whole(whole), symbols(whole), placement(placement), used(placement.positions) {
  OpBuilder builder(whole);
  for (int64_t position = 0; position < placement.positions; ++position) {
    auto program = ProgramOp::create(builder, whole.getLoc(), ("position_" + Twine(position)).str(), whole.getMesh());
    program.setPosition(position);
    for (StringRef name : {plan::kUnitBytesAttr, plan::kPrefetchBytesAttr})
      if (Attribute bytes = whole->getAttr(name))
        program->setAttr(name, bytes);
    programs.push_back(program);
  }
}

func::FuncOp ChunkPrograms::createFunction(Location loc, StepRole role, int64_t chunk) {
  OpBuilder builder = OpBuilder::atBlockEnd(getProgram(chunk).getBody());
  auto step = StepAttr::get(builder.getContext(), role, chunk);
  auto function = func::FuncOp::create(builder, loc, getFunctionName(step), builder.getFunctionType({}, {}));
  function->setAttr(kStepAttr, step);
  function.addEntryBlock();
  return function;
}

FlatSymbolRefAttr ChunkPrograms::use(FlatSymbolRefAttr name, int64_t chunk) {
  bool isOfSlot = getResource(name).isOfSlot();
  used[placement.positionOf[chunk]].insert({name.getAttr(), isOfSlot ? chunk : 0});
  return isOfSlot ? FlatSymbolRefAttr::get(name.getContext(), (name.getValue() + "_of_" + Twine(chunk)).str()) : name;
}

Operation *ChunkPrograms::clone(OpBuilder &builder, Operation &op, IRMapping &mapping, int64_t chunk) {
  Operation *copy = builder.clone(op, mapping);
  copy->removeAttr(plan::kChunkAttr);
  copy->removeAttr(plan::kLayoutsAttr);
  if (auto resource = op.getAttrOfType<FlatSymbolRefAttr>("resource"))
    copy->setAttr("resource", use(resource, chunk));
  return copy;
}

/// Returns the type of a whole value.
static RankedTensorType getGlobalType(plan::LayoutAttr layout, Type element) {
  SmallVector<int64_t> shape;
  for (plan::DimLayoutAttr dim : layout.getDims()) {
    shape.push_back(1);
    for (plan::FactorLayoutAttr factor : dim.getFactors())
      shape.back() *= factor.getSize();
  }
  return RankedTensorType::get(shape, element);
}

FailureOr<const ChunkPrograms::Border *> ChunkPrograms::getBorder(Value value, int64_t from, int64_t to,
                                                                  llvm::DenseSet<const Border *> &taken) {
  plan::LayoutAttr layout = plan::getLayout(value);
  auto type = llvm::cast<RankedTensorType>(value.getType());
  if (!layout || layout.getLocalType(getGlobalType(layout, type.getElementType()), whole.getMesh()) != type)
    return emitError(value.getLoc()) << "a value of type " << type << " passes from chunk " << from << " to chunk "
                                     << to << ", but no layout of it is known";
  std::deque<Border> &all = borders[{from, to}];
  auto found = llvm::find_if(
      all, [&](Border &its) { return its.type == type && its.layout == layout && !taken.contains(&its); });
  if (found == all.end()) {
    all.push_back({from, to, all.size(), type, getGlobalType(layout, type.getElementType()), layout});
    found = std::prev(all.end());
  }
  taken.insert(&*found);
  return &*found;
}

std::string ChunkPrograms::Border::getName(bool isSent) const {
  return ((isSent ? "sent_" : "received_") + Twine(from) + "_" + Twine(to) + "_" + Twine(number)).str();
}

LogicalResult ChunkPrograms::fill(func::FuncOp function, const ChunkFlow &flow, int64_t chunk, IRMapping &mapping) {
  OpBuilder builder = OpBuilder::atBlockEnd(&function.front());
  // The two sides of a border are filled one after the other, so both find the same resources in the same order.
  llvm::DenseSet<const Border *> taken, takenByNext;
  llvm::DenseMap<Value, const Border *> sent;
  int64_t next = flow.getNext(chunk), previous = chunk - (next - chunk);
  if (next >= 0 && next < placement.countChunks())
    for (Value value : flow.getReceived(next)) {
      FailureOr<const Border *> border = getBorder(value, chunk, next, takenByNext);
      if (failed(border))
        return failure();
      sent[value] = *border;
    }
  auto send = [&](Value value) {
    if (const Border *border = sent.lookup(value))
      StoreOp::create(builder, value.getLoc(), border->getName(/*isSent=*/true), mapping.lookup(value));
  };
  for (Value value : flow.getReceived(chunk)) {
    FailureOr<const Border *> border = getBorder(value, previous, chunk, taken);
    if (failed(border))
      return failure();
    mapping.map(
        value,
        LoadOp::create(builder, value.getLoc(), value.getType(), (*border)->getName(/*isSent=*/false)).getResult());
    send(value);
  }
  for (Value argument : flow.getFunction().getArguments())
    if (mapping.contains(argument) && !llvm::is_contained(flow.getReceived(chunk), argument))
      send(argument);
  for (Operation &op : flow.getFunction().front().without_terminator()) {
    if (!flow.isIn(&op, chunk))
      continue;
    clone(builder, op, mapping, chunk);
    llvm::for_each(op.getResults(), send);
  }
  return success();
}

void ChunkPrograms::declareBorder(const Border &border, bool isSent) {
  int64_t chunk = isSent ? border.from : border.to, peer = isSent ? border.to : border.from;
  Block *body = getProgram(chunk).getBody();
  auto function = body->getOps<func::FuncOp>().begin();
  OpBuilder builder(*function);
  ResourceOp::create(builder, whole.getLoc(), builder.getStringAttr(border.getName(isSent)),
                     ResourceKindAttr::get(builder.getContext(), isSent ? ResourceKind::sent : ResourceKind::received),
                     TypeAttr::get(border.type), TypeAttr::get(border.global), border.layout, /*logical_name=*/nullptr,
                     /*of=*/nullptr, /*scalar=*/nullptr, builder.getI64IntegerAttr(chunk),
                     builder.getI64IntegerAttr(peer), /*arena=*/nullptr, /*offset=*/nullptr);
}

void ChunkPrograms::declareResources() {
  for (auto [position, program] : llvm::enumerate(programs)) {
    OpBuilder builder = OpBuilder::atBlockBegin(program.getBody());
    for (auto resource : whole.getOps<ResourceOp>())
      for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk) {
        if (!used[position].contains({resource.getSymNameAttr(), chunk}))
          continue;
        auto copy = llvm::cast<ResourceOp>(builder.clone(*resource));
        if (!resource.isOfSlot())
          continue;
        copy.setSymName((resource.getSymName() + "_of_" + Twine(chunk)).str());
        copy.setChunk(chunk);
      }
  }
  for (auto &[ends, all] : borders)
    for (const Border &border : all)
      for (bool isSent : {true, false})
        declareBorder(border, isSent);
}
