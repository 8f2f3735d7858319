// The reader of problems; what is read is written and read again as the same, and a short search of it keeps its word.
#include "windlass/Search/ProblemFile.h"
#include "windlass/Search/Solver.h"

#include <cstdint>
#include <cstdlib>

using namespace windlass::search;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size) {
  auto problem = parseProblem(llvm::StringRef(reinterpret_cast<const char *>(data), size));
  if (!problem) {
    llvm::consumeError(problem.takeError());
    return 0;
  }
  std::string text = printProblem(*problem);
  auto again = parseProblem(text);
  if (!again || printProblem(*again) != text)
    std::abort();
  SolveOptions options;
  options.workLimit = 100'000;
  SolveResult result = solve(*problem, options);
  if (!result.isFeasible())
    return 0;
  Evaluation value = evaluate(*problem, result.solution);
  if (!value.isFeasible() || value.cost != result.cost || result.bound > result.cost)
    std::abort();
  return 0;
}
