#include "windlass/Target/Cpp/MemoryFile.h"

#include "windlass/Dialect/Sched/Analysis/MemoryCourse.h"
#include "windlass/Dialect/Sched/IR/Programs.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace windlass;

template <class A, class B> static void writePair(llvm::json::OStream &json, const A &first, const B &second) {
  json.array([&] {
    json.value(first);
    json.value(second);
  });
}

static void writeLayer(llvm::json::OStream &json, const sched::MemoryCourse::Layer &layer) {
  json.attribute("content", layer.name);
  json.attributeArray("bytes", [&] {
    std::optional<int64_t> held;
    for (auto [command, bytes] : llvm::enumerate(layer.bytes)) {
      if (held != bytes)
        writePair(json, static_cast<int64_t>(command), bytes);
      held = bytes;
    }
  });
}

static void writeCourse(llvm::json::OStream &json, const sched::MemoryCourse &course) {
  json.attribute("commands", course.layers.empty() ? 0 : static_cast<int64_t>(course.layers.front().bytes.size()));
  json.attributeArray("functions", [&] {
    for (const auto &[name, first] : course.functions)
      writePair(json, name, static_cast<int64_t>(first));
  });
  json.attributeArray("layers", [&] {
    for (const sched::MemoryCourse::Layer &layer : course.layers)
      json.object([&] { writeLayer(json, layer); });
  });
}

std::string cpp::writeMemoryCourses(mlir::ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  llvm::json::OStream json(out);
  json.object([&] {
    json.attribute("version", 1);
    json.attributeArray("positions", [&] {
      for (sched::ProgramOp program : sched::getPrograms(module))
        json.object([&] { writeCourse(json, sched::followMemory(program)); });
    });
  });
  return text + "\n";
}
