// What a run's folder says about the run, read without trust: any of its files may be missing, cut or foreign.
#ifndef WINDLASS_REPORT_RUN_H
#define WINDLASS_REPORT_RUN_H

#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace windlass::report {

/// A row of metrics.jsonl. What the row lacks, or what is not finite, is NaN.
struct Step {
  int64_t step = 0;
  double loss, gradNorm, learningRate, seconds, tokensPerSecond;
};

struct Evaluation {
  int64_t step = 0;
  double loss;
};

/// Names and values for people, in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Memory {
  /// Bytes of a rank's device arena; 0 where unknown.
  int64_t arena = 0;
  /// What a rank was to take beside it; 0 where unknown.
  int64_t reserve = 0;
  /// Its parts by name; what is left is activations and scratch.
  std::vector<std::pair<std::string, int64_t>> parts;
  /// Host and peak resident bytes of each process; known once the run has ended.
  std::vector<std::pair<std::string, int64_t>> processes;
};

/// A row of kernels.json: all calls of one kernel with the same sizes.
struct Kernel {
  std::string name, sizes;
  double calls, seconds;
};

struct Run {
  std::string folder, model;
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
  /// Lines of metrics.jsonl that are no rows: a killed run may leave one half-written.
  int64_t badLines = 0;
  /// Whether the run wrote that it ended.
  bool isFinished = false;
  /// Bytes that rank 0 sent in the last step, by kind of collective.
  std::vector<std::pair<std::string, int64_t>> collectives;
  Facts settings, machine;
  Memory memory;
  /// Of a run with --profile: rank 0's kernels, and the steps and seconds that they were measured over.
  std::vector<Kernel> kernels;
  double kernelSteps = 0, kernelSeconds = 0;
  /// Names of its checkpoints, newest first.
  std::vector<std::string> checkpoints;
};

/// Fails where the folder holds neither metrics.jsonl nor run.json, or where one of them is too large to be one.
llvm::Expected<Run> readRun(const std::string &folder);

} // namespace windlass::report

#endif
