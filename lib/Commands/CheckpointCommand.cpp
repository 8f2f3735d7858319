// windlass checkpoint: what a checkpoint holds, and its tensors in another form.
#include "CommandSupport.h"

#include "windlass/Commands/Commands.h"
#include "windlass/Support/Words.h"
#include "windlass/rt/checkpoint.h"
#include "windlass/rt/file.h"
#include "windlass/rt/json.h"

#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace windlass;

static int exportTensors(Console &console, const std::string &folder, const std::string &output, rt::exported what,
                         const CommonFlags &common) {
  if (output.empty())
    return console.fail(Code::usage, "checkpoint export needs -o FILE");
  if (rt::status done = rt::export_checkpoint(folder, output, what).as(Code::checkpoint); !done.is_ok())
    return console.fail(done);
  if (common.json) {
    llvm::json::OStream json(llvm::outs());
    json.object([&] { json.attribute("file", output); });
    llvm::outs() << "\n";
  } else if (!common.quiet) {
    llvm::outs() << "wrote " << output << "\n";
  }
  return kDone;
}

static std::string shapeText(const std::vector<int64_t> &sizes) {
  std::string text = "[";
  for (int64_t size : sizes)
    text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + "]";
}

/// Returns the bytes of a tensor; the manifest has been checked not to overflow.
static int64_t bytesOf(const rt::checkpoint_tensor &tensor) {
  int64_t bytes = rt::size_of(tensor.type);
  for (int64_t size : tensor.sizes)
    bytes *= size;
  return bytes;
}

static void printJson(const std::string &folder, const rt::checkpoint_manifest &manifest) {
  llvm::json::OStream json(llvm::outs(), 1);
  json.object([&] {
    json.attribute("folder", folder);
    json.attribute("step", manifest.step);
    json.attribute("next_micro_batch", manifest.next_micro_batch);
    json.attribute("seed", std::to_string(manifest.seed));
    json.attribute("skipped_updates", manifest.skipped_updates);
    if (manifest.scale)
      json.attribute("loss_scale", manifest.scale->value);
    json.attribute("model", manifest.model);
    json.attribute("plan_hash", manifest.plan_hash);
    if (!manifest.optimizer.empty())
      json.attribute("optimizer", manifest.optimizer);
    json.attributeArray("files", [&] {
      for (const rt::checkpoint_file &file : manifest.files)
        json.object([&] {
          json.attribute("name", file.name);
          json.attribute("bytes", file.bytes);
          json.attribute("sha256", file.digest);
        });
    });
    json.attributeArray("tensors", [&] {
      for (const rt::checkpoint_tensor &tensor : manifest.tensors)
        json.object([&] {
          json.attribute("name", tensor.name);
          json.attribute("kind", tensor.is_state ? "state" : "parameter");
          json.attribute("dtype", rt::safetensors_name(tensor.type));
          json.attribute("shape", llvm::json::Array(tensor.sizes));
          json.attribute("bytes", bytesOf(tensor));
          json.attribute("pieces", tensor.pieces());
        });
    });
  });
  llvm::outs() << "\n";
}

static void printText(const std::string &folder, const rt::checkpoint_manifest &manifest) {
  int64_t bytes[2] = {0, 0}, counts[2] = {0, 0}, fileBytes = 0;
  size_t width = 0;
  for (const rt::checkpoint_tensor &tensor : manifest.tensors) {
    bytes[tensor.is_state] += bytesOf(tensor);
    ++counts[tensor.is_state];
    width = std::max(width, rt::quote(tensor.name).size());
  }
  for (const rt::checkpoint_file &file : manifest.files)
    fileBytes += file.bytes;
  llvm::outs() << "checkpoint  " << folder << "\n"
               << "model       " << rt::quote(manifest.model) << ", plan " << rt::quote(manifest.plan_hash) << "\n"
               << "step        " << manifest.step << ", next micro-batch " << manifest.next_micro_batch << ", seed "
               << manifest.seed;
  if (!manifest.optimizer.empty())
    llvm::outs() << ", optimizer " << rt::quote(manifest.optimizer);
  if (manifest.scale)
    llvm::outs() << ", loss scale " << rt::json_number(manifest.scale->value) << ", "
                 << countOf(manifest.skipped_updates, "update") << " left out";
  llvm::outs() << "\n"
               << "files       " << manifest.files.size() << " of " << sizeText(fileBytes) << ", all hashes right\n"
               << "tensors     " << countOf(counts[0], "parameter or buffer", "parameters and buffers") << " of "
               << sizeText(bytes[0]) << ", " << counts[1] << " of optimizer state of " << sizeText(bytes[1]) << "\n";
  for (const rt::checkpoint_tensor &tensor : manifest.tensors) {
    std::string name = rt::quote(tensor.name);
    llvm::outs() << "  " << name
                 << std::string(std::min<size_t>(width, 60) - std::min<size_t>(name.size(), 60) + 2, ' ')
                 << rt::safetensors_name(tensor.type) << shapeText(tensor.sizes);
    if (tensor.pieces() > 1)
      llvm::outs() << ", " << tensor.pieces() << " pieces";
    llvm::outs() << "\n";
  }
}

static int inspect(Console &console, const std::string &dir, const CommonFlags &common) {
  rt::checkpoint_manifest manifest;
  std::string folder;
  if (rt::status found = rt::find_checkpoint(dir, folder, manifest).as(Code::checkpoint); !found.is_ok())
    return console.fail(found);
  if (common.json)
    printJson(folder, manifest);
  else
    printText(folder, manifest);
  return kDone;
}

int windlass::runCheckpoint(Console &console, const std::vector<std::string> &words) {
  Flags flags(
      "checkpoint inspect DIR | checkpoint export DIR -o FILE [--state | --ema]",
      "inspect verifies a checkpoint's hashes and prints what it holds; export merges one of any layout into one\n"
      "safetensors file of whole tensors by logical name. DIR is a checkpoint's folder, or a run's, whose newest\n"
      "valid one is taken.\n"
      "For example: windlass checkpoint export run -o trained.safetensors");
  CommonFlags common;
  std::string output;
  bool state = false, ema = false;
  flags.addText("o", "FILE", "of export: the safetensors file", output);
  flags.addSwitch("state", "of export: the optimizer's state too", state);
  flags.addSwitch("ema", "of export: the moving averages of the weights in their place", ema);
  common.declare(flags);
  std::vector<std::string> positional;
  int code;
  if (!parseWords(console, flags, common, words, positional, 2, 2, code))
    return code;
  if (state && ema)
    return console.fail(Code::usage,
                        "--state and --ema exclude each other: state holds the averages under names of its own");
  if (positional[0] == "export")
    return exportTensors(console, positional[1], output,
                         state ? rt::exported::all
                         : ema ? rt::exported::averages
                               : rt::exported::parameters,
                         common);
  if (positional[0] != "inspect")
    return console.fail(Code::usage,
                        "unknown action " + printable(positional[0]) + "; checkpoint knows: inspect, export");
  if (flags.isGiven("o") || state || ema)
    return console.fail(Code::usage,
                        "-o, --state and --ema are for checkpoint export; inspect prints to standard output");
  return inspect(console, positional[1], common);
}
