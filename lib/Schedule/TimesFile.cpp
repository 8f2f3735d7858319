#include "windlass/Schedule/TimesFile.h"

#include "windlass/Support/Printable.h"
#include "windlass/Support/StrictJson.h"

#include "llvm/ADT/Twine.h"

#include <cmath>
#include <numeric>

using namespace windlass;
using namespace windlass::schedule;
using llvm::Twine;

TimesInUnits windlass::schedule::makeEqualTimes(const Placement &placement) {
  // The chunks of a position in one direction are a / b.
  int64_t a = placement.countChunks(), b = placement.positions * static_cast<int64_t>(placement.chains.size());
  int64_t common = std::gcd(a, b);
  TimesInUnits times;
  times.denominator = a / common;
  times.forward = {static_cast<double>(b / common) / static_cast<double>(a / common)};
  times.inputGradient = times.weightGradient = times.forward;
  return times;
}

static bool isTime(double time) { return time >= 0 && time <= double(kMaxUnits); }

llvm::Expected<TimesInUnits> windlass::schedule::readTimes(llvm::StringRef path) {
  constexpr int64_t kMostBytes = 16 << 20;
  llvm::Expected<llvm::json::Value> document = readStrictJson(path, kMostBytes, "times of chunks");
  if (!document)
    return document.takeError();
  ObjectReader reader(*document, "");
  TimesInUnits times;
  auto read = [&](llvm::StringRef key, std::vector<double> &target) {
    const llvm::json::Value *value = reader.get(key);
    if (!value)
      return;
    const llvm::json::Array *list = value->getAsArray();
    for (size_t index = 0; index < (list ? list->size() : 1); ++index) {
      std::optional<double> time = (list ? (*list)[index] : *value).getAsNumber();
      if (!time || !isTime(*time))
        return reader.fail(key, list ? "[" + std::to_string(index) + "] must be a number from 0 to 1e9"
                                     : "must be a number from 0 to 1e9, or a list with one for each chunk");
      target.push_back(*time);
    }
  };
  read("forward", times.forward);
  read("input_gradient", times.inputGradient);
  read("weight_gradient", times.weightGradient);
  if (const llvm::json::Value *hop = reader.find("hop")) {
    std::optional<double> time = hop->getAsNumber();
    if (!time || !isTime(*time))
      reader.fail("hop", "must be a number from 0 to 1e9");
    times.hop = time.value_or(0);
  }
  if (llvm::Error error = reader.takeError())
    return makeError(printable(path) + ": " + llvm::toString(std::move(error)));
  return times;
}

llvm::Expected<ScaledTimes> windlass::schedule::scaleTimes(const Placement &placement, const TimesInUnits &times) {
  constexpr double kMost = double(int64_t(1) << 36);
  static_assert(kMost <= kMaxTicks);
  size_t chunks = placement.countChunks() / placement.chains.size();
  double largest = times.hop;
  for (auto [name, list] : {std::pair("forward", &times.forward),
                            {"input_gradient", &times.inputGradient},
                            {"weight_gradient", &times.weightGradient}}) {
    if (list->size() != 1 && list->size() != chunks)
      return llvm::createStringError(Twine(name) + " has " + Twine(list->size()) + " times, but the model has " +
                                     Twine(chunks) + " chunks: give one for each, or one number for all");
    for (double time : *list)
      largest = std::max(largest, time);
  }
  ScaledTimes scaled;
  scaled.ticksPerUnit = static_cast<double>(times.denominator);
  // A power of ten keeps decimal fractions whole.
  if (largest > 0)
    scaled.ticksPerUnit *= std::pow(10, std::floor(std::log10(kMost / (largest * scaled.ticksPerUnit))));
  auto getTicks = [&](double time) { return static_cast<int64_t>(std::llround(time * scaled.ticksPerUnit)); };
  auto get = [&](const std::vector<double> &list, size_t chunk) {
    return getTicks(list.size() == 1 ? list.front() : list[chunk % chunks]);
  };
  for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk)
    scaled.times.chunks.push_back(
        {get(times.forward, chunk), get(times.inputGradient, chunk), get(times.weightGradient, chunk)});
  scaled.times.hop = getTicks(times.hop);
  return scaled;
}
