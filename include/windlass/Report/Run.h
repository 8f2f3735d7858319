// What a run's folder says about the run, read without trust: any of its files may be missing, cut or foreign.
#ifndef WINDLASS_REPORT_RUN_H
#define WINDLASS_REPORT_RUN_H

#include "windlass/Report/MemoryPicture.h"
#include "windlass/Report/Timeline.h"

#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace windlass::report {

/// A row of metrics.jsonl. A value that is missing or not finite is NaN.
struct Step {
  int64_t step = 0;
  double loss, gradNorm, learningRate, seconds, tokensPerSecond, samplesPerSecond;
};

struct Evaluation {
  int64_t step = 0;
  double loss;
};

/// Names and values as people read them, in order.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Memory {
  /// The bytes of a rank's device arena; 0 where unknown.
  int64_t arena = 0;
  /// The bytes that a rank was planned to take besides the arena; 0 where unknown.
  int64_t reserve = 0;
  /// The arena's parts by name; the rest is activations and scratch.
  std::vector<std::pair<std::string, int64_t>> parts;
  /// The host and the peak resident bytes of each process; known once the run has ended.
  std::vector<std::pair<std::string, int64_t>> processes;
};

/// A row of kernels.json: all calls of one kernel with the same sizes.
struct Kernel {
  std::string name, sizes;
  double calls, seconds;
  /// What all calls compute and move, and the least seconds that the machine could take for it; 0 where unknown.
  double flops = 0, bytes = 0, roofSeconds = 0;
};

struct Run {
  std::string folder, model;
  std::vector<Step> steps;
  std::vector<Evaluation> evaluations;
  /// The number of lines of metrics.jsonl that are no rows: a killed run may leave one half-written.
  int64_t badLines = 0;
  /// Whether the run wrote that it ended.
  bool isFinished = false;
  /// The bytes that rank 0 sent in the last step, by kind of collective.
  std::vector<std::pair<std::string, int64_t>> collectives;
  Facts settings, machine;
  Memory memory;
  /// The kernels of rank 0 in a run with --profile, and the steps and seconds over which they were measured.
  std::vector<Kernel> kernels;
  double kernelSteps = 0, kernelSeconds = 0;
  /// The most operations that the machine computes and bytes of memory that it moves in a second; 0 where unknown.
  double flopsRate = 0, bytesRate = 0;
  /// The last step of a run with --profile, as it was measured, beside the predicted one where that is known.
  Timeline lastStep;
  /// What device memory holds over a step as it was planned, by position; empty where that is not known.
  std::vector<MemoryPicture> stepMemory;
  /// The names of the run's checkpoints, newest first.
  std::vector<std::string> checkpoints;
};

/// Reads the folder of a run, without its last step and the memory over a step. Fails where it holds neither
/// metrics.jsonl nor run.json, or where one of them is too large to be one.
llvm::Expected<Run> readRun(const std::string &folder);

/// Reads the last step of a run with --profile: the traces of its first ranks and, where a file is named, a predicted
/// one. The kernels that take the most time are the occupations. The timeline has no lanes where there are no traces,
/// or where one cannot be read; the note says what is wrong with it.
Timeline readLastStep(const std::string &folder, const std::string &predicted = "");

/// Reads what device memory holds over a step, by position; empty where the run has no memory.json. Fails where that
/// file is not as programs write it.
llvm::Expected<std::vector<MemoryPicture>> readStepMemory(const std::string &folder);

} // namespace windlass::report

#endif
