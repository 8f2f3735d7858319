#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Conversion/SchedToEmitC/Passes.h"
#include "windlass/Dialect/Sched/IR/Programs.h"

#include "Constants.h"
#include "ScalarFunctions.h"
#include "StepEmitter.h"

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_SCHEDTOEMITC
#include "windlass/Conversion/SchedToEmitC/Passes.h.inc"
} // namespace windlass

static constexpr char kNamespaceBegin[] = "namespace windlass_program {",
                      kNamespaceEnd[] = "} // namespace windlass_program";

static constexpr char kUsing[] = "using namespace windlass::rt;";

/// Adds a file of the program's namespace: `begin`, with the includes, before it, and `lines` inside of it.
static void addFile(ModuleOp module, llvm::StringRef name, llvm::ArrayRef<std::string> begin,
                    llvm::ArrayRef<std::string> lines) {
  OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
  auto file = emitc::FileOp::create(builder, module.getLoc(), name);
  builder.setInsertionPointToEnd(&file.getBodyRegion().front());
  auto add = [&](llvm::StringRef line) { emitc::VerbatimOp::create(builder, module.getLoc(), line); };
  for (const std::string &line : begin)
    add(line);
  for (llvm::StringRef line : {"", kNamespaceBegin, ""})
    add(line);
  for (const std::string &line : lines)
    add(line);
  if (lines.empty() || !lines.back().empty())
    add("");
  add(kNamespaceEnd);
}

/// Checks that the runtime can allocate the arenas of a program.
static LogicalResult checkArenas(sched::ProgramOp program) {
  for (auto arena : program.getOps<sched::ArenaOp>())
    if (arena.getKind() == plan::MemoryKind::disk)
      return arena.emitOpError("is of kind disk: emitted programs have arenas of the kinds device and host only");
  return success();
}

/// Checks that buffers have no more dims than views may have.
static LogicalResult checkBuffers(sched::ProgramOp program) {
  auto result = program.walk([](sched::BufferOp buffer) {
    if (buffer.getType().getRank() <= rt::max_rank)
      return WalkResult::advance();
    buffer.emitOpError("has ") << buffer.getType().getRank() << " dims but the runtime's views have at most "
                               << rt::max_rank;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

static void addTables(ModuleOp module, const Constants &constants, const StepEmitter &emitter) {
  std::vector<std::string> buffers = {kUsing, ""};
  llvm::append_range(buffers, emitter.getBufferLines());
  addFile(
      module, kBuffersFile,
      {"// The buffers that functions of the step name, in order of first use: arena, offset in bytes (or the row's "
       "column that",
       "// has it), elements, sizes, strides; and what a buffer holds where it has that name.", "#pragma once", "",
       "#include \"windlass/rt/emitted.h\""},
      buffers);
  if (!constants.empty())
    addFile(module, kConstantsFile,
            {"// Constants of the model whose elements differ: the bits of each element, in row-major order.",
             "#pragma once", "", "#include <cstdint>"},
            constants.getLines());
}

/// Returns the includes of a file of functions.
static std::vector<std::string> beginFunctions(llvm::ArrayRef<std::string> begin, const Constants &constants) {
  std::vector<std::string> lines = begin.vec();
  lines.push_back("#include \"buffers.h\"");
  if (!constants.empty())
    lines.push_back("#include \"constants.h\"");
  lines.push_back("#include \"fused.h\"");
  return lines;
}

static FailureOr<llvm::StringMap<std::string>> addFusedFile(sched::ProgramOp program) {
  std::vector<std::string> lines = {kUsing, ""};
  auto functors = emitScalarFunctions(program, lines);
  if (succeeded(functors))
    addFile(program->getParentOfType<ModuleOp>(), kFusedFile,
            {"// Fused element-wise functions; each applies the definitions of windlass/rt/scalar.h.", "#pragma once",
             "", "#include \"windlass/rt/emitted.h\""},
            lines);
  return functors;
}

LogicalResult windlass::convertCommandsToEmitC(ModuleOp module) {
  module.getContext()->loadDialect<emitc::EmitCDialect>();
  FailureOr<sched::ProgramOp> program = sched::getOnlyProgram(module);
  if (failed(program))
    return failure();
  llvm::SmallVector<func::FuncOp> functions;
  for (auto function : program->getOps<func::FuncOp>())
    if (!function->hasAttr(sched::kScalarFunctionAttr))
      functions.push_back(function);
  if (failed(checkArenas(*program)) || failed(checkBuffers(*program)))
    return failure();
  auto functors = addFusedFile(*program);
  if (failed(functors))
    return failure();
  Constants constants(*program);
  StepEmitter emitter(*program, functions, *functors, constants);
  if (failed(emitter.emitCommands()))
    return failure();
  addTables(module, constants, emitter);
  std::vector<std::string> begin = beginFunctions({"// Commands of step programs, one by one."}, constants);
  llvm::append_range(
      begin, std::initializer_list<std::string>{"", "#include \"windlass/rt/measure.h\"", "", "#include <limits>"});
  addFile(module, kCommandsFile, begin, emitter.getLines());
  return success();
}

LogicalResult windlass::convertSchedToEmitC(ModuleOp module) {
  module.getContext()->loadDialect<emitc::EmitCDialect>();
  FailureOr<sched::ProgramOp> program = sched::getOnlyProgram(module);
  if (failed(program))
    return failure();
  llvm::SmallVector<func::FuncOp> functions;
  for (sched::StepRole role : sched::getStepRoles()) {
    func::FuncOp function = sched::getStepFunction(*program, role);
    if (!function)
      return program->emitOpError("needs, at level L5, a function with the role ") << stringifyStepRole(role);
    functions.push_back(function);
  }
  if (failed(checkArenas(*program)) || failed(checkBuffers(*program)))
    return failure();

  auto functors = addFusedFile(*program);
  if (failed(functors))
    return failure();
  Constants constants(*program);
  StepEmitter emitter(*program, functions, *functors, constants);
  if (failed(emitter.emitStep()))
    return failure();
  addFile(module, kRowsFile,
          {"// What differs between the instances of a repeated block, a row for each: offsets in bytes, and events.",
           "#pragma once", "", "#include <cstdint>"},
          emitter.getRowLines());
  addTables(module, constants, emitter);
  std::vector<std::string> begin = beginFunctions(
      {"// The step program: every kernel, copy and collective of a training step, in order, with its operator.",
       "// buffers.h says what the buffers are.", "#include \"step.h\"", ""},
      constants);
  llvm::append_range(begin, std::initializer_list<std::string>{"#include \"rows.h\"", "", "#include <limits>"});
  addFile(module, kStepFile, begin, emitter.getLines());
  return success();
}

namespace {

struct SchedToEmitCPass : windlass::impl::SchedToEmitCBase<SchedToEmitCPass> {
  void runOnOperation() override {
    if (failed(convertSchedToEmitC(getOperation())))
      signalPassFailure();
  }
};

} // namespace
