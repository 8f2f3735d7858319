// Steps of several positions against closed forms and against an evaluation of their tables.
#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Schedules.h"
#include "windlass/Profile/Profile.h"
#include "windlass/Schedule/Generators.h"
#include "windlass/Simulator/PredictStep.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <algorithm>
#include <map>
#include <random>

using namespace mlir;
using namespace windlass;
using schedule::ActionKind;

namespace {

/// What a chunk's functions and a message take, in microseconds.
struct Times {
  std::vector<int64_t> forward, backward;
  int64_t hop = 0;

  static Times ofEqualChunks(const schedule::Placement &placement, int64_t forward, int64_t backward, int64_t hop = 0) {
    size_t chunks = placement.countChunks();
    return {std::vector<int64_t>(chunks, forward), std::vector<int64_t>(chunks, backward), hop};
  }
};

/// The end of a step, from the tables alone: each stream, and what each slot waits for, is a number. Positions are
/// evaluated in turn, each up to a message whose other end has not come to it.
class TableReplay {
public:
  TableReplay(const schedule::Pipeline &pipeline, const Times &times) : pipeline(pipeline), times(times) {}

  int64_t run() {
    std::vector<size_t> cursors(pipeline.positions.size());
    for (bool hasRun = true; hasRun;) {
      hasRun = false;
      for (size_t position = 0; position < cursors.size(); ++position)
        for (; cursors[position] < pipeline.positions[position].actions.size(); ++cursors[position], hasRun = true) {
          const schedule::Action &action = pipeline.positions[position].actions[cursors[position]];
          if (!schedule::isTransfer(action.kind)) {
            compute(action, static_cast<int64_t>(position));
            continue;
          }
          const schedule::Schedule &peer = pipeline.positions[action.peer];
          if (cursors[action.peer] == peer.actions.size())
            return -1;
          const schedule::Action &other = peer.actions[cursors[action.peer]];
          if (!schedule::isTransfer(other.kind) || other.chunk != action.peerChunk || other.peerChunk != action.chunk)
            break;
          move(action, other);
          ++cursors[action.peer];
        }
    }
    return end;
  }

private:
  using Slot = std::pair<int64_t, int64_t>;
  static Slot slotOf(const schedule::Action &action) { return {action.chunk, action.slot}; }

  void compute(const schedule::Action &action, int64_t position) {
    if (action.kind != ActionKind::Forward && action.kind != ActionKind::Backward)
      return;
    int64_t begin = std::max(kernels[position], moved[slotOf(action)]);
    const std::vector<int64_t> &took = action.kind == ActionKind::Forward ? times.forward : times.backward;
    kernels[position] = computed[slotOf(action)] = begin + took[action.chunk];
    end = std::max(end, kernels[position]);
  }

  void move(const schedule::Action &one, const schedule::Action &other) {
    int64_t &link = links[std::minmax(one.peer, other.peer)];
    int64_t arrival = std::max({link, computed[slotOf(one)], computed[slotOf(other)]}) + times.hop;
    end = std::max(end, link = moved[slotOf(one)] = moved[slotOf(other)] = arrival);
  }

  const schedule::Pipeline &pipeline;
  const Times &times;
  std::map<int64_t, int64_t> kernels;                   ///< by position
  std::map<std::pair<int64_t, int64_t>, int64_t> links; ///< by two positions
  std::map<Slot, int64_t> computed, moved;
  int64_t end = 0;
};

class PredictPositionsTest : public testing::Test {
protected:
  PredictPositionsTest() {
    context.loadDialect<func::FuncDialect, arith::ArithDialect, train::TrainDialect, plan::PlanDialect,
                        sched::SchedDialect>();
    // A message of 4 bytes takes nothing.
    setLink(0, int64_t(1) << 60);
  }

  /// Messages within a host take as long as was measured: latency, and bytes over the rate.
  void setLink(double latencySeconds, int64_t bytesPerSecond) {
    setHosts(1024);
    for (int64_t bytes : {4, 4000, 16000}) {
      double seconds = latencySeconds + static_cast<double>(bytes) / static_cast<double>(bytesPerSecond);
      profile.collectives[{"permute", 2, bytes}] = {std::max(seconds, 1e-15), 0, 1};
    }
  }

  /// Hosts of `devices`, between which a message takes a launch of 8 us and 1.65 times 10 us.
  void setHosts(int64_t devices) {
    Cluster &cluster = profile.cluster = Cluster();
    cluster.deviceTypes["d"].backend = backend;
    cluster.deviceTypes["d"].memoryBytes = int64_t(1) << 30;
    HostGroup &group = cluster.hosts.emplace_back();
    group.count = 1024 / devices;
    group.devices = devices;
    group.deviceType = "d";
    for (int64_t joined : {devices, int64_t(1024)})
      if (cluster.linkTiers.empty() || joined > devices)
        cluster.linkTiers.push_back({"of" + std::to_string(joined), joined, {10e-6, int64_t(1) << 60}});
  }

  /// A border of `bytes`, a multiple of 4, with a chunk on another position.
  static std::string printBorder(int64_t chunk, std::optional<int64_t> peer, const schedule::Placement &placement,
                                 int64_t bytes) {
    if (!peer || !placement.crossesPositions(chunk, *peer))
      return "";
    std::string ends = std::to_string(chunk) + "_" + std::to_string(*peer), type, layout;
    type = "tensor<" + std::to_string(bytes / 4) + "xf32>";
    layout = " <[<[<" + std::to_string(bytes / 4) + ">]>]>";
    std::string text;
    for (llvm::StringRef kind : {"sent", "received"})
      text += ("  sched.resource " + kind + " @" + kind + "_" + ends + " : " + type + " of " + type + layout +
               " {chunk = " + std::to_string(chunk) + " : i64, peer = " + std::to_string(*peer) + " : i64}\n")
                  .str();
    return text;
  }

  /// A function of one copy of `elements` numbers; its time is that of the profile.
  static std::string printFunction(llvm::StringRef role, int64_t chunk, int64_t elements) {
    std::string type = "memref<" + std::to_string(elements) + "xf32>";
    return ("  func.func @" + role + "_" + std::to_string(chunk) + "() attributes {sched.step = #sched.step<" + role +
            ", chunk " + std::to_string(chunk) + ">} {\n    %a = sched.buffer @arena[0] : " + type +
            "\n    %b = sched.buffer @arena[4096] : " + type +
            "\n    sched.launch copy on @compute ins(%a) outs(%b) {} : (" + type + ") -> " + type +
            "\n    return\n  }\n")
        .str();
  }

  /// Makes the module of a pipeline whose positions have the mesh `mesh`, and whose functions take `times`.
  OwningOpRef<ModuleOp> makeModule(const schedule::Pipeline &pipeline, const Times &times, int64_t bytes = 4,
                                   llvm::StringRef mesh = "<[]>") {
    const schedule::Placement &placement = pipeline.placement;
    std::string chunks;
    for (int64_t position : placement.positionOf)
      chunks += (chunks.empty() ? "" : ", ") + std::to_string(position);
    std::string text = "module attributes {sched.placement = #sched.placement<[" + chunks + "]>} {\n";
    for (int64_t position = 0; position < placement.positions; ++position) {
      std::string number = std::to_string(position);
      text += "sched.program @p" + number + (position > 0 ? " position " + number : "") + " on " + mesh.str() +
              " {\n  sched.arena @arena device bytes 8192\n  sched.stream @compute compute\n";
      for (int64_t chunk = 0; chunk < placement.countChunks(); ++chunk) {
        if (placement.positionOf[chunk] != position)
          continue;
        text += printBorder(chunk, placement.getPrevious(chunk), placement, bytes) +
                printBorder(chunk, placement.getNext(chunk), placement, bytes);
        int64_t elements = 1 + 2 * chunk;
        text += printFunction("forward", chunk, elements) + printFunction("backward", chunk, elements + 1);
        setTime(elements, times.forward[chunk]);
        setTime(elements + 1, times.backward[chunk]);
      }
      text += "}\n";
    }
    OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text + "}\n", &context);
    if (!module)
      return module;
    for (sched::ProgramOp program : sched::getPrograms(*module)) {
      OpBuilder builder = OpBuilder::atBlockEnd(program.getBody());
      sched::createSchedule(builder, program.getLoc(), schedule::compress(pipeline.positions[program.getPosition()]));
    }
    return module;
  }

  void setTime(int64_t elements, int64_t microseconds) {
    std::string type = "f32[" + std::to_string(elements) + "]";
    profile.commands["copy(" + type + ") -> " + type].loaded = {static_cast<double>(microseconds) * 1e-6, 0, 5};
  }

  StepPrediction predict(const schedule::Pipeline &pipeline, const Times &times, int64_t bytes = 4) {
    OwningOpRef<ModuleOp> module = makeModule(pipeline, times, bytes);
    if (!module)
      return {};
    EXPECT_TRUE(succeeded(sched::checkSteps(*module)));
    return predictStep(*module, CostModel(profile.cluster, &profile));
  }

  std::string errorOf(ModuleOp module) {
    std::string error;
    ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { error = diagnostic.str(); });
    EXPECT_EQ(predictStep(module, CostModel(profile.cluster, &profile)).seconds, 0);
    return error;
  }

  MLIRContext context;
  std::string backend = "cuda";
  Profile profile;
};

/// In microseconds.
int64_t lengthOf(const StepPrediction &prediction) { return std::llround(prediction.seconds * 1e6); }

/// With equal chunks and free links, p positions run m micro-batches in m + p - 1 turns of a forward and a backward.
TEST_F(PredictPositionsTest, GPipeAnd1F1BTakeATurnForEachMicroBatchAndEachOtherPosition) {
  for (const char *ranks : {"cuda", "cpu"}) {
    backend = ranks;
    setLink(0, int64_t(1) << 60);
    for (auto make : {schedule::makeGPipe, schedule::make1F1B})
      for (int64_t positions : {1, 2, 3, 4, 8})
        for (int64_t microBatches : {1, 2, 8, 9, 64})
          for (auto [forward, backward] : {std::pair(10, 20), {15, 15}, {20, 10}}) {
            schedule::Pipeline pipeline = llvm::cantFail(make(positions, 1, microBatches));
            StepPrediction prediction = predict(pipeline, Times::ofEqualChunks(pipeline.placement, forward, backward));
            int64_t turns = microBatches + positions - 1, turn = forward + backward;
            EXPECT_EQ(lengthOf(prediction), turns * turn) << positions << " positions, " << microBatches;
            ASSERT_EQ(prediction.positions.size(), static_cast<size_t>(positions));
            for (const PositionPrediction &position : prediction.positions) {
              double busy = static_cast<double>(microBatches * turn) * 1e-6;
              EXPECT_NEAR(position.busySeconds, busy, 1e-12);
              EXPECT_NEAR(position.streams.at("compute"), busy, 1e-12);
              EXPECT_NEAR(position.bubbleShare, static_cast<double>(positions - 1) / static_cast<double>(turns), 1e-9);
            }
          }
  }
}

/// With v chunks per position, filling and draining takes a v-th: the time of a position's chunks counts as f and b.
TEST_F(PredictPositionsTest, InterleavedChunksShrinkTheBubble) {
  for (int64_t positions : {2, 3, 4, 8})
    for (int64_t chunks : {1, 2, 3})
      for (int64_t rounds : {1, 2, 5}) {
        int64_t microBatches = rounds * positions, forward = 10, backward = 20;
        schedule::Pipeline pipeline = llvm::cantFail(schedule::makeInterleaved1F1B(positions, chunks, microBatches));
        StepPrediction prediction = predict(pipeline, Times::ofEqualChunks(pipeline.placement, forward, backward));
        int64_t turn = (forward + backward) * chunks;
        EXPECT_EQ(lengthOf(prediction), microBatches * turn + (positions - 1) * turn / chunks)
            << positions << " positions of " << chunks << " chunks, " << microBatches;
      }
}

/// All forwards, then all backwards are two pipelines of p computations and p - 1 messages, whose slowest stage sets
/// the pace.
TEST_F(PredictPositionsTest, SlowLinksDelayTheFirstMessagesOfGPipe) {
  int64_t forward = 10, backward = 20;
  for (int64_t positions : {2, 3, 5})
    for (int64_t microBatches : {1, 4, 16})
      for (int64_t hop : {1, 10, 15, 20, 45}) {
        setLink(static_cast<double>(hop) * 1e-6, int64_t(1) << 60);
        schedule::Pipeline pipeline = llvm::cantFail(schedule::makeGPipe(positions, 1, microBatches));
        StepPrediction prediction = predict(pipeline, Times::ofEqualChunks(pipeline.placement, forward, backward));
        int64_t fill = positions * (forward + backward) + 2 * (positions - 1) * hop;
        int64_t pace = std::max(forward, hop) + std::max(backward, hop);
        EXPECT_EQ(lengthOf(prediction), fill + (microBatches - 1) * pace)
            << positions << " positions, " << microBatches << " micro-batches, " << hop;
      }
}

/// The last position of 1F1B has one slot: between two of its micro-batches a gradient leaves and an activation comes.
TEST_F(PredictPositionsTest, SlowLinksDelayEachMicroBatchWhereASlotIsWaitedFor) {
  int64_t forward = 10, backward = 20;
  for (int64_t microBatches : {1, 2, 8, 1000})
    for (int64_t bytes : {4000, 16000}) {
      // 3 us, and 1 us for each 1,000 bytes.
      setLink(3e-6, 1'000'000'000);
      int64_t hop = 3 + bytes / 1000;
      schedule::Pipeline pipeline = llvm::cantFail(schedule::make1F1B(2, 1, microBatches));
      StepPrediction prediction = predict(pipeline, Times::ofEqualChunks(pipeline.placement, forward, backward), bytes);
      EXPECT_EQ(lengthOf(prediction), forward + microBatches * (forward + backward + 2 * hop) + backward);
      // Both ends of all messages.
      double messages = static_cast<double>(microBatches * hop) * 1e-6;
      EXPECT_NEAR(prediction.byFamily["send"], 2 * messages, 1e-9);
      EXPECT_NEAR(prediction.byFamily["receive"], 2 * messages, 1e-9);
      CommandTotal sent{"send", 0, static_cast<double>(bytes), 2};
      EXPECT_EQ(prediction.commands.at(sent), static_cast<double>(2 * microBatches));
      EXPECT_NEAR(prediction.positions[0].streams.at("messages with position 1"), 2 * messages, 1e-9);
      EXPECT_NEAR(prediction.positions[1].streams.at("messages with position 0"), 2 * messages, 1e-9);
      // The second position is idle while the first runs its first forward and its last backward.
      EXPECT_NEAR(prediction.positions[1].bubbleShare * prediction.seconds,
                  static_cast<double>(forward + backward) * 1e-6, 1e-9);
      std::string busiest = prediction.getBusiestStream().name;
      EXPECT_EQ(llvm::StringRef(busiest).starts_with("messages"), 2 * hop > forward + backward);
      double elapsed = 0;
      for (const StepWindow &window : prediction.positions[0].windows)
        elapsed += window.seconds;
      EXPECT_NEAR(elapsed, prediction.seconds, 1e-9);
    }
}

TEST_F(PredictPositionsTest, AnyScheduleTakesWhatItsTablesSay) {
  std::mt19937 random(11);
  auto draw = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 200; ++i) {
    auto make = std::array{schedule::makeGPipe, schedule::make1F1B, schedule::makeInterleaved1F1B}[draw(0, 2)];
    int64_t positions = draw(1, 4), microBatches = draw(1, 3) * positions;
    schedule::Pipeline pipeline = llvm::cantFail(make(positions, draw(1, 3), microBatches));
    Times times = Times::ofEqualChunks(pipeline.placement, 0, 0, draw(0, 2) == 0 ? 0 : draw(1, 40));
    for (int64_t &each : times.forward)
      each = draw(1, 30);
    for (int64_t &each : times.backward)
      each = draw(1, 60);
    setLink(static_cast<double>(times.hop) * 1e-6, int64_t(1) << 60);
    EXPECT_EQ(lengthOf(predict(pipeline, times)), TableReplay(pipeline, times).run()) << "draw " << i;
  }
}

/// Turns of a schedule are alike though slots take turns, so a step of many micro-batches costs no more than one of
/// few.
TEST_F(PredictPositionsTest, ManyMicroBatchesAreNotReplayedOneByOne) {
  int64_t microBatches = 40'000, visited = 0;
  setLink(3e-6, int64_t(1) << 60);
  schedule::Pipeline pipeline = llvm::cantFail(schedule::make1F1B(8, 1, microBatches));
  Times times = Times::ofEqualChunks(pipeline.placement, 10, 20, 3);
  OwningOpRef<ModuleOp> module = makeModule(pipeline, times);
  ASSERT_TRUE(module);
  StepPrediction prediction =
      predictStep(*module, CostModel(profile.cluster, &profile), [&](const SimulatedCommand &) { ++visited; });
  EXPECT_EQ(lengthOf(prediction), TableReplay(pipeline, times).run());
  EXPECT_LT(visited, 10'000);
}

TEST_F(PredictPositionsTest, TheSlowestPairOfRanksSetsTheTimeOfAMessage) {
  // Three ranks in each position and four devices on a host: the pairs (1, 4) and (2, 5) are on two hosts.
  setHosts(4);
  schedule::Pipeline pipeline = llvm::cantFail(schedule::make1F1B(2, 1, 1));
  Times times = Times::ofEqualChunks(pipeline.placement, 10, 20);
  OwningOpRef<ModuleOp> module = makeModule(pipeline, times, 4, "<[<\"data\", 3>]>");
  ASSERT_TRUE(module);
  EXPECT_EQ(lengthOf(predictStep(*module, CostModel(profile.cluster, &profile))), 2 * 30 + 49);
  // With two ranks in each they share a host.
  module = makeModule(pipeline, times, 4, "<[<\"data\", 2>]>");
  ASSERT_TRUE(module);
  EXPECT_EQ(lengthOf(predictStep(*module, CostModel(profile.cluster, &profile))), 2 * 30);
}

TEST_F(PredictPositionsTest, WhatCannotRunIsReported) {
  schedule::Pipeline pipeline = llvm::cantFail(schedule::make1F1B(2, 1, 2));
  Times times = Times::ofEqualChunks(pipeline.placement, 10, 20);
  OwningOpRef<ModuleOp> module = makeModule(pipeline, times);
  ASSERT_TRUE(module);
  sched::ProgramOp first = sched::getPrograms(*module).front();
  auto axis = llvm::cast<plan::MeshAttr>(parseAttribute("#plan.mesh<[<\"data\", 2>]>", &context));
  plan::MeshAttr alone = first.getMesh();
  first.setMeshAttr(axis);
  EXPECT_EQ(errorOf(*module), "cannot be simulated: has 2 ranks, but position 1, with which it exchanges messages, "
                              "has 1");
  first.setMeshAttr(alone);
  (*first.getOps<sched::StreamOp>().begin()).setKind(sched::StreamKind::host);
  EXPECT_EQ(errorOf(*module), "cannot be simulated: exchanges messages, but has no stream of kind compute");
  // Each sends before it receives.
  for (schedule::Schedule &schedule : pipeline.positions)
    llvm::sort(schedule.actions, [](const schedule::Action &a, const schedule::Action &b) {
      return std::tuple(a.kind != ActionKind::Send, a.kind, a.microBatch) <
             std::tuple(b.kind != ActionKind::Send, b.kind, b.microBatch);
    });
  module = makeModule(pipeline, times);
  ASSERT_TRUE(module);
  EXPECT_EQ(
      errorOf(*module),
      "cannot be simulated: nothing goes on: rank 0 stream 0 waits for event 1; rank 0 stream 1 sends on channel 0; "
      "rank 1 stream 0 waits for event 1; rank 1 stream 1 sends on channel 1");
}

} // namespace
