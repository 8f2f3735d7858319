// Data sets of samples: arrays with the names of the inputs, whose first dim counts samples, such as images with
// labels.
#ifndef WINDLASS_RT_SRC_PROGRAM_SAMPLES_H
#define WINDLASS_RT_SRC_PROGRAM_SAMPLES_H

#include "arrays.h"
#include "data.h"

namespace windlass::rt {

/// Whether the array holds samples of an input: it has its name and as many dims.
bool holds_samples(const job &j, const file_array &array);

/// Opens the samples of all files as one set. Each file holds an array for every input, all with one number of samples.
/// A micro-batch takes as many as the inputs' first dim says; each epoch takes every sample once, but for the last ones
/// that fill no micro-batch, in another order. Bytes for an input of floats are fractions of 255. Images whose channels
/// are their last dim are transposed.
status open_samples(const job &j, const data_settings &settings, std::vector<file_array> arrays,
                    std::unique_ptr<data_source> &out);

} // namespace windlass::rt

#endif
