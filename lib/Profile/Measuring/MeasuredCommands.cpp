#include "windlass/Profile/Measuring/MeasuredCommands.h"

#include "windlass/Conversion/SchedToEmitC/SchedToEmitC.h"
#include "windlass/Dialect/Sched/Analysis/Scratch.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"
#include "windlass/Dialect/Sched/IR/Streams.h"
#include "windlass/Dialect/Sched/Transforms/FuseEpilogues.h"
#include "windlass/Support/TensorBytes.h"

#include "mlir/IR/IRMapping.h"
#include "llvm/Support/JSON.h"

using namespace mlir;
using namespace windlass;

/// The bytes of a rank's arena for measuring, where commands need no more: several times what caches hold.
static constexpr int64_t kArenaBytes = int64_t(256) << 20;

MeasuredCommands::MeasuredCommands(MLIRContext &context, const Profile &profile)
    : module(ModuleOp::create(UnknownLoc::get(&context))), measuresCollectives(profile.collectives.empty()) {
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  program = sched::ProgramOp::create(builder, module->getLoc(), "commands", plan::MeshAttr::get(&context, {}));
  builder.setInsertionPointToEnd(program.getBody());
  compute = sched::StreamOp::create(builder, module->getLoc(), "compute", sched::StreamKind::compute);
  for (const auto &[key, entry] : profile.commands)
    known.insert(key);
}

void MeasuredCommands::add(sched::ProgramOp schedule) {
  CommandKeys all(schedule);
  sched::StreamTable streams(schedule);
  precision = train::getPrecision(schedule->getParentOfType<ModuleOp>()).str();
  for (func::FuncOp function : sched::getStepFunctions(schedule))
    if (!sched::hasRole(function, sched::StepRole::init) && !sched::hasRole(function, sched::StepRole::evaluate))
      for (Operation &op : function.getBody().front()) {
        if (!llvm::isa<sched::LaunchOp, sched::LaunchMapOp>(op) ||
            streams.getKind(streams.getNumber(&op)) != sched::StreamKind::compute)
          continue;
        for (bool isLater : {false, true}) {
          const CommandKey &key = all.get(&op, isLater);
          if ((!isLater || addsLater(&op)) && known.insert(key.text).second)
            addCommand(&op, key, isLater);
        }
      }
}

void MeasuredCommands::addFused(sched::ProgramOp schedule) {
  // The copy is put next to the original, so that it is part of the same module.
  OpBuilder builder(schedule);
  auto fused = llvm::cast<sched::ProgramOp>(builder.clone(*schedule));
  sched::fuseEpilogues(fused, [](sched::LaunchOp) { return true; });
  add(fused);
  fused.erase();
}

void MeasuredCommands::addCommand(Operation *command, const CommandKey &key, bool isLater) {
  std::vector<CommandOperand> operands = getOperands(command, isLater);
  cpp::MeasuredCommand &made = commands.emplace_back();
  made.adds = isLater;
  made.key = key.text;
  made.family = key.work.family;
  made.flops = key.work.flops;
  made.bytes = key.work.bytes;
  made.isNarrow = key.work.isNarrow;
  auto launch = llvm::dyn_cast<sched::LaunchOp>(command);
  made.isAttention = launch && launch.getRow().flops.kind == sched::KernelFlops::Kind::attention;
  int64_t bytes = 0;
  for (const CommandOperand &operand : operands) {
    made.operands.push_back({operand.type, operand.elements, operand.limit, operand.isRead});
    bytes += llvm::alignTo(operand.elements * getElementBytes(operand.type), 64);
  }
  largestBytes = std::max(largestBytes, bytes);

  Location loc = module->getLoc();
  OpBuilder builder = OpBuilder::atBlockEnd(program.getBody());
  auto type = builder.getFunctionType({}, {});
  auto function = func::FuncOp::create(builder, loc, "command_" + std::to_string(keys.size()), type);
  builder.setInsertionPointToStart(function.addEntryBlock());
  IRMapping mapping;
  for (Value value : command->getOperands())
    if (!mapping.contains(value))
      mapping.map(value, builder.clone(*value.getDefiningOp())->getResult(0));
  if (launch && launch.getRow().bytes == sched::MovedBytes::block) {
    // One block stands for the rank's own.
    auto blocks = launch.getIns()[0].getDefiningOp<sched::BufferOp>();
    auto block = sched::BufferOp::create(builder, loc, dropBlocks(blocks.getType()), blocks.getArenaAttr(),
                                         blocks.getOffsetAttr());
    sched::LaunchOp::create(builder, loc, launch.getRow().key, compute.getSymName(), ValueRange(block.getResult()),
                            ValueRange(mapping.lookup(launch.getOuts()[0])), builder.getDictionaryAttr({}), false,
                            false);
  } else {
    Operation *copy = builder.clone(*command, mapping);
    copy->removeAttr(sched::kInLastAttr);
    if (launch) {
      llvm::cast<sched::LaunchOp>(copy).setStream(compute.getSymName());
    } else {
      auto map = llvm::cast<sched::LaunchMapOp>(copy);
      map.setStream(compute.getSymName());
      // Functions of several plans may have the same name.
      std::string name = "function_" + std::to_string(keys.size());
      OpBuilder top = OpBuilder::atBlockEnd(program.getBody());
      auto source = sched::getProgram(command).lookupSymbol<func::FuncOp>(map.getFunction());
      llvm::cast<func::FuncOp>(top.clone(*source)).setName(name);
      map.setFunction(name);
    }
  }
  func::ReturnOp::create(builder, loc);
  keys.push_back(key);
}

FailureOr<cpp::ProjectFiles> MeasuredCommands::makeProject(const Cluster &cluster, bool writesProfile) {
  cpp::MeasuringOptions options;
  options.ranks = cluster.getDevices();
  options.precision = precision;
  options.backend = cluster.getBackend();
  if (writesProfile)
    llvm::raw_string_ostream(options.cluster) << llvm::json::Value(toJson(cluster));
  options.measuresCollectives = measuresCollectives;
  options.arenaBytes = std::max(largestBytes, kArenaBytes);
  options.scratchBytes = sched::getScratchBytesPerThread(program);
  if (failed(convertCommandsToEmitC(*module)))
    return failure();
  return cpp::makeMeasuringProject(*module, commands, options);
}
