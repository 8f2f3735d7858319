// A running program's checkpoints: each rank writes the boxes that it is the first to hold, rank 0 the manifest.
#ifndef WINDLASS_RT_SRC_PROGRAM_SAVING_H
#define WINDLASS_RT_SRC_PROGRAM_SAVING_H

#include "windlass/rt/checkpoint.h"
#include "windlass/rt/context.h"
#include "windlass/rt/program.h"

#include "control.h"
#include "rank_state.h"
#include "save_parts.h"

#include <functional>
#include <string>

namespace windlass::rt {

/// Checks that what `rank` would write into a checkpoint is within what a reader allows. Rank 0 writes the manifest
/// too.
status check_checkpoints(const job &j, std::int32_t rank);

/// Saves RUN/checkpoints/step-... as one step: a dotted folder is filled, synced and renamed. Collective; every rank
/// gets the same status.
status save_checkpoint(const job &j, context &c, control &ranks, const std::string &run, const save_point &at);

/// Removes all but the newest `keep` checkpoints; the one of step 0, saved on request, stays.
status prune_checkpoints(const std::string &run, std::int64_t keep);

/// Finds the checkpoint to resume from: `from`, or without it the newest valid checkpoint of `run`. `say` gets a line
/// for each one that was skipped. Rank 0 only.
status find_resume(const std::string &run, const std::string &from, std::string &folder, checkpoint_manifest &manifest,
                   const std::function<void(const std::string &)> &say);

/// Brings back a checkpoint that a save was about to replace when it was killed.
status restore_replaced(const std::string &run);

/// Removes what a killed run left half-written or half-removed, and what an earlier run set aside.
status sweep_checkpoints(const std::string &run);

/// Sets checkpoints of later steps than `step` aside: they belong to a history that ends here.
status set_aside_later(const std::string &run, std::int64_t step, const std::function<void(const std::string &)> &say);

/// Fails where the checkpoint lacks a parameter or state tensor of the program, or holds it with another type or shape.
status check_checkpoint(const job &j, const std::string &folder, const checkpoint_manifest &manifest);

/// Reads this rank's part of every parameter and state tensor.
status load_checkpoint(const member &its, context &c, checkpoint_index &index);

/// Writes whole tensors, in f32 and each times `factor`, to one safetensors file through rank 0. Collective; every rank
/// gets the same status.
status dump_tensors(context &c, control &ranks, const std::vector<stored_tensor> &tensors, float factor,
                    const std::string &path);

} // namespace windlass::rt

#endif
