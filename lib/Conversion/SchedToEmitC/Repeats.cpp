#include "Repeats.h"

#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

static constexpr char kEvent[] = "event";

bool windlass::isInSlot(Value buffer, const sched::ArenaTable &arenas) {
  std::optional<sched::ArenaTable::Area> area = arenas.find(sched::getPlace(buffer).arena);
  return area && area->slots;
}

llvm::SmallVector<int64_t> windlass::numbersOf(Operation *command) {
  llvm::SmallVector<int64_t> numbers;
  for (Value buffer : command->getOperands())
    numbers.push_back(buffer.getDefiningOp<sched::BufferOp>().getOffset());
  if (isa<sched::RecordOp, sched::WaitOp>(command))
    numbers.push_back(command->getAttrOfType<IntegerAttr>(kEvent).getInt());
  return numbers;
}

/// Returns the name of a buffer's arena. The slots of all chunks have one: a function uses those of its own chunk.
static StringRef getArenaName(Value buffer, const sched::ArenaTable &arenas) {
  std::optional<sched::ArenaTable::Area> area = arenas.find(sched::getPlace(buffer).arena);
  if (area && area->slots)
    return area->slots.getHanded() ? "handed" : "slot";
  return buffer.getDefiningOp<sched::BufferOp>().getArena();
}

/// Returns a text of everything about a command but its numbers and labels, including the arenas of its buffers.
static std::string signatureOf(Operation *command, const sched::ArenaTable &arenas) {
  std::string text;
  llvm::raw_string_ostream out(text);
  out << command->getName().getStringRef();
  for (NamedAttribute attribute : command->getAttrDictionary())
    if (attribute.getName() != plan::kRepeatAttr && attribute.getName() != train::kIdAttr &&
        attribute.getName() != train::kForwardAttr && attribute.getName() != kEvent)
      out << ' ' << attribute.getName().getValue() << '=' << attribute.getValue();
  for (Value buffer : command->getOperands())
    out << ' ' << getArenaName(buffer, arenas) << ' ' << buffer.getType();
  out << '\n';
  return text;
}

static cpp::Label labelOf(Attribute attribute) {
  auto repeat = llvm::dyn_cast_or_null<plan::RepeatAttr>(attribute);
  return repeat ? cpp::Label::ofName(repeat.getClassName().getValue()) + "." + cpp::Label::ofNumber(repeat.getIndex())
                : cpp::Label();
}

Repeats::Repeats(llvm::ArrayRef<func::FuncOp> functions, const sched::ArenaTable &arenas) {
  for (func::FuncOp function : functions) {
    std::vector<Instance> &cut = instances[function.getName().str()];
    Attribute last;
    for (Operation &op : function.getBody().front().without_terminator()) {
      if (isa<sched::BufferOp>(op))
        continue;
      Attribute repeat = op.getAttr(plan::kRepeatAttr);
      if (cut.empty() || repeat != last)
        cut.push_back(Instance{{}, repeat != nullptr, labelOf(repeat)});
      cut.back().commands.push_back(&op);
      last = repeat;
    }
  }

  // Blocks in order of first use: the result does not depend on hashes or addresses.
  std::map<std::string, int> found;
  std::vector<std::vector<std::vector<int64_t>>> numbers; // block, use, place
  std::vector<std::vector<Instance *>> uses;
  for (func::FuncOp function : functions)
    for (Instance &instance : instances[function.getName().str()]) {
      if (!instance.isRepeated)
        continue;
      std::string signature;
      std::vector<int64_t> places;
      for (Operation *command : instance.commands) {
        signature += signatureOf(command, arenas);
        llvm::append_range(places, numbersOf(command));
      }
      auto [position, isNew] = found.try_emplace(signature, static_cast<int>(blocks.size()));
      if (isNew) {
        RepeatedBlock block;
        block.commands = instance.commands;
        for (Operation *command : instance.commands)
          block.hasSlot |= llvm::any_of(command->getOperands(), [&](Value buffer) { return isInSlot(buffer, arenas); });
        blocks.push_back(std::move(block));
        numbers.emplace_back();
        uses.emplace_back();
      }
      instance.block = position->second;
      numbers[instance.block].push_back(std::move(places));
      uses[instance.block].push_back(&instance);
    }

  for (size_t b = 0; b < blocks.size(); ++b) {
    RepeatedBlock &block = blocks[b];
    size_t places = numbers[b].front().size();
    // Places that change together share a column; one that never changes needs none.
    std::map<std::vector<int64_t>, int> columns;
    for (size_t i = 0; i < places; ++i) {
      std::vector<int64_t> column;
      for (const std::vector<int64_t> &use : numbers[b])
        column.push_back(use[i]);
      if (llvm::all_equal(column)) {
        block.columns.push_back(-1);
        continue;
      }
      block.columns.push_back(columns.try_emplace(column, static_cast<int>(columns.size())).first->second);
    }
    std::map<std::vector<int64_t>, int> rows;
    for (auto [use, instance] : llvm::zip_equal(numbers[b], uses[b])) {
      std::vector<int64_t> row(columns.size());
      for (size_t i = 0; i < places; ++i)
        if (block.columns[i] >= 0)
          row[block.columns[i]] = use[i];
      auto [position, isNew] = rows.try_emplace(row, static_cast<int>(block.rows.size()));
      if (isNew) {
        block.rows.push_back(row);
        block.labels.push_back(instance->label);
      }
      instance->row = position->second;
    }
  }
}
