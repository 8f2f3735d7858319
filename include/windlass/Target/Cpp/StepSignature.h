// The functions of an emitted step program, as their declarations and definitions have them.
#ifndef WINDLASS_TARGET_CPP_STEPSIGNATURE_H
#define WINDLASS_TARGET_CPP_STEPSIGNATURE_H

#include "windlass/Dialect/Sched/IR/SchedOps.h"
#include "windlass/Target/Cpp/CppBuilder.h"

namespace windlass::cpp {

/// The names of parameters: the context, the row of a repeated block, whether results add to earlier ones, the slot of
/// the micro-batch's inputs and stash, the one for what its backward hands on, the places of these slots, and whether
/// the function runs for the last time in the step.
constexpr char kContextName[] = "c", kRowName[] = "r", kAddsName[] = "adds", kSlotName[] = "slot",
               kHandedSlotName[] = "handed_slot", kOwnSlotsName[] = "own", kIsLastName[] = "is_last";

/// Returns the name of the folder and the namespace of a position's functions, `position_1`; empty in a job of one
/// position, which needs none.
std::string getPositionName(sched::ProgramOp program);

/// Returns the signature of the function of a role of the step.
Signature getStepSignature(sched::StepAttr step);

/// Returns the signature of the function of a repeated block; `hasSlot` says that some of its buffers are in the slot
/// of the micro-batch, `hasLast` that some of its commands run in the last micro-batch only.
Signature getBlockSignature(const std::string &name, bool hasSlot, bool hasLast);

} // namespace windlass::cpp

#endif
