#include "windlass/Target/Cpp/OperatorNames.h"

#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace windlass;

std::string cpp::getShownOperator(Operation *command) {
  // Broken characters may become three bytes each; programs read names of at most 1024.
  constexpr size_t longest = 300;
  auto id = command->getAttrOfType<StringAttr>(train::kIdAttr);
  if (!id)
    return "";
  std::string shown = llvm::json::fixUTF8(id.getValue().take_front(longest));
  return id.getValue().size() > longest ? shown + "..." : shown;
}

std::string cpp::writeOperatorNames(sched::ProgramOp program) {
  sched::StreamTable table(program);
  std::vector<std::string> names;
  llvm::StringMap<int64_t> places;
  using Streams = std::vector<std::vector<int64_t>>;
  std::vector<std::pair<llvm::StringRef, Streams>> functions;
  // The last backward has the commands that begin reductions, and a name of its own here.
  for (auto [title, role, isLast] : {std::tuple("forward", sched::StepRole::forward, false),
                                     {"backward", sched::StepRole::backward, false},
                                     {"last_backward", sched::StepRole::backward, true},
                                     {"reduce", sched::StepRole::reduce, false},
                                     {"update", sched::StepRole::update, false}}) {
    Streams &commands = functions.emplace_back(title, Streams(table.size())).second;
    for (Operation &op : sched::getStepFunction(program, role).getBody().front()) {
      if (!isa<sched::LaunchOp, sched::LaunchMapOp, sched::LaunchCollectiveOp>(op) || !sched::runsIn(&op, isLast))
        continue;
      auto [place, isNew] = places.try_emplace(getShownOperator(&op), static_cast<int64_t>(names.size()));
      if (isNew)
        names.push_back(place->getKey().str());
      commands[table.getNumber(&op)].push_back(place->second);
    }
  }

  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out);
  json.object([&] {
    json.attribute("version", 2);
    json.attributeArray("names", [&] {
      for (const std::string &name : names)
        json.value(name);
    });
    json.attributeObject("commands", [&] {
      for (const auto &[name, commands] : functions)
        json.attributeArray(name, [&, &commands = commands] {
          for (const std::vector<int64_t> &stream : commands)
            json.array([&] {
              for (int64_t place : stream)
                json.value(place);
            });
        });
    });
  });
  return text + "\n";
}
