#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Conversion/SchedToEmitC/Passes.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Target/Cpp/StepSignature.h"

#include "Constants.h"
#include "ScalarFunctions.h"
#include "StepEmitter.h"

#include <array>

using namespace mlir;
using namespace windlass;

namespace windlass {
#define GEN_PASS_DEF_SCHEDTOEMITC
#include "windlass/Conversion/SchedToEmitC/Passes.h.inc"
} // namespace windlass

static constexpr char kUsing[] = "using namespace windlass::rt;";

namespace {

/// Adds the files of one position's functions to a module.
class PositionFiles {
public:
  explicit PositionFiles(sched::ProgramOp program)
      : module(program->getParentOfType<ModuleOp>()), name(cpp::getPositionName(program)) {}

  /// Adds a file of the position's namespace: `begin`, with the includes, before it, and `lines` inside of it.
  void add(llvm::StringRef file, llvm::ArrayRef<std::string> begin, llvm::ArrayRef<std::string> lines) const;
  FailureOr<llvm::StringMap<std::string>> addFused(sched::ProgramOp program) const;
  void addTables(const Constants &constants, const StepEmitter &emitter) const;
  /// Returns the path of the project's header from the position's folder.
  std::string getStepHeader() const { return name.empty() ? "step.h" : "../step.h"; }

private:
  ModuleOp module;
  /// That of the folder and namespace; empty in a job of one position.
  std::string name;
};

} // namespace

void PositionFiles::add(llvm::StringRef file, llvm::ArrayRef<std::string> begin,
                        llvm::ArrayRef<std::string> lines) const {
  OpBuilder builder = OpBuilder::atBlockEnd(const_cast<ModuleOp &>(module).getBody());
  std::string scope = "windlass_program" + (name.empty() ? "" : "::" + name);
  auto op =
      emitc::FileOp::create(builder, builder.getUnknownLoc(), name.empty() ? file.str() : name + "/" + file.str());
  builder.setInsertionPointToEnd(&op.getBodyRegion().front());
  auto write = [&](llvm::StringRef line) { emitc::VerbatimOp::create(builder, builder.getUnknownLoc(), line); };
  for (const std::string &line : begin)
    write(line);
  for (const std::string &line : {std::string(), "namespace " + scope + " {", std::string()})
    write(line);
  for (const std::string &line : lines)
    write(line);
  if (lines.empty() || !lines.back().empty())
    write("");
  write("} // namespace " + scope);
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

void PositionFiles::addTables(const Constants &constants, const StepEmitter &emitter) const {
  std::vector<std::string> buffers = {kUsing, ""};
  llvm::append_range(buffers, emitter.getBufferLines());
  add(kBuffersFile,
      {"// The buffers that functions of the step name, in order of first use: arena, offset in bytes (or the row's "
       "column that",
       "// has it), elements, sizes, strides; and what a buffer holds where it has that name.", "#pragma once", "",
       "#include \"windlass/rt/emitted.h\""},
      buffers);
  if (!constants.empty())
    add(kConstantsFile,
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

FailureOr<llvm::StringMap<std::string>> PositionFiles::addFused(sched::ProgramOp program) const {
  std::vector<std::string> lines = {kUsing, ""};
  auto functors = emitScalarFunctions(program, lines);
  if (succeeded(functors))
    add(kFusedFile,
        {"// Fused element-wise functions; each applies the definitions of windlass/rt/scalar.h.", "#pragma once", "",
         "#include \"windlass/rt/emitted.h\""},
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
  if (failed(checkBuffers(*program)))
    return failure();
  PositionFiles files(*program);
  auto functors = files.addFused(*program);
  if (failed(functors))
    return failure();
  Constants constants(*program);
  StepEmitter emitter(*program, functions, *functors, constants);
  if (failed(emitter.emitCommands()))
    return failure();
  files.addTables(constants, emitter);
  std::vector<std::string> begin = beginFunctions({"// Commands of step programs, one by one."}, constants);
  llvm::append_range(
      begin, std::initializer_list<std::string>{"", "#include \"windlass/rt/measure.h\"", "", "#include <limits>"});
  files.add(kCommandsFile, begin, emitter.getLines());
  return success();
}

/// Returns the functions of a program's step in the order in which they run. Reports an error where a chunk lacks one
/// that every step needs.
static FailureOr<llvm::SmallVector<func::FuncOp>> listFunctions(sched::ProgramOp program) {
  llvm::SmallVector<func::FuncOp> functions;
  constexpr std::array optional = {sched::StepRole::init, sched::StepRole::weight_gradient, sched::StepRole::evaluate};
  llvm::SmallVector<int64_t> chunks = sched::getChunks(program);
  if (chunks.empty())
    return program.emitOpError("has no functions of a step");
  for (sched::StepRole role : sched::getStepRoles())
    for (int64_t chunk : chunks) {
      if (func::FuncOp function = sched::getStepFunction(program, role, chunk))
        functions.push_back(function);
      else if (!llvm::is_contained(optional, role))
        return program.emitOpError("needs, at level L5, a function with the role ")
               << stringifyStepRole(role) << " of chunk " << chunk;
    }
  return functions;
}

static LogicalResult convertProgram(sched::ProgramOp program) {
  auto functions = listFunctions(program);
  if (failed(functions) || failed(checkBuffers(program)))
    return failure();
  PositionFiles files(program);
  auto functors = files.addFused(program);
  if (failed(functors))
    return failure();
  Constants constants(program);
  StepEmitter emitter(program, *functions, *functors, constants);
  if (failed(emitter.emitStep()))
    return failure();
  files.add(kRowsFile,
            {"// What differs between the instances of a repeated block, a row for each: offsets in bytes, and events.",
             "#pragma once", "", "#include <cstdint>"},
            emitter.getRowLines());
  files.addTables(constants, emitter);
  std::vector<std::string> begin = beginFunctions(
      {"// The step program: every kernel, copy and collective of a training step, in order, with its operator.",
       "// buffers.h says what the buffers are.", "#include \"" + files.getStepHeader() + "\"", ""},
      constants);
  llvm::append_range(begin, std::initializer_list<std::string>{"#include \"rows.h\"", "", "#include <limits>"});
  files.add(kStepFile, begin, emitter.getLines());
  return success();
}

LogicalResult windlass::convertSchedToEmitC(ModuleOp module) {
  module.getContext()->loadDialect<emitc::EmitCDialect>();
  if (failed(sched::checkPrograms(module)))
    return failure();
  for (sched::ProgramOp program : sched::getPrograms(module))
    if (failed(convertProgram(program)))
      return failure();
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
