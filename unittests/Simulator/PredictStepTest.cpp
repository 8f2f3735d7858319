#include "windlass/Simulator/PredictStep.h"
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/StepFunctions.h"

#include "windlass/Profile/Kernels/CommandKeys.h"
#include "windlass/Profile/Measuring/MeasuredCommands.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

namespace {

/// Two ranks; the reduction that the last backward begins runs beside the matmul behind it. Four micro-batches.
constexpr char kModule[] = R"(
module {
sched.program @program on <[<"data", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @compute compute
  sched.stream @over_data communicator
  sched.communicator @c over ["data"] on @over_data
  sched.schedule [#sched.action<repeat x 4 of 2>, #sched.action<forward>, #sched.action<backward>,
                  #sched.action<reduce>, #sched.action<update>]
  func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4x8xf32>
    %b = sched.buffer @device_arena[128] : memref<8x4xf32, strided<[1, 8]>>
    %c = sched.buffer @device_arena[256] : memref<4x4xf32>
    sched.launch matmul on @compute ins(%a, %b) outs(%c) {batch_rank = 0 : i64, contract_rank = 1 : i64} {train.id = "x"} : (memref<4x8xf32>, memref<8x4xf32, strided<[1, 8]>>) -> memref<4x4xf32>
    return
  }
  func.func @backward() attributes {sched.step = #sched.step<backward, chunk 0>} {
    %c = sched.buffer @device_arena[256] : memref<4x4xf32>
    %r = sched.buffer @device_arena[512] : memref<250xf32>
    sched.launch_map @fused_0 on @compute ins(%c, %c) outs(%c) accumulate_after_first : (memref<4x4xf32>, memref<4x4xf32>) -> memref<4x4xf32>
    sched.record 0 on @compute {sched.in_last}
    sched.wait 0 on @over_data {sched.in_last}
    sched.launch_collective all_reduce sum @c, %r -> %r {sched.in_last} : memref<250xf32> -> memref<250xf32>
    return
  }
  func.func @reduce() attributes {sched.step = #sched.step<reduce, chunk 0>} {
    %a = sched.buffer @device_arena[0] : memref<4x8xf32>
    %b = sched.buffer @device_arena[128] : memref<8x4xf32, strided<[1, 8]>>
    %c = sched.buffer @device_arena[256] : memref<4x4xf32>
    sched.launch matmul on @compute ins(%a, %b) outs(%c) {batch_rank = 0 : i64, contract_rank = 1 : i64} : (memref<4x8xf32>, memref<8x4xf32, strided<[1, 8]>>) -> memref<4x4xf32>
    sched.record 0 on @over_data
    sched.wait 0 on @compute
    return
  }
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %b = sched.buffer @device_arena[512] : memref<2x250xf32>
    %o = sched.buffer @device_arena[128] : memref<250xf32>
    sched.launch own_part on @compute ins(%b) outs(%o) {axes = array<i64: 0>} : (memref<2x250xf32>) -> memref<250xf32>
    return
  }
  func.func private @fused_0(%x: f32, %y: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %y : f32
    return %0 : f32
  }
}
})";

class PredictStepTest : public testing::Test {
protected:
  PredictStepTest() {
    context.loadDialect<func::FuncDialect, arith::ArithDialect, train::TrainDialect, plan::PlanDialect,
                        sched::SchedDialect>();
    module = parseSourceString<ModuleOp>(kModule, &context);
  }

  std::vector<std::string> getKeys() {
    MeasuredCommands commands(context, Profile());
    commands.add(*sched::getOnlyProgram(*module));
    std::vector<std::string> keys;
    for (const CommandKey &key : commands.getKeys())
      keys.push_back(key.text);
    return keys;
  }

  /// A profile by which a matmul takes 7 ms, the map 1 ms and 2 ms where it adds, the collective 5 ms, the copy 3 ms.
  Profile makeProfile(const std::string &cluster) {
    Profile profile;
    profile.cluster = llvm::cantFail(findCluster(cluster, 1 << 30));
    double seconds[] = {7e-3, 1e-3, 2e-3, 3e-3};
    std::vector<std::string> keys = getKeys();
    for (auto [key, time] : llvm::zip(keys, seconds))
      profile.commands[key].loaded = {time, time / 10, 5};
    profile.collectives[{"all_reduce", 2, 1000}] = {5e-3, 0, 5};
    return profile;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
};

TEST_F(PredictStepTest, KeysHoldWhatDecidesTheTime) {
  ASSERT_TRUE(module);
  std::vector<std::string> keys = getKeys();
  ASSERT_EQ(keys.size(), 4u);
  EXPECT_EQ(keys[0], "matmul(f32[4x8], f32[8x4]{1,8}) -> f32[4x4] {batch_rank = 0 : i64, contract_rank = 1 : i64}");
  EXPECT_THAT(keys[1], StartsWith("map.add."));
  EXPECT_THAT(keys[1], HasSubstr("(f32[4x4], f32[4x4] =0) -> f32[4x4] =0"));
  // In later micro-batches it adds.
  EXPECT_EQ(keys[2], keys[1] + " adds");
  // One block stands for the rank's own.
  EXPECT_EQ(keys[3], "copy(f32[250]) -> f32[250]");
}

TEST_F(PredictStepTest, WorkOfAMatmul) {
  sched::ProgramOp program = *sched::getOnlyProgram(*module);
  CommandKeys keys(program);
  auto launch = *sched::getStepFunction(program, sched::StepRole::forward).getOps<sched::LaunchOp>().begin();
  const OperatorWork &work = keys.get(launch, false).work;
  EXPECT_EQ(work.family, "matmul");
  EXPECT_EQ(work.flops, 2 * 4 * 8 * 4);
  EXPECT_EQ(work.bytes, 4 * (32 + 32 + 16));
}

/// A profile that knows the gradient alone says what both take together.
TEST_F(PredictStepTest, WorkOfALossWithItsGradient) {
  auto loss = parseSourceString<ModuleOp>(R"(
  sched.program @program on <[]> {
    sched.stream @compute compute
    func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
      %d = sched.buffer @device_arena[0] : memref<f32>
      %x = sched.buffer @device_arena[64] : memref<4x8xbf16>
      %y = sched.buffer @device_arena[128] : memref<4xi64>
      %s = sched.buffer @device_arena[192] : memref<f32>
      sched.launch softmax_cross_entropy_with_grad on @compute ins(%d, %x, %y) outs(%s, %x) {ignore_index = -1 : i64} : (memref<f32>, memref<4x8xbf16>, memref<4xi64>) -> (memref<f32>, memref<4x8xbf16>)
      return
    }
  })",
                                          &context);
  ASSERT_TRUE(loss);
  sched::ProgramOp program = *sched::getOnlyProgram(*loss);
  auto launch = *sched::getStepFunction(program, sched::StepRole::forward).getOps<sched::LaunchOp>().begin();
  CommandKeys keys(program);
  const CommandKey &key = keys.get(launch, false);
  EXPECT_EQ(key.text, "softmax_cross_entropy_with_grad(f32[], bf16[4x8], i64[4]) -> f32[], bf16[4x8] =1 "
                      "{ignore_index = -1 : i64}");
  EXPECT_EQ(key.work.family, "softmax_cross_entropy_grad");
  EXPECT_EQ(key.work.bytes, 4 + 2 * 64 + 32 + 4);
  // Labels that it is measured with name classes.
  EXPECT_EQ(getOperands(launch, false)[2].limit, 8);
}

/// (7 + 1) + 3 (7 + 2) of the repeat, then the reduction, a matmul and the copy.
TEST_F(PredictStepTest, WhereRanksShareCoresStreamsAdd) {
  Profile profile = makeProfile("cpu:2");
  StepPrediction prediction = predictStep(*module, CostModel(profile.cluster, &profile));
  EXPECT_NEAR(prediction.seconds, (8 + 27 + 5 + 7 + 3) * 1e-3, 1e-12);
  EXPECT_NEAR(prediction.bySource[CostSource::Measured], prediction.seconds, 1e-12);
  EXPECT_NEAR(prediction.byFamily["all_reduce"], 5e-3, 1e-12);
  EXPECT_NEAR(prediction.errorSeconds, (8 + 27 + 7 + 3) * 1e-4, 1e-12);
  EXPECT_EQ(prediction.uncalibratedSeconds, 0);
  StepPrediction guess = predictStep(*module, CostModel(profile.cluster));
  EXPECT_EQ(guess.errorSeconds, 0);
  EXPECT_NEAR(guess.uncalibratedSeconds, guess.bySource[CostSource::Analytic], 1e-12);
}

TEST_F(PredictStepTest, RepeatsMayBeNested) {
  Profile profile = makeProfile("cpu:2");
  auto predict = [&](llvm::StringRef repeat) {
    std::string text = kModule;
    text.replace(text.find("repeat x 4 of 2"), 15, repeat);
    module = parseSourceString<ModuleOp>(text, &context);
    return predictStep(*module, CostModel(profile.cluster, &profile)).seconds;
  };
  EXPECT_GT(predict("repeat x 6 of 2"), 0);
  EXPECT_NEAR(predict("repeat x 3 of 3>, #sched.action<repeat x 2 of 2"), predict("repeat x 6 of 2"), 1e-12);
  // A table that is too long is reported.
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { error = diagnostic.str(); });
  EXPECT_EQ(predict("repeat x 3000000 of 2"), 0);
  EXPECT_EQ(error, "'sched.schedule' op position 0: has more than 4194304 actions");
}

/// On devices of their own the reduction hides behind the matmul.
TEST_F(PredictStepTest, ElseTheyOverlap) {
  Profile profile = makeProfile("h200:2");
  int64_t visited = 0;
  StepPrediction prediction = predictStep(*module, CostModel(profile.cluster, &profile),
                                          [&](const SimulatedCommand &command) { visited += command.picoseconds; });
  EXPECT_NEAR(prediction.seconds, (8 + 27 + 7 + 3) * 1e-3, 1e-12);
  EXPECT_GT(visited, 0);
}

/// Several pairs of buffers take the time of one collective of their bytes together: 2000 and 400 of the wholes.
TEST_F(PredictStepTest, AUnitIsOneCollective) {
  auto unit = parseSourceString<ModuleOp>(R"(
  sched.program @program on <[<"data", 2>]> {
    sched.arena @device_arena device bytes 4096
    sched.stream @over_data communicator
    sched.communicator @c over ["data"] on @over_data
    sched.schedule [#sched.action<forward>]
    func.func @forward() attributes {sched.step = #sched.step<forward, chunk 0>} {
      %a = sched.buffer @device_arena[0] : memref<250xf32>
      %b = sched.buffer @device_arena[1024] : memref<100xbf16>
      %x = sched.buffer @device_arena[1280] : memref<500xf32>
      %y = sched.buffer @device_arena[3328] : memref<200xbf16>
      sched.launch_collective all_gather sum @c, %a, %b -> %x, %y : memref<250xf32>, memref<100xbf16> -> memref<500xf32>, memref<200xbf16>
      return
    }
  })",
                                          &context);
  ASSERT_TRUE(unit);
  Profile profile;
  profile.cluster = llvm::cantFail(findCluster("h200:2", 1 << 30));
  profile.collectives[{"all_gather", 2, 2400}] = {5e-3, 0, 5};
  EXPECT_NEAR(predictStep(*unit, CostModel(profile.cluster, &profile)).seconds, 5e-3, 1e-12);
}

/// Commands of 1 to 7 ms begin once they are issued, 10 ms after one another; the update's 1 ms later.
TEST_F(PredictStepTest, CommandsWaitForASlowHost) {
  Profile profile = makeProfile("h200:2");
  profile.device.emplace().issueSeconds = 10e-3;
  profile.device->updateIssueSeconds = 1e-3;
  StepPrediction prediction = predictStep(*module, CostModel(profile.cluster, &profile));
  // Four matmuls and four maps, the reduction, and a matmul of 7 ms that ends before the copy begins.
  EXPECT_NEAR(prediction.seconds, 10 * 10e-3 + 7e-3 + 3e-3, 1e-12);
  // A fast one is never waited for.
  profile.device->issueSeconds = profile.device->updateIssueSeconds = 1e-4;
  EXPECT_NEAR(predictStep(*module, CostModel(profile.cluster, &profile)).seconds, (8 + 27 + 7 + 3) * 1e-3 + 1e-4,
              1e-12);
}

TEST_F(PredictStepTest, CommandsAreCountedByWhatTheyDo) {
  Profile profile = makeProfile("h200:2");
  StepPrediction prediction = predictStep(*module, CostModel(profile.cluster, &profile));
  double matmuls = 0, reductions = 0, updates = 0;
  for (const auto &[total, count] : prediction.commands) {
    matmuls += total.family == "matmul" ? count : 0;
    reductions += total.family == "all_reduce" && total.members == 2 && total.bytes == 1000 ? count : 0;
    updates += total.isUpdate ? count : 0;
  }
  EXPECT_EQ(matmuls, 5);
  EXPECT_EQ(reductions, 1);
  EXPECT_EQ(updates, 1);
}

TEST_F(PredictStepTest, ManyMicroBatchesAreNotReplayedOneByOne) {
  std::string text = kModule;
  text.replace(text.find("repeat x 4"), 10, "repeat x 1000000");
  module = parseSourceString<ModuleOp>(text, &context);
  Profile profile = makeProfile("cpu:2");
  StepPrediction prediction = predictStep(*module, CostModel(profile.cluster, &profile));
  EXPECT_NEAR(prediction.seconds, (8 + 9 * (1e6 - 1) + 5 + 7 + 3) * 1e-3, 1e-5);
  // Nor where commands are issued slowly, nor where the host gets ahead.
  for (double issue : {1e-3, 4e-3, 10e-3}) {
    profile = makeProfile("h200:2");
    profile.device.emplace().issueSeconds = issue;
    double each = std::max(2 * issue, 9e-3);
    EXPECT_NEAR(predictStep(*module, CostModel(profile.cluster, &profile)).seconds, each * 1e6, 1) << issue;
  }
}

/// A copy to the host, an update there and a copy back, behind each other; and what they run on.
constexpr char kOffloaded[] = R"(
module {
sched.program @program on <[]> {
  sched.arena @device_arena device bytes 8000000
  sched.arena @host_arena host bytes 16000000
  sched.stream @compute compute
  sched.stream @flush d2h
  sched.stream @host host
  sched.stream @fetch h2d
  sched.schedule [#sched.action<update>]
  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {
    %g = sched.buffer @device_arena[4000000] : memref<1000000xf32>
    %p = sched.buffer @device_arena[0] : memref<1000000xf32>
    %there = sched.buffer @host_arena[0] : memref<1000000xf32>
    %w = sched.buffer @host_arena[4000000] : memref<1000000xf32>
    sched.launch copy on @flush ins(%g) outs(%there) {} : (memref<1000000xf32>) -> memref<1000000xf32>
    sched.record 0 on @flush
    sched.wait 0 on @host
    sched.launch_map @twice on @host ins(%there) outs(%w) : (memref<1000000xf32>) -> memref<1000000xf32>
    sched.record 0 on @host
    sched.wait 0 on @fetch
    sched.launch copy on @fetch ins(%w) outs(%p) {} : (memref<1000000xf32>) -> memref<1000000xf32>
    return
  }
  func.func private @twice(%x: f32) -> f32 attributes {sched.scalar_function} {
    %0 = train.add %x, %x : f32
    return %0 : f32
  }
}
})";

TEST_F(PredictStepTest, CopiesAndHostKernelsTakeTheirTime) {
  module = parseSourceString<ModuleOp>(kOffloaded, &context);
  ASSERT_TRUE(module);
  // Ranks on CPUs are their hosts: a copy reads and writes one memory.
  Cluster cpus = llvm::cantFail(findCluster("cpu:1", 1 << 30));
  CostModel costs(cpus);
  StepPrediction prediction = predictStep(*module, costs);
  OperatorWork work;
  work.bytes = 8e6;
  double copy = costs.getAnalyticSeconds(work);
  EXPECT_NEAR(prediction.byFamily["d2h"], copy, 1e-9);
  EXPECT_NEAR(prediction.byFamily["h2d"], copy, 1e-9);
  EXPECT_GT(prediction.byFamily["map"], 0);
  EXPECT_NEAR(prediction.seconds, 2 * copy + prediction.byFamily["map"], 1e-9);
}

TEST_F(PredictStepTest, WhatTheClusterDoesNotSayIsNotSimulated) {
  std::string error;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { error = diagnostic.str(); });
  module = parseSourceString<ModuleOp>(kOffloaded, &context);
  Cluster gpus = llvm::cantFail(findCluster("h200:1", 1 << 30));
  gpus.hosts[0].memoryBytesPerSecond = 80'000'000'000;
  StepPrediction prediction = predictStep(*module, CostModel(gpus));
  double rate = static_cast<double>(*gpus.hosts[0].deviceLink.bytesPerSecond);
  EXPECT_NEAR(prediction.byFamily["h2d"], 4e6 / rate + DeviceModel().launchSeconds, 1e-9);
  EXPECT_NEAR(prediction.byFamily["map"], 8e6 / (80e9 * 0.7) + 2e-6, 1e-9);
  EXPECT_NEAR(prediction.seconds, 2 * prediction.byFamily["h2d"] + prediction.byFamily["map"], 1e-9);
  gpus.hosts[0].deviceLink.bytesPerSecond = std::nullopt;
  EXPECT_EQ(predictStep(*module, CostModel(gpus)).seconds, 0);
  EXPECT_EQ(error, "cannot be simulated: runs on a stream of kind d2h, but the cluster does not say how fast the link "
                   "between devices and hosts is");
  // Without the copies, and a rate of the host's memory.
  std::string text = kOffloaded;
  for (size_t copy; (copy = text.find("    sched.launch copy")) != std::string::npos;)
    text.erase(copy, text.find('\n', copy) - copy);
  module = parseSourceString<ModuleOp>(text, &context);
  gpus.hosts[0].memoryBytesPerSecond.reset();
  EXPECT_EQ(predictStep(*module, CostModel(gpus)).seconds, 0);
  EXPECT_EQ(error, "cannot be simulated: runs on a stream of kind host, but the cluster does not say how fast hosts "
                   "compute");
}

TEST_F(PredictStepTest, CopiesAndTheHostShareItsMemory) {
  std::string text = kOffloaded;
  for (llvm::StringRef mark : {"sched.record", "sched.wait"})
    for (size_t at; (at = text.find(mark)) != std::string::npos;)
      text.erase(at, text.find('\n', at) - at);
  module = parseSourceString<ModuleOp>(text, &context);
  ASSERT_TRUE(module);
  Cluster gpus = llvm::cantFail(findCluster("h200:1", 1 << 30));
  gpus.hosts[0].memoryBytesPerSecond = 800'000'000'000;
  StepPrediction prediction = predictStep(*module, CostModel(gpus));
  double rate = 0.7 * 800e9, copy = prediction.byFamily["h2d"], map = prediction.byFamily["map"];
  // While all three run, they ask for more than the memory has, and are that much slower.
  double asked = 2 * 4e6 / rate / copy + 8e6 / rate / map;
  ASSERT_GT(asked, 1);
  ASSERT_GT(copy, map * asked);
  EXPECT_NEAR(prediction.seconds, copy + map * (asked - 1), 1e-9);
}

/// Two hosts of eight devices: `data` is over the hosts, `model` and `other` are within one. All collectives of the
/// update begin at once.
std::string makeCollectives(llvm::ArrayRef<llvm::StringRef> over) {
  std::string text = R"(
module {
sched.program @program on <[<"data", 2>, <"model", 2>, <"other", 4>]> {
  sched.arena @device_arena device bytes 400000000000
  sched.stream @compute compute
  sched.schedule [#sched.action<update>]
)";
  std::string launches;
  for (auto [number, axis] : llvm::enumerate(over)) {
    std::string name = axis.str(), at = std::to_string(number * 40'000'000'000);
    text += "  sched.stream @over_" + name + " communicator\n  sched.communicator @" + name + " over [\"" + name +
            "\"] on @over_" + name + "\n";
    launches += "    %" + name + " = sched.buffer @device_arena[" + at +
                "] : memref<10000000000xf32>\n    sched.launch_collective all_reduce sum @" + name + ", %" + name +
                " -> %" + name + " : memref<10000000000xf32> -> memref<10000000000xf32>\n";
  }
  return text + "  func.func @update() attributes {sched.step = #sched.step<update, chunk 0>} {\n" + launches +
         "    return\n  }\n}\n}";
}

TEST_F(PredictStepTest, CollectivesOnOneTierShareItsRate) {
  Cluster cluster = llvm::cantFail(findCluster("h100:2x8", 1 << 30));
  CostModel costs(cluster);
  auto predict = [&](llvm::ArrayRef<llvm::StringRef> over) {
    module = parseSourceString<ModuleOp>(makeCollectives(over), &context);
    return predictStep(*module, costs);
  };
  double data = predict({"data"}).seconds, model = predict({"model"}).seconds, other = predict({"other"}).seconds;
  // One communicator has the links to itself.
  CollectiveWork work = {"all_reduce", {}, 4e10};
  work.group.axes.push_back({4, 2});
  EXPECT_NEAR(model, costs.getAnalyticSeconds(work), 1e-11);
  // Two on one tier take as long as their sum; latencies pass side by side.
  StepPrediction both = predict({"model", "other"});
  EXPECT_NEAR(both.seconds, model + other, 0.02 * (model + other));
  EXPECT_LE(both.seconds, model + other);
  EXPECT_NEAR(both.getBusiestStream().seconds, both.seconds, 1e-11);
  // They and one on another tier do not disturb each other.
  EXPECT_EQ(predict({"data", "model"}).seconds, std::max(data, model));
  EXPECT_EQ(predict({"data", "model", "other"}).seconds, std::max(data, both.seconds));
}

TEST_F(PredictStepTest, SmallCollectivesLeaveRoomForEachOther) {
  Cluster cluster = llvm::cantFail(findCluster("h100:2x8", 1 << 30));
  auto predict = [&](llvm::ArrayRef<llvm::StringRef> over) {
    std::string text = makeCollectives(over);
    for (size_t at; (at = text.find("10000000000xf32")) != std::string::npos;)
      text.replace(at, 11, "1000");
    module = parseSourceString<ModuleOp>(text, &context);
    return predictStep(*module, CostModel(cluster)).seconds;
  };
  EXPECT_EQ(predict({"model", "other"}), std::max(predict({"model"}), predict({"other"})));
}

} // namespace
