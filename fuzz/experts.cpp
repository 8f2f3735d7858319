// The reader of loads of experts; what is read and placed is written and read again as the same, and answers are legal.
#include "windlass/Experts/CaseFile.h"
#include "windlass/Support/StrictJson.h"

#include <cstdint>
#include <cstdlib>

using namespace windlass;
using namespace windlass::experts;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto document = parseStrictJson(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!document) {
    llvm::consumeError(document.takeError());
    return 0;
  }
  auto file = parseCases(*document, /*readsPlacements=*/false);
  if (!file) {
    llvm::consumeError(file.takeError());
    return 0;
  }
  // Where the file is an answer too, experts move from it.
  auto before = parseCases(*document, /*readsPlacements=*/true);
  bool isAnswer = static_cast<bool>(before);
  if (!isAnswer)
    llvm::consumeError(before.takeError());
  PlaceLimits limits = {100'000, 100'000, 10'000};
  for (std::size_t at = 0; at < file->cases.size(); ++at) {
    const Case &given = file->cases[at];
    CaseAnswer answer;
    answer.isReplanned = isAnswer;
    for (std::size_t layer = 0; layer < given.loads.size(); ++layer) {
      ReplanAnswer each;
      if (isAnswer)
        each = replanLayer(given.shape, given.loads[layer], before->placements[at][layer], 0.1, limits);
      else
        static_cast<LayerAnswer &>(each) = placeLayer(given.shape, given.loads[layer], limits);
      if (!checkPlacement(given.shape, each.placement).empty() || each.bound > each.load)
        std::abort();
      answer.layers.push_back(std::move(each));
    }
    auto again = parseCases(llvm::json::Value(toJson(given, answer)), /*readsPlacements=*/true);
    if (!again || again->cases.front().loads != given.loads)
      std::abort();
    for (std::size_t layer = 0; layer < given.loads.size(); ++layer)
      if (again->placements.front()[layer] != answer.layers[layer].placement)
        std::abort();
  }
  return 0;
}
