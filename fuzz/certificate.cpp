// The reader of certificates, and what they prove of a small problem: never more than its best solution costs.
#include "windlass/Search/Certificate.h"

#include <cstdint>
#include <cstdlib>

using namespace windlass::search;

/// A row of memory, and a window of two streams; the best solution costs 124.
static Problem makeProblem() {
  Problem problem;
  problem.nodes = {{{10, 20}, {{0, 1, {4, 0}}, {1, 2, {6, 0}}}}, {{1, 2}, {{0, 1, {3, 1}}, {2, 3, {5, 0}}}}};
  problem.tables = {{0, 7, 3, 0}};
  problem.edges = {{0, 1, 0}};
  problem.capacity = {5};
  problem.load = {1, 2};
  problem.windowEnd = {2};
  problem.constant = 100;
  return problem;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto certificates = parseCertificates(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!certificates) {
    llvm::consumeError(certificates.takeError());
    return 0;
  }
  auto again = parseCertificates(printCertificates(*certificates));
  if (!again || again->size() != certificates->size())
    std::abort();
  static const Problem problem = makeProblem();
  for (const NamedCertificate &its : *certificates) {
    auto bound = proveBound(problem, its.certificate);
    if (bound && *bound > 124)
      std::abort();
    if (!bound)
      llvm::consumeError(bound.takeError());
  }
  return 0;
}
