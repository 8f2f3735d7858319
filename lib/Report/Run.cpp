#include "windlass/Report/Run.h"

#include "windlass/Report/Page.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace windlass;
using namespace windlass::report;

/// The largest step number; beyond it neighbouring steps would be one number on a chart's axis.
static constexpr int64_t kMostSteps = int64_t(1) << 40;

/// The most rows of a file, and the most bytes of a row.
static constexpr size_t kMostRows = size_t(1) << 25, kLongestRow = size_t(1) << 16;

static double numberOf(const rt::json &row, llvm::StringRef key) {
  const rt::json *value = row.find(std::string_view(key.data(), key.size()));
  return value && value->kind == rt::json::type::number ? value->number : NAN;
}

/// Returns a quantity, or 0 where it is missing or none.
static double quantityOf(const rt::json &row, llvm::StringRef key) {
  double value = numberOf(row, key);
  return std::isfinite(value) && value > 0 ? value : 0;
}

/// Returns a value as people read it; objects and lists are not shown.
static std::string textOf(const rt::json &value) {
  switch (value.kind) {
  case rt::json::type::string:
    return value.string;
  case rt::json::type::number:
    return value.is_integer ? std::to_string(value.integer) : rt::json_number(value.number);
  case rt::json::type::boolean:
    return value.boolean ? "yes" : "no";
  default:
    return "";
  }
}

static int64_t bytesOf(const rt::json &value) { return value.is_integer && value.integer > 0 ? value.integer : 0; }

static void addFacts(const rt::json *object, Facts &facts) {
  if (!object || !object->is_object())
    return;
  for (size_t i = 0; i < object->keys.size(); ++i)
    if (std::string text = textOf(object->items[i]); !text.empty()) {
      std::string name = object->keys[i];
      if (llvm::StringRef(name).ends_with("_bytes")) {
        text = formatBytes(bytesOf(object->items[i]));
        name.resize(name.size() - llvm::StringRef("_bytes").size());
      }
      std::replace(name.begin(), name.end(), '_', ' ');
      facts.emplace_back(name, text);
    }
}

static void readMemory(const rt::json &root, Memory &memory) {
  if (const rt::json *device = root.find("device_memory"); device && device->is_object())
    for (size_t i = 0; i < device->keys.size(); ++i) {
      int64_t bytes = bytesOf(device->items[i]);
      if (device->keys[i] == "arena")
        memory.arena = bytes;
      else if (device->keys[i] != "pinned")
        memory.parts.emplace_back(device->keys[i], bytes);
    }
  if (const rt::json *reserve = root.find("reserve"))
    if (const rt::json *total = reserve->find("total"))
      memory.reserve = bytesOf(*total);
  if (const rt::json *processes = root.find("processes"); processes && processes->is_array())
    for (const rt::json &process : processes->items) {
      const rt::json *host = process.find("host"), *peak = process.find("peak_bytes");
      if (host && peak)
        memory.processes.emplace_back(textOf(*host), bytesOf(*peak));
    }
}

static llvm::Error readRecord(const std::string &path, Run &run) {
  std::string text;
  rt::json root;
  if (rt::status read = rt::read_text(path, 16 << 20, text); !read.is_ok())
    return makeError(read.message());
  if (rt::status parsed = rt::parse_json(text, root); !parsed.is_ok())
    return makeError(printable(path) + " is " + parsed.message());
  for (auto [key, name] : {std::pair("model", "model"), std::pair("plan_hash", "plan"), std::pair("ranks", "ranks")})
    if (const rt::json *value = root.find(key))
      if (std::string shown = textOf(*value); !shown.empty())
        run.settings.emplace_back(name, shown);
  if (const rt::json *model = root.find("model"))
    run.model = textOf(*model);
  if (const rt::json *mesh = root.find("mesh"); mesh && mesh->is_object())
    for (size_t i = 0; i < mesh->keys.size(); ++i)
      run.settings.emplace_back("axis " + mesh->keys[i], textOf(mesh->items[i]));
  addFacts(root.find("settings"), run.settings);
  addFacts(root.find("machine"), run.machine);
  readMemory(root, run.memory);
  run.isFinished = root.find("last_step") != nullptr;
  return llvm::Error::success();
}

static llvm::Error readKernels(const std::string &path, Run &run) {
  std::string text;
  rt::json root;
  if (rt::status read = rt::read_text(path, 64 << 20, text); !read.is_ok())
    return makeError(read.message());
  if (rt::status parsed = rt::parse_json(text, root); !parsed.is_ok())
    return makeError(printable(path) + " is " + parsed.message());
  run.kernelSteps = numberOf(root, "steps");
  run.kernelSeconds = numberOf(root, "step_seconds");
  run.flopsRate = quantityOf(root, "flops_per_second");
  run.bytesRate = quantityOf(root, "bytes_per_second");
  const rt::json *rows = root.find("kernels");
  if (!rows || !rows->is_array())
    return llvm::Error::success();
  for (const rt::json &row : rows->items) {
    const rt::json *name = row.find("name"), *sizes = row.find("sizes");
    double calls = numberOf(row, "calls"), seconds = numberOf(row, "seconds");
    if (!name || !name->is_string() || !std::isfinite(calls) || !std::isfinite(seconds))
      continue;
    std::string shape;
    if (sizes && sizes->is_array())
      for (const rt::json &size : sizes->items)
        shape += (shape.empty() ? "" : " × ") + textOf(size);
    run.kernels.push_back({name->string, shape, calls, seconds, calls * quantityOf(row, "flops_per_call"),
                           calls * quantityOf(row, "bytes_per_call"), quantityOf(row, "roof_seconds")});
  }
  llvm::sort(run.kernels, [](const Kernel &a, const Kernel &b) {
    return std::tie(b.seconds, a.name, a.sizes) < std::tie(a.seconds, b.name, b.sizes);
  });
  return llvm::Error::success();
}

static void readRow(llvm::StringRef line, Run &run) {
  rt::json row;
  const rt::json *step = nullptr;
  if (rt::parse_json(std::string_view(line.data(), line.size()), row).is_ok())
    step = row.find("step");
  if (!step || !step->is_integer || step->integer < 0 || step->integer > kMostSteps) {
    ++run.badLines;
    return;
  }
  if (double loss = numberOf(row, "eval_loss"); row.find("eval_loss")) {
    run.evaluations.push_back({step->integer, loss});
    return;
  }
  run.steps.push_back({step->integer, numberOf(row, "loss"), numberOf(row, "grad_norm"), numberOf(row, "lr"),
                       numberOf(row, "seconds"), numberOf(row, "tokens_per_s"), numberOf(row, "samples_per_s")});
  if (const rt::json *sent = row.find("collective_bytes"); sent && sent->is_object()) {
    run.collectives.clear();
    for (size_t i = 0; i < sent->keys.size(); ++i)
      run.collectives.emplace_back(sent->keys[i], bytesOf(sent->items[i]));
  }
}

static llvm::Error readMetrics(const std::string &path, Run &run) {
  rt::input_file file;
  if (rt::status opened = file.open(path); !opened.is_ok())
    return makeError(opened.message());
  size_t rows = 0;
  rt::status read = rt::for_each_line(file, kLongestRow, [&](std::string_view line) {
    readRow(llvm::StringRef(line.data(), line.size()), run);
    return ++rows <= kMostRows
               ? rt::ok_status()
               : rt::bad_input(printable(path) + " has more than " + std::to_string(kMostRows) + " rows");
  });
  return read.is_ok() ? llvm::Error::success() : makeError(read.message());
}

llvm::Expected<Run> report::readRun(const std::string &folder) {
  Run run;
  run.folder = folder;
  std::string record = rt::join_path(folder, "run.json"), metrics = rt::join_path(folder, "metrics.jsonl");
  bool hasRecord = rt::is_file(record), hasMetrics = rt::is_file(metrics);
  if (!hasRecord && !hasMetrics)
    return makeError(printable(folder) + " is no run: it holds neither metrics.jsonl nor run.json");
  if (hasRecord)
    if (llvm::Error error = readRecord(record, run))
      return std::move(error);
  if (hasMetrics)
    if (llvm::Error error = readMetrics(metrics, run))
      return std::move(error);
  if (std::string kernels = rt::join_path(folder, "kernels.json"); rt::is_file(kernels))
    if (llvm::Error error = readKernels(kernels, run))
      return std::move(error);
  std::vector<rt::checkpoint_listing> held;
  if (rt::list_checkpoints(folder, held).is_ok())
    for (const rt::checkpoint_listing &each : held)
      run.checkpoints.push_back(rt::checkpoint_name(each.step));
  return run;
}
