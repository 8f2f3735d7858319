// Tiny programs written by hand in the place of emitted ones.
#ifndef WINDLASS_RT_CONFORMANCE_PROGRAM_TEST_PROGRAMS_H
#define WINDLASS_RT_CONFORMANCE_PROGRAM_TEST_PROGRAMS_H

#include "windlass/rt/program.h"

#include <string>
#include <vector>

namespace windlass::rt::test {

/// A bigram language model over bytes: logits = table[ids] + bias, cross entropy, AdamW with clipping; batches of
/// [4, 8] tokens, two micro-batches a step, over `groups` (1 or 2) data parallel ranks.
const program &bigram_program(int groups);
constexpr std::int64_t bigram_vocabulary = 256, bigram_batch = 4, bigram_tokens = 8;

/// A parameter of [4, 6] that is split in its second dimension over `ranks` (1 or 2) ranks, and one that is not. A step
/// adds lr to every element, and 1 to the one state tensor; the loss is the sum of the parameter's local part.
const program &sharded_program(int ranks);

/// What `run_program` did.
struct run_result {
  int code = 0;
  std::string out, err;
};
run_result run(const program &p, std::vector<std::string> flags);

} // namespace windlass::rt::test

#endif
