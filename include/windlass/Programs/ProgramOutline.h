// What the runtime's checks of a run need to know of a program, before the program is built.
#ifndef WINDLASS_PROGRAMS_PROGRAMOUTLINE_H
#define WINDLASS_PROGRAMS_PROGRAMOUTLINE_H

#include "windlass/rt/program.h"

#include "mlir/IR/BuiltinOps.h"

#include <deque>
#include <string>
#include <vector>

namespace windlass {

/// The job that a module of L2 becomes, on `ranks` ranks: its inputs, parameters, state and settings. It has no
/// places, no layouts and no functions that could run.
class ProgramOutline {
public:
  ProgramOutline(mlir::ModuleOp module, int64_t ranks);
  ProgramOutline(const ProgramOutline &) = delete;
  ProgramOutline &operator=(const ProgramOutline &) = delete;
  const rt::job &get() const { return job; }

private:
  void addInputs(mlir::ModuleOp module);
  void addParameters(mlir::ModuleOp module);
  void addSettings(mlir::ModuleOp module, int64_t ranks);
  rt::span<std::int64_t> sizesOf(mlir::RankedTensorType type);
  const char *keep(llvm::StringRef text) { return texts.emplace_back(text.str()).c_str(); }

  rt::program program = {};
  rt::position_entry position = {};
  rt::job job = {};
  // What they point at; nothing moves when more is added.
  std::deque<std::string> texts;
  std::deque<std::vector<int64_t>> sizes;
  std::vector<rt::input_entry> inputs;
  std::vector<rt::parameter_entry> parameters;
  std::vector<rt::parameter_placement> placements;
  std::vector<rt::state_entry> states;
  std::vector<rt::scalar_entry> scalars;
  std::vector<rt::axis> axes;
};

} // namespace windlass

#endif
