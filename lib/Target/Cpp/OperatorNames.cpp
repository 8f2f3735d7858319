#include "windlass/Target/Cpp/OperatorNames.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;
using cpp::getShownOperator;

std::string cpp::getShownOperator(Operation *command) {
  // Broken characters may become three bytes each; programs read names of at most 1024.
  constexpr size_t longest = 300;
  auto id = command->getAttrOfType<StringAttr>(train::kIdAttr);
  if (!id)
    return "";
  std::string shown = llvm::json::fixUTF8(id.getValue().take_front(longest));
  return id.getValue().size() > longest ? shown + "..." : shown;
}

namespace {

/// The operators of a function's commands, as places among the names: [stream][command].
using Streams = std::vector<std::vector<int64_t>>;

class NameTable {
public:
  /// Returns the names of the commands that a function runs, in its last run or another; none for a function that the
  /// chunk lacks.
  Streams list(func::FuncOp function, bool isLast, const sched::StreamTable &table) {
    Streams commands(table.size());
    if (!function)
      return commands;
    for (Operation &op : function.getBody().front()) {
      if (!isa<sched::LaunchOp, sched::LaunchMapOp, sched::LaunchCollectiveOp>(op) || !sched::runsIn(&op, isLast))
        continue;
      auto [place, isNew] = places.try_emplace(getShownOperator(&op), static_cast<int64_t>(names.size()));
      if (isNew)
        names.push_back(place->getKey().str());
      commands[table.getNumber(&op)].push_back(place->second);
    }
    return commands;
  }
  const std::vector<std::string> &getNames() const { return names; }

private:
  std::vector<std::string> names;
  llvm::StringMap<int64_t> places;
};

/// The functions of a chunk that steps run, by title. The last backward has the commands that begin reductions, and a
/// title of its own.
struct ChunkNames {
  int64_t chunk;
  std::vector<std::pair<llvm::StringRef, Streams>> functions;
};

} // namespace

static void writeChunk(llvm::json::OStream &json, const ChunkNames &its) {
  json.object([&] {
    json.attribute("chunk", its.chunk);
    for (const auto &[title, commands] : its.functions)
      json.attributeArray(title, [&, &commands = commands] {
        for (const std::vector<int64_t> &stream : commands)
          json.array([&] {
            for (int64_t place : stream)
              json.value(place);
          });
      });
  });
}

std::string cpp::writeOperatorNames(ModuleOp module) {
  NameTable names;
  std::vector<std::vector<ChunkNames>> positions;
  for (sched::ProgramOp program : sched::getPrograms(module)) {
    sched::StreamTable table(program);
    positions.emplace_back();
    for (int64_t chunk : sched::getChunks(program)) {
      ChunkNames &its = positions.back().emplace_back();
      its.chunk = chunk;
      for (auto [title, role, isLast] : {std::tuple("forward", sched::StepRole::forward, false),
                                         {"backward", sched::StepRole::backward, false},
                                         {"last_backward", sched::StepRole::backward, true},
                                         {"weight_gradient", sched::StepRole::weight_gradient, false},
                                         {"last_weight_gradient", sched::StepRole::weight_gradient, true},
                                         {"reduce", sched::StepRole::reduce, false},
                                         {"update", sched::StepRole::update, false}})
        its.functions.emplace_back(title, names.list(sched::getStepFunction(program, role, chunk), isLast, table));
    }
  }

  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out);
  json.object([&] {
    json.attribute("version", 4);
    json.attributeArray("names", [&] {
      for (const std::string &name : names.getNames())
        json.value(name);
    });
    json.attributeArray("positions", [&] {
      for (const std::vector<ChunkNames> &chunks : positions)
        json.array([&] {
          for (const ChunkNames &its : chunks)
            writeChunk(json, its);
        });
    });
  });
  return text + "\n";
}
