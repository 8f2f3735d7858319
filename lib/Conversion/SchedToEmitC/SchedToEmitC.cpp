#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Conversion/SchedToEmitC/Passes.h"
#include "windlass/Dialect/Sched/IR/Place.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Dialect/Sched/IR/Updates.h"

#include "Kernels.h"
#include "Repeats.h"
#include "ScalarFunctions.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace windlass;
using cpp::RuntimeCalls;
using cpp::View;

namespace windlass {
#define GEN_PASS_DEF_SCHEDTOEMITC
#include "windlass/Conversion/SchedToEmitC/Passes.h.inc"
} // namespace windlass

namespace {

/// The definition of a table with the bits of a constant's elements.
std::vector<std::string> tableOf(Attribute constant, llvm::StringRef name) {
  constexpr size_t kMostColumns = 100;
  auto elements = cast<DenseElementsAttr>(constant);
  unsigned bytes = std::max(1u, elements.getElementType().getIntOrFloatBitWidth() / 8);
  std::vector<std::string> lines = {"constexpr std::uint" + std::to_string(8 * bytes) + "_t " + name.str() + "[] = {"};
  std::string line;
  auto add = [&](const llvm::APInt &bits) {
    line += (line.empty() ? "    0x" : ", 0x") + llvm::utohexstr(bits.getZExtValue(), /*LowerCase=*/true);
    if (line.size() < kMostColumns)
      return;
    lines.push_back(line + ",");
    line.clear();
  };
  if (isa<FloatType>(elements.getElementType())) {
    for (const llvm::APFloat &number : elements.getValues<llvm::APFloat>())
      add(number.bitcastToAPInt());
  } else {
    for (const llvm::APInt &number : elements.getValues<llvm::APInt>())
      add(number);
  }
  if (!line.empty())
    lines.push_back(line);
  lines.push_back("};");
  return lines;
}

class StepEmitter {
public:
  StepEmitter(sched::ProgramOp program, OpBuilder &builder, const llvm::StringMap<std::string> &functors)
      : program(program), builder(builder), functors(functors), streams(program), arenas(program) {
    for (auto [i, communicator] : llvm::enumerate(program.getOps<sched::CommunicatorOp>()))
      communicators[communicator.getName()] = static_cast<int64_t>(i);
    program.walk([&](sched::LaunchOp op) {
      if (op.getKernel() == sched::KernelKind::constant)
        if (auto elements = op.getSettings().getAs<DenseElementsAttr>(sched::kConstantValue))
          constants.insert({elements, "constant_" + std::to_string(constants.size())});
    });
  }

  bool hasConstants() const { return !constants.empty(); }

  /// The tables of constants, as text of a header: equal ones once.
  void emitConstants(OpBuilder &rows) {
    for (const auto &[elements, name] : constants)
      for (const std::string &line : tableOf(elements, name))
        emitc::VerbatimOp::create(rows, program.getLoc(), line);
  }

  LogicalResult emit(llvm::ArrayRef<func::FuncOp> functions) {
    Repeats repeats(functions);
    for (auto [i, block] : llvm::enumerate(repeats.getBlocks()))
      if (failed(emitBlock(block, i)))
        return failure();
    for (func::FuncOp function : functions)
      if (failed(emitFunction(function, repeats)))
        return failure();
    return success();
  }

  /// Each function's one command as a block all of whose offsets are columns.
  LogicalResult emitCommands(llvm::ArrayRef<func::FuncOp> functions) {
    for (auto [i, source] : llvm::enumerate(functions)) {
      func::FuncOp function = source; // its accessors are not const
      RepeatedBlock block;
      std::map<int64_t, int> columns;
      for (Operation &op : function.getBody().front().without_terminator()) {
        if (isa<sched::BufferOp>(op))
          continue;
        block.commands.push_back(&op);
        for (int64_t number : numbersOf(&op))
          block.columns.push_back(columns.try_emplace(number, columns.size()).first->second);
      }
      if (failed(emitBlock(block, i)))
        return failure();
    }
    return success();
  }

  /// Rows of the blocks, as text of a header: one line per row.
  void emitRows(llvm::ArrayRef<func::FuncOp> functions, OpBuilder &rows) {
    Repeats repeats(functions);
    for (auto [i, block] : llvm::enumerate(repeats.getBlocks())) {
      size_t columns = block.rows.front().size();
      auto line = [&](const std::string &text) { emitc::VerbatimOp::create(rows, program.getLoc(), text); };
      line("constexpr std::int64_t " + rowsName(i) + "[][" + std::to_string(std::max<size_t>(columns, 1)) + "] = {");
      for (const std::vector<int64_t> &row : block.rows)
        line("    " + (row.empty() ? "{0}" : cpp::listText(row)) + ",");
      line("};");
    }
  }

private:
  static std::string blockName(size_t i) { return "block_" + std::to_string(i); }
  static std::string rowsName(size_t i) { return blockName(i) + "_rows"; }

  /// Commands of one C++ function share views, streams and the flag that says whether to add.
  struct Scope {
    RuntimeCalls calls;
    cpp::Context context;
    cpp::Expr<bool> adds, isLast;
    const RepeatedBlock *block = nullptr;
    std::optional<cpp::Row> row;
    std::map<std::pair<std::string, std::string>, View> views; // (place, type) -> view
    std::map<int64_t, cpp::Stream> streams;
    size_t place = 0; // in the block's columns
  };

  cpp::Stream streamOf(Scope &scope, Operation *command) {
    int64_t number = streams.getNumber(command);
    auto found = scope.streams.find(number);
    if (found == scope.streams.end())
      found = scope.streams.emplace(number, scope.calls.streamOf(scope.context, number)).first;
    return found->second;
  }

  /// The number of a buffer's arena among the program's. Commands that are measured by themselves share one.
  int64_t arenaOf(sched::BufferOp buffer) const { return arenas.find(buffer.getArenaAttr().getAttr()).value_or(0); }

  /// The column of the block's next number; -1 for one that is written where it is used.
  static int nextColumn(Scope &scope) { return scope.block ? scope.block->columns[scope.place++] : -1; }

  cpp::Event eventOf(Scope &scope, int64_t event) {
    int column = nextColumn(scope);
    return column >= 0 ? scope.calls.rowEvent(scope.context, *scope.row, column)
                       : scope.calls.eventOf(scope.context, event);
  }

  View viewOf(Scope &scope, Value buffer) {
    auto op = buffer.getDefiningOp<sched::BufferOp>();
    int column = nextColumn(scope);
    int64_t arena = arenaOf(op);
    std::string place = (column >= 0 ? "row " : "") + std::to_string(arena) + " " +
                        std::to_string(column >= 0 ? column : op.getOffset());
    std::string type;
    llvm::raw_string_ostream(type) << op.getType();
    auto key = std::make_pair(place, type);
    auto found = scope.views.find(key);
    if (found == scope.views.end()) {
      View view = column >= 0
                      ? scope.calls.rowView(scope.context, *scope.row, cpp::rowPlaceAt(arena, column), op.getType())
                      : scope.calls.viewAt(scope.context, cpp::placeAt(arena, op.getOffset()), op.getType());
      found = scope.views.emplace(key, view).first;
    }
    return found->second;
  }

  /// An optimizer step for several parameters: a table says where they lie.
  LogicalResult emitUpdates(Scope &scope, sched::LaunchOp op, const sched::UpdateOperands &its) {
    for (Value buffer : op.getOperands())
      if (!cast<MemRefType>(buffer.getType()).getLayout().isIdentity())
        return op.emitOpError("of several parameters needs them dense, but one is ") << buffer.getType();
    // Of each parameter: arena and offset, or arena and column, of weight, state, gradient and rounded weight.
    struct Buffer {
      int64_t arena = -1, number = 0;
    };
    std::vector<std::array<Buffer, 5>> buffers(its.parameters);
    bool hasColumns = false, hasOffsets = false;
    auto bufferOf = [&](Value value) {
      auto buffer = value.getDefiningOp<sched::BufferOp>();
      int column = nextColumn(scope);
      (column >= 0 ? hasColumns : hasOffsets) = true;
      return Buffer{arenaOf(buffer), column >= 0 ? column : static_cast<int64_t>(buffer.getOffset())};
    };
    for (size_t i = 0; i < its.parameters; ++i)
      for (size_t k = 0; k < its.operands; ++k)
        buffers[i][k] = bufferOf(op.getIns()[i * its.operands + k]);
    llvm::SmallVector<View> scalars;
    for (Value scalar : op.getIns().drop_front(its.parameters * its.operands))
      scalars.push_back(viewOf(scope, scalar));
    for (auto [out, value] : llvm::enumerate(op.getOuts())) {
      Buffer buffer = bufferOf(value);
      if (!op.getReplaced(out))
        buffers[out / its.results][4] = buffer;
    }
    if (hasColumns && hasOffsets)
      return op.emitOpError("must not be part of a repeated block");
    auto placesOf = [&](auto makePlace) {
      std::vector<decltype(cpp::parameterBuffers(0, makePlace(0, 0), makePlace(0, 0), makePlace(0, 0), makePlace(0, 0),
                                                 makePlace(0, 0)))>
          places;
      for (size_t i = 0; i < its.parameters; ++i) {
        auto at = [&](size_t k) { return makePlace(buffers[i][k].arena, buffers[i][k].number); };
        int64_t elements = cast<MemRefType>(op.getIns()[i * its.operands].getType()).getNumElements();
        places.push_back(cpp::parameterBuffers(elements, at(0), at(1), at(2), at(3), at(4)));
      }
      return places;
    };
    Type rounded = cast<MemRefType>(op.getOuts()[its.isRounded() ? its.updated : 0].getType()).getElementType();
    cpp::Stream stream = streamOf(scope, op);
    scope.calls.adamwList(stream,
                          hasColumns
                              ? scope.calls.rowParameters(scope.context, *scope.row, rounded, placesOf(cpp::rowPlaceAt))
                              : scope.calls.parametersAt(scope.context, rounded, placesOf(cpp::placeAt)),
                          scalars, op.getSettings().contains("decays"));
    return success();
  }

  /// Commands of the last run of a function only stand behind a condition.
  LogicalResult emitCommands(Scope &scope, llvm::ArrayRef<Operation *> commands) {
    auto isInLast = [](Operation *command) { return command->hasAttr(sched::kInLastAttr); };
    for (size_t i = 0; i < commands.size();) {
      if (!isInLast(commands[i])) {
        if (failed(emitCommand(scope, commands[i++])))
          return failure();
        continue;
      }
      if (!scope.isLast.value)
        return commands[i]->emitOpError("is marked ") << sched::kInLastAttr << " outside of a backward";
      OpBuilder::InsertionGuard guard(builder);
      auto branch = emitc::IfOp::create(builder, commands[i]->getLoc(), scope.isLast.value, /*addThenBlock=*/true,
                                        /*addElseBlock=*/false);
      builder.setInsertionPointToStart(&branch.getThenRegion().front());
      // What is declared there is not known behind it.
      auto views = scope.views;
      auto known = scope.streams;
      for (; i < commands.size() && isInLast(commands[i]); ++i)
        if (failed(emitCommand(scope, commands[i])))
          return failure();
      emitc::YieldOp::create(builder, branch.getLoc());
      scope.views = std::move(views);
      scope.streams = std::move(known);
    }
    return success();
  }

  LogicalResult emitCommand(Scope &scope, Operation *command) {
    auto viewsOf = [&](ValueRange buffers) {
      llvm::SmallVector<View> views;
      for (Value buffer : buffers)
        views.push_back(viewOf(scope, buffer));
      return views;
    };
    return llvm::TypeSwitch<Operation *, LogicalResult>(command)
        .Case([&](sched::LaunchOp op) {
          if (auto update = sched::getUpdateOperands(op); update && update->parameters > 1)
            return emitUpdates(scope, op, *update);
          cpp::Stream stream = streamOf(scope, op);
          auto ins = viewsOf(op.getIns()), outs = viewsOf(op.getOuts());
          cpp::Expr<bool> accumulate = op.getAccumulateAfterFirst() ? scope.adds : cpp::boolean(op.getAccumulate());
          auto elements = op.getSettings().getAs<DenseElementsAttr>(sched::kConstantValue);
          return emitKernel(scope.calls,
                            {op, scope.context, stream, ins, outs, accumulate, constants.lookup(elements)});
        })
        .Case([&](sched::LaunchMapOp op) -> LogicalResult {
          cpp::Stream stream = streamOf(scope, op);
          auto ins = viewsOf(op.getIns()), outs = viewsOf(op.getOuts());
          auto functor = functors.find(op.getFunction());
          if (functor == functors.end())
            return op.emitOpError("names no scalar function");
          bool isOnHost = streams.getKind(streams.getNumber(op)) == sched::StreamKind::host;
          std::string name = isOnHost ? "on_host<" + functor->second + ">" : functor->second;
          if (op.getAccumulateAfterFirst())
            scope.calls.mapAdding(name, stream, scope.adds, outs, ins);
          else
            scope.calls.map(name, stream, outs, ins);
          return success();
        })
        .Case([&](sched::LaunchCollectiveOp op) -> LogicalResult {
          cpp::Stream stream = streamOf(scope, op);
          View in = viewOf(scope, op.getIn()), out = viewOf(scope, op.getOut());
          cpp::Communicator communicator =
              scope.calls.communicatorOf(scope.context, communicators.lookup(op.getCommunicator()));
          switch (op.getKind()) {
          case sched::CollectiveKind::all_reduce:
            scope.calls.allReduce(stream, communicator, out, reductionOf(op.getReduction()));
            break;
          case sched::CollectiveKind::all_gather:
            scope.calls.allGather(stream, communicator, out, in);
            break;
          case sched::CollectiveKind::reduce_scatter:
            scope.calls.reduceScatter(stream, communicator, out, in);
            break;
          case sched::CollectiveKind::all_to_all:
            scope.calls.allToAll(stream, communicator, out, in);
            break;
          case sched::CollectiveKind::permute:
            scope.calls.permute(stream, communicator, out, in, *op.getDestinations());
            break;
          }
          return success();
        })
        .Case([&](sched::RecordOp op) {
          cpp::Stream stream = streamOf(scope, op);
          scope.calls.recordEvent(stream, eventOf(scope, op.getEvent()));
          return success();
        })
        .Case([&](sched::WaitOp op) {
          cpp::Stream stream = streamOf(scope, op);
          scope.calls.waitEvent(stream, eventOf(scope, op.getEvent()));
          return success();
        })
        .Default([](Operation *op) { return op->emitOpError("is no command of level L5"); });
  }

  static rt::reduction reductionOf(train::ReductionKind kind) {
    switch (kind) {
    case train::ReductionKind::max:
      return rt::reduction::max;
    case train::ReductionKind::min:
      return rt::reduction::min;
    case train::ReductionKind::sum:
      break;
    }
    return rt::reduction::sum;
  }

  LogicalResult emitBlock(const RepeatedBlock &block, size_t index) {
    OpBuilder::InsertionGuard guard(builder);
    cpp::CppBuilder types(builder, program.getLoc());
    emitLabel(block.label);
    llvm::SmallVector<Type> inputs = {types.typeOf<rt::context &>(), types.typeOf<const std::int64_t *>(),
                                      types.typeOf<bool>()};
    bool takesLast = hasLast(block);
    if (takesLast)
      inputs.push_back(builder.getI1Type()); // what a condition is of
    auto type = builder.getFunctionType(inputs, {types.typeOf<rt::status>()});
    auto function = emitc::FuncOp::create(builder, program.getLoc(), blockName(index), type);
    function.setSpecifiersAttr(builder.getStrArrayAttr({"static"}));
    Block *entry = function.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    // Not every block reads its row or the flag.
    for (unsigned i : {1u, 2u})
      types.callOpaque("static_cast<void>", Type(), {{entry->getArgument(i), ""}});
    Scope scope{RuntimeCalls(builder, program.getLoc()),
                cpp::Context(entry->getArgument(0)),
                cpp::Expr<bool>(entry->getArgument(2)),
                takesLast ? cpp::Expr<bool>(entry->getArgument(3)) : cpp::Expr<bool>(Value()),
                &block,
                cpp::Row(entry->getArgument(1)),
                {},
                {},
                0};
    if (failed(emitCommands(scope, block.commands)))
      return failure();
    scope.calls.returnOk();
    return success();
  }

  /// Whether some of the block's commands run in the last run only.
  static bool hasLast(const RepeatedBlock &block) {
    return llvm::any_of(block.commands, [](Operation *command) { return command->hasAttr(sched::kInLastAttr); });
  }

  void emitLabel(llvm::StringRef label) {
    if (!label.empty())
      cpp::CppBuilder(builder, program.getLoc()).comment(label);
  }

  LogicalResult emitFunction(func::FuncOp source, Repeats &repeats) {
    OpBuilder::InsertionGuard guard(builder);
    cpp::CppBuilder types(builder, source.getLoc());
    llvm::SmallVector<Type> inputs = {types.typeOf<rt::context &>()};
    bool isBackward = sched::hasRole(source, sched::StepRole::backward);
    bool indexed = isBackward || sched::hasRole(source, sched::StepRole::forward);
    if (indexed) // by micro-batch and slot
      inputs.append(2, types.typeOf<std::int64_t>());
    if (isBackward)
      inputs.push_back(builder.getI1Type());
    auto function = emitc::FuncOp::create(builder, source.getLoc(), sched::getFunctionName(sched::getStep(source)),
                                          builder.getFunctionType(inputs, {types.typeOf<rt::status>()}));
    Block *entry = function.addEntryBlock();
    builder.setInsertionPointToStart(entry);
    Scope scope{RuntimeCalls(builder, source.getLoc()),
                cpp::Context(entry->getArgument(0)),
                cpp::boolean(false),
                isBackward ? cpp::Expr<bool>(entry->getArgument(3)) : cpp::Expr<bool>(Value()),
                nullptr,
                std::nullopt,
                {},
                {},
                0};
    types.callOpaque("static_cast<void>", Type(), {{entry->getArgument(0), ""}});
    if (indexed) {
      scope.adds = scope.calls.addsToEarlier(cpp::Expr<std::int64_t>(entry->getArgument(1)));
      types.callOpaque("static_cast<void>", Type(), {{scope.adds.value, ""}});
      types.callOpaque("static_cast<void>", Type(), {{entry->getArgument(2), ""}});
    }
    if (isBackward)
      types.callOpaque("static_cast<void>", Type(), {{scope.isLast.value, ""}});
    for (const Segment &segment : repeats.segmentsOf(source)) {
      if (segment.block < 0) {
        if (failed(emitCommands(scope, segment.commands)))
          return failure();
        continue;
      }
      std::string row = rowsName(segment.block) + "[" + std::to_string(segment.row) + "]";
      llvm::SmallVector<cpp::CppBuilder::Argument> arguments = {
          {scope.context.value, ""}, {{}, row}, {scope.adds.value, scope.adds.text}};
      if (hasLast(repeats.getBlocks()[segment.block]))
        arguments.push_back({scope.isLast.value, ""});
      scope.calls.check(scope.calls.callOpaque(blockName(segment.block), types.typeOf<rt::status>(), arguments));
    }
    scope.calls.returnOk();
    return success();
  }

  sched::ProgramOp program;
  OpBuilder &builder;
  const llvm::StringMap<std::string> &functors;
  sched::StreamTable streams;
  sched::ArenaTable arenas;
  llvm::StringMap<int64_t> communicators;            // name -> index
  llvm::MapVector<Attribute, std::string> constants; // elements -> table
};

emitc::FileOp startFile(ModuleOp module, OpBuilder &builder, llvm::StringRef name, llvm::ArrayRef<std::string> lines) {
  builder.setInsertionPointToEnd(module.getBody());
  auto file = emitc::FileOp::create(builder, module.getLoc(), name);
  builder.setInsertionPointToEnd(&file.getBodyRegion().front());
  for (const std::string &line : lines)
    emitc::VerbatimOp::create(builder, module.getLoc(), line);
  return file;
}

} // namespace

static constexpr char kNamespaceBegin[] = "namespace windlass_program {",
                      kNamespaceEnd[] = "} // namespace windlass_program";

/// What the runtime makes arenas of.
static LogicalResult checkArenas(sched::ProgramOp program) {
  for (auto arena : program.getOps<sched::ArenaOp>())
    if (arena.getKind() == plan::MemoryKind::disk)
      return arena.emitOpError("is of kind disk: emitted programs have arenas of the kinds device and host only");
  return success();
}

/// Views have a bounded number of dims.
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

static FailureOr<llvm::StringMap<std::string>> emitFusedFile(sched::ProgramOp program, OpBuilder &builder) {
  auto module = program->getParentOfType<ModuleOp>();
  startFile(module, builder, kFusedFile,
            {"// Fused element-wise functions; each applies the definitions of windlass/rt/scalar.h.", "#pragma once",
             "", "#include \"windlass/rt/emitted.h\"", "", kNamespaceBegin, "", "using namespace windlass::rt;", ""});
  auto functors = emitScalarFunctions(program, builder);
  if (failed(functors))
    return failure();
  emitc::VerbatimOp::create(builder, module.getLoc(), "");
  emitc::VerbatimOp::create(builder, module.getLoc(), kNamespaceEnd);
  return functors;
}

/// What files that use constants begin with.
static constexpr char kConstantsInclude[] = "#include \"constants.h\"";

/// The file of constants, where there are any.
static void emitConstantsFile(ModuleOp module, OpBuilder &builder, StepEmitter &emitter) {
  if (!emitter.hasConstants())
    return;
  startFile(module, builder, kConstantsFile,
            {"// Constants of the model whose elements differ: the bits of each element, in row-major order.",
             "#pragma once", "", "#include <cstdint>", "", kNamespaceBegin, ""});
  emitter.emitConstants(builder);
  emitc::VerbatimOp::create(builder, module.getLoc(), "");
  emitc::VerbatimOp::create(builder, module.getLoc(), kNamespaceEnd);
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
  OpBuilder builder(module.getContext());
  auto functors = emitFusedFile(*program, builder);
  if (failed(functors))
    return failure();
  StepEmitter emitter(*program, builder, *functors);
  emitConstantsFile(module, builder, emitter);
  std::vector<std::string> begin = {"// Commands of step programs, one by one.", "#include \"fused.h\""};
  if (emitter.hasConstants())
    begin.push_back(kConstantsInclude);
  llvm::append_range(begin, std::initializer_list<std::string>{"", "#include \"windlass/rt/measure.h\"", "",
                                                               "#include <limits>", "", kNamespaceBegin, ""});
  startFile(module, builder, kCommandsFile, begin);
  if (failed(emitter.emitCommands(functions)))
    return failure();
  emitc::VerbatimOp::create(builder, module.getLoc(), kNamespaceEnd);
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

  OpBuilder builder(module.getContext());
  auto functors = emitFusedFile(*program, builder);
  if (failed(functors))
    return failure();

  startFile(module, builder, kRowsFile,
            {"// Offsets into arenas, in bytes: a row per instance of a repeated block.", "#pragma once", "",
             "#include <cstdint>", "", kNamespaceBegin, ""});
  StepEmitter emitter(*program, builder, *functors);
  emitter.emitRows(functions, builder);
  emitc::VerbatimOp::create(builder, module.getLoc(), "");
  emitc::VerbatimOp::create(builder, module.getLoc(), kNamespaceEnd);

  emitConstantsFile(module, builder, emitter);
  std::vector<std::string> begin = {
      "// The step program: every kernel, copy and collective of a training step, in order.", "#include \"step.h\"",
      ""};
  if (emitter.hasConstants())
    begin.push_back(kConstantsInclude);
  llvm::append_range(begin, std::initializer_list<std::string>{"#include \"fused.h\"", "#include \"rows.h\"", "",
                                                               "#include <limits>", "", kNamespaceBegin, ""});
  startFile(module, builder, kStepFile, begin);
  if (failed(emitter.emit(functions)))
    return failure();
  emitc::VerbatimOp::create(builder, module.getLoc(), kNamespaceEnd);
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
