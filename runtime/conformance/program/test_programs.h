// Tiny programs written by hand in the place of emitted ones.
#ifndef WINDLASS_RT_CONFORMANCE_PROGRAM_TEST_PROGRAMS_H
#define WINDLASS_RT_CONFORMANCE_PROGRAM_TEST_PROGRAMS_H

#include "../one_job.h"

#include <string>
#include <vector>

namespace windlass::rt::test {

/// A bigram language model over bytes: logits = table[ids] + bias, cross entropy, AdamW with clipping; batches of
/// [4, 8] tokens, two micro-batches a step, over `groups` (1 or 2) data parallel ranks.
const one_job &bigram_program(int groups);
/// The same with a loss scale: gradients of the logits above 65504 overflow.
const one_job &scaled_bigram_program(int groups);
constexpr std::int64_t bigram_vocabulary = 256, bigram_batch = 4, bigram_tokens = 8;

/// The bigram model cut into two chunks, table and bias, in one position or in two, each of `groups` (1 or 2) data
/// parallel ranks with four micro-batches in two slots: one after the other, or 1F1B.
const job &pipeline_job(int positions, int groups);

/// The ways in which the sharded program cuts its parameter of [4, 3 * 2 * 2].
enum class cut {
  whole,          ///< 1 rank
  columns,        ///< 2 ranks: the second dimension in halves
  heads,          ///< 2 ranks: each of its three blocks in halves
  rows_and_inner, ///< 2 x 2 ranks: rows, and the innermost factor
  own_master,     ///< 2 x 2 ranks: as `heads`, with a master that is cut by rows too; the gradient as the parameter
  own_gradient,   ///< 2 x 2 ranks: a whole parameter; master and gradient are cut at both inner factors
  flat,           ///< 5 ranks: a whole parameter; master and gradient are flat, filled up to 50 elements
  flat_heads,     ///< 2 x 2 ranks: as `heads`, with a master that is flat over the other axis; a whole gradient
};
constexpr cut all_cuts[] = {cut::whole,      cut::columns,      cut::heads, cut::rows_and_inner,
                            cut::own_master, cut::own_gradient, cut::flat,  cut::flat_heads};

/// A parameter that is cut so, and one that is not. A step adds lr to every element, and 1 to the one state tensor; the
/// gradient is ten times the parameter, as the compute copy or the master gives it.
const one_job &sharded_program(cut layout);

/// The outcome of `run_program`.
struct run_result {
  int code = 0;
  std::string out, err;
};
run_result run(const job &j, std::vector<std::string> flags);

} // namespace windlass::rt::test

#endif
