#include "AcesoCase.h"

#include "windlass/Support/InputFile.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Regex.h"

#include <cmath>

using namespace windlass;
using namespace windlass::peers;

static constexpr int64_t kMostFileBytes = 64 << 20;
static constexpr size_t kMostOps = 2'000;
static constexpr int64_t kMostGpus = 256, kMostAlgorithms = 4;
static constexpr double kMostNumber = 1e12;
/// The milliseconds of a collective whose size was not measured.
static constexpr double kUnknownMs = 100'000;
/// The weights, a master copy, gradients and optimizer state; in full precision there is no master copy.
static constexpr double kCopies = 1 + 2 + 1 + 4, kCopiesFp32 = 1 + 1 + 2;

namespace {

/// The lines of a table, each with one text for each column that was asked for.
using Lines = std::vector<std::vector<std::string>>;

llvm::Expected<Lines> readTable(llvm::StringRef folder, llvm::StringRef name, llvm::ArrayRef<llvm::StringRef> columns) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, name);
  auto buffer = readInputFile(path, kMostFileBytes, "table");
  if (!buffer)
    return buffer.takeError();
  llvm::SmallVector<llvm::StringRef> lines, head;
  (*buffer)->getBuffer().split(lines, '\n', -1, /*KeepEmpty=*/false);
  if (lines.empty())
    return makeError(name + " is empty");
  lines.front().trim().split(head, ',');
  std::vector<size_t> places;
  for (llvm::StringRef column : columns) {
    auto *found = llvm::find(head, column);
    if (found == head.end())
      return makeError(name + " has no column '" + column + "'");
    places.push_back(found - head.begin());
  }
  Lines table;
  for (llvm::StringRef line : llvm::ArrayRef(lines).drop_front()) {
    llvm::SmallVector<llvm::StringRef> cells;
    line.trim().split(cells, ',');
    if (cells.size() != head.size())
      return makeError(name + " has a line of " + llvm::Twine(cells.size()) + " cells, not " +
                       llvm::Twine(head.size()));
    table.emplace_back();
    for (size_t place : places)
      table.back().push_back(cells[place].str());
  }
  return table;
}

llvm::Error readNumber(llvm::StringRef table, const std::string &text, double &number) {
  if (llvm::StringRef(text).getAsDouble(number) || !(number >= 0 && number <= kMostNumber))
    return makeError(table + " has '" + text + "' where a number of at least 0 belongs");
  return llvm::Error::success();
}

llvm::Error readInteger(llvm::StringRef table, const std::string &text, int64_t least, int64_t most, int64_t &number) {
  if (llvm::StringRef(text).getAsInteger(10, number) || number < least || number > most)
    return makeError(table + " has '" + text + "' where an integer from " + llvm::Twine(least) + " to " +
                     llvm::Twine(most) + " belongs");
  return llvm::Error::success();
}

llvm::Error readOps(llvm::StringRef folder, AcesoCase &result) {
  auto table = readTable(folder, "ops.csv",
                         {"op", "micro_batch", "tensor_parallel", "algorithm", "forward_us", "backward_us", "input_mb",
                          "output_mb", "weights_mb", "activations_mb", "forward_reserved_mb", "backward_reserved_mb"});
  if (!table)
    return table.takeError();
  std::map<std::string, size_t> byName;
  result.algorithms = 1;
  for (const auto &line : *table) {
    auto [found, isNew] = byName.insert({line[0], result.names.size()});
    if (isNew)
      result.names.push_back(line[0]);
    int64_t microBatch, tensor, algorithm;
    AcesoRow row;
    if (llvm::Error error = readInteger("ops.csv", line[1], 1, 1 << 20, microBatch))
      return error;
    if (llvm::Error error = readInteger("ops.csv", line[2], 1, kMostGpus, tensor))
      return error;
    if (llvm::Error error = readInteger("ops.csv", line[3], 0, kMostAlgorithms - 1, algorithm))
      return error;
    double *fields[] = {&row.forward, &row.backward,    &row.input,           &row.output,
                        &row.weights, &row.activations, &row.forwardReserved, &row.backwardReserved};
    for (auto [index, field] : llvm::enumerate(fields))
      if (llvm::Error error = readNumber("ops.csv", line[4 + index], *field))
        return error;
    result.algorithms = std::max(result.algorithms, algorithm + 1);
    if (!result.rows.insert({{found->second, microBatch, tensor, algorithm}, row}).second)
      return makeError("ops.csv has two rows of '" + line[0] + "' for one micro-batch, degree and algorithm");
  }
  return result.names.empty() ? makeError("ops.csv has no rows") : llvm::Error::success();
}

llvm::Error readCollectives(llvm::StringRef folder, AcesoCase &result) {
  // Models that never change layouts come without.
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "collectives.csv");
  if (!llvm::sys::fs::exists(path))
    return llvm::Error::success();
  auto collectives = readTable(folder, "collectives.csv", {"collective", "gpus", "mb", "ms"});
  if (!collectives)
    return collectives.takeError();
  for (const auto &line : *collectives) {
    int64_t gpus, size;
    double mb, ms;
    if (llvm::Error error = readInteger("collectives.csv", line[1], 1, kMostGpus, gpus))
      return error;
    if (llvm::Error error = readNumber("collectives.csv", line[2], mb))
      return error;
    if (llvm::Error error = readNumber("collectives.csv", line[3], ms))
      return error;
    // Only whole sizes are ever looked up.
    if (!llvm::StringRef(line[2]).getAsInteger(10, size))
      result.collectives[{line[0], gpus, size}] = ms;
  }
  return llvm::Error::success();
}

llvm::Error readLinks(llvm::StringRef folder, AcesoCase &result) {
  auto links = readTable(folder, "p2p.csv", {"link", "gb_per_s"});
  if (!links)
    return links.takeError();
  for (const auto &line : *links) {
    double speed;
    if (llvm::Error error = readNumber("p2p.csv", line[1], speed))
      return error;
    if ((line[0] != "intra_node" && line[0] != "inter_node") || speed <= 0)
      return makeError("p2p.csv has a line that is no speed of intra_node or inter_node");
    result.links[line[0] == "inter_node"].push_back(speed);
  }
  if (result.links[0].empty())
    return makeError("p2p.csv has no speeds of intra_node");
  if (result.links[1].empty())
    result.links[1] = result.links[0];
  return llvm::Error::success();
}

/// Puts the operators in order: what `op_order` calls "ops 2-14 once per layer" repeats, all others run once.
llvm::Error orderOps(llvm::StringRef text, int64_t layers, AcesoCase &result) {
  llvm::Regex range("([0-9]+) *- *([0-9]+) once per layer");
  llvm::SmallVector<llvm::StringRef> parts;
  size_t done = 0;
  auto append = [&](size_t end, int64_t times) {
    for (int64_t i = 0; i < times && result.order.size() <= kMostOps; ++i)
      for (size_t op = done; op < end; ++op)
        result.order.push_back(op);
    done = end;
  };
  while (range.match(text, &parts)) {
    size_t first, last;
    if (parts[1].getAsInteger(10, first) || parts[2].getAsInteger(10, last) || first <= done || last < first ||
        last > result.names.size() || layers < 1)
      return makeError("'op_order' repeats operators that ops.csv does not have in that order, or 'layers' is missing");
    append(first - 1, 1);
    append(last, layers);
    text = text.substr(parts[0].end() - text.begin());
  }
  append(result.names.size(), 1);
  if (result.order.size() > kMostOps)
    return makeError("the model has more than " + llvm::Twine(kMostOps) + " operators");
  return llvm::Error::success();
}

llvm::Error readFacts(llvm::StringRef folder, AcesoCase &result) {
  llvm::SmallString<128> path(folder);
  llvm::sys::path::append(path, "case.json");
  auto value = readStrictJson(path, kMostFileBytes, "case");
  if (!value)
    return value.takeError();
  const llvm::json::Object *facts = value->getAsObject();
  const llvm::json::Object *model = facts ? facts->getObject("model") : nullptr;
  const llvm::json::Array *batches = facts ? facts->getArray("micro_batches") : nullptr;
  if (!model || !batches)
    return makeError("case.json has no 'model' or no 'micro_batches'");
  auto getInteger = [](const llvm::json::Object &object, llvm::StringRef key, int64_t most) {
    std::optional<int64_t> number = object.getInteger(key);
    return number && *number >= 1 && *number <= most ? *number : 0;
  };
  int64_t nodes = getInteger(*facts, "nodes", kMostGpus);
  result.gpusPerNode = getInteger(*facts, "gpus_per_node", kMostGpus);
  result.gpus = nodes * result.gpusPerNode;
  result.globalBatch = getInteger(*facts, "global_batch", 1 << 30);
  result.mostTensor = getInteger(*facts, "max_tensor_parallel", kMostGpus);
  result.limit = facts->getNumber("memory_limit_mb").value_or(0);
  if (result.gpus < 1 || result.gpus > kMostGpus || !result.globalBatch || !result.mostTensor || !(result.limit > 0))
    return makeError("case.json lacks a number above 0 for 'nodes', 'gpus_per_node', 'global_batch', "
                     "'max_tensor_parallel' or 'memory_limit_mb', or it is too large");
  for (const llvm::json::Value &each : *batches) {
    std::optional<int64_t> batch = each.getAsInteger();
    if (!batch || *batch < 1 || *batch > result.globalBatch)
      return makeError("'micro_batches' has an entry that is no part of the batch");
    result.microBatches.push_back(*batch);
  }
  result.copies = model->getString("precision") == llvm::StringRef("fp32") ? kCopiesFp32 : kCopies;
  return orderOps(model->getString("op_order").value_or(""), getInteger(*model, "layers", kMostOps), result);
}

/// How a tensor lies on the GPUs of a stage: the replicas, and the parts that three dimensions are split into.
struct Layout {
  int64_t replicas;
  std::array<int64_t, 3> parts;
  bool operator==(const Layout &other) const { return replicas == other.replicas && parts == other.parts; }
};

/// Returns the layout of an operator's input or output; nothing where any will do. The batch is the second dimension,
/// in attention and at the end of the model the first one.
std::optional<Layout> getLayout(llvm::StringRef op, const AcesoWay &way, bool isInput) {
  Layout whole = {way.tensor, {1, way.data, 1}}, split = {1, {1, way.data, way.tensor}};
  Layout heads = {1, {way.data, way.tensor, 1}}, rows = {way.tensor, {way.data, 1, 1}};
  if (op == "encoder-embedding")
    return isInput ? std::nullopt : std::optional(whole);
  if (op == "gpt-post-process")
    return isInput ? std::optional(rows) : std::nullopt;
  if (op == "final-layernorm")
    return isInput ? whole : rows;
  if (op == "enc-1st-layernorm" || op == "enc-2nd-layernorm" || op == "enc-post-attention-dropout" ||
      op == "enc-post-MLP-dropout")
    return whole;
  if (op == "enc-attention-qkv" || op == "enc-MLP-GEMM-1")
    return isInput == (way.algorithm == 0) ? whole : split;
  if (op == "enc-attention-dense" || op == "enc-MLP-GEMM-2")
    return isInput == (way.algorithm == 0) ? split : whole;
  if (op == "enc-MLP-gelu")
    return split;
  if (op == "enc-attention-softmax" || op == "enc-attention-dropout")
    return heads;
  if (op == "enc-attention-score")
    return isInput ? split : heads;
  if (op == "enc-attention-context")
    return isInput ? heads : split;
  for (llvm::StringRef part : {"conv", "downsample", "bn", "relu", "pool", "fc"})
    if (op.contains(part))
      return rows;
  return std::nullopt;
}

} // namespace

const AcesoRow *AcesoCase::find(size_t name, int64_t microBatch, const AcesoWay &way) const {
  if (microBatch % way.data)
    return nullptr;
  auto found = rows.find({name, microBatch / way.data, way.tensor, way.algorithm});
  return found == rows.end() ? nullptr : &found->second;
}

double AcesoCase::getTransfer(double size, bool isBetweenNodes) const {
  if (size <= 0)
    return 0;
  const std::vector<double> &speeds = links[isBetweenNodes];
  auto count = static_cast<int64_t>(speeds.size());
  auto index = static_cast<int64_t>(std::log(size) / std::log(2.0));
  index = std::clamp(index >= 1 ? index - 1 : index, -count, count - 1);
  // Aceso counts a negative index from the end of the list.
  return size / (speeds[index < 0 ? count + index : index] * 1e-3);
}

double AcesoCase::getReshard(size_t from, const AcesoWay &fromWay, size_t to, const AcesoWay &toWay,
                             double size) const {
  std::optional<Layout> before = getLayout(names[from], fromWay, /*isInput=*/false),
                        after = getLayout(names[to], toWay, /*isInput=*/true);
  if (collectives.empty() || !before || !after || *before == *after)
    return 0;
  auto getTime = [&](const char *collective, int64_t gpus) {
    // Sizes are looked up as Aceso prints them: rounded to even.
    for (double mb : {std::nearbyint(size), std::nearbyint(size - 1)})
      if (auto found = collectives.find({collective, gpus, static_cast<int64_t>(mb)}); found != collectives.end())
        return 1000 * found->second;
    return 1000 * kUnknownMs;
  };
  if (before->replicas > after->replicas)
    return getTime("all_gather", before->replicas / after->replicas);
  // Both layouts have as many GPUs, so some dimension has fewer parts than before.
  size_t i = 0;
  while (i < 2 && before->parts[i] <= after->parts[i])
    ++i;
  int64_t gpus = before->parts[i] / after->parts[i];
  return before->replicas < after->replicas ? getTime("all_gather", gpus) : 2 * getTime("all_to_all", gpus);
}

bool AcesoCase::beginsLayer(size_t name) const {
  llvm::StringRef op = names[name];
  return op == "enc-1st-layernorm" || op.contains("-conv1");
}

double AcesoCase::getKeptShare(size_t name) const {
  llvm::StringRef op = names[name];
  if (op == "enc-attention-dropout")
    return 1.5;
  bool isShared = op == "enc-attention-softmax" || op == "bn1" || op.contains("-bn3") ||
                  (op.contains("-downsample") && !op.contains("0-0"));
  return isShared ? 0 : 1;
}

llvm::Expected<AcesoCase> peers::readAcesoCase(llvm::StringRef folder) {
  AcesoCase result;
  if (llvm::Error error = readOps(folder, result))
    return error;
  if (llvm::Error error = readCollectives(folder, result))
    return error;
  if (llvm::Error error = readLinks(folder, result))
    return error;
  if (llvm::Error error = readFacts(folder, result))
    return error;
  return result;
}
