#include "../../lib/Planner/ParameterCosts.h"

#include "TestCluster.h"

#include "mlir/IR/Builders.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

using namespace mlir;
using namespace windlass;
using namespace windlass::planner;
using testing::ElementsAre;
using testing::Pair;

namespace {

/// A weight of 8 x 6 elements of f32 (192 bytes) that operators find in bf16 (96 bytes), under AdamW. Four
/// micro-batches follow one another; four times its gradient fill a bucket (768 bytes).
class ParameterCostsTest : public testing::Test {
protected:
  ParameterCostsTest() {
    context.loadDialect<plan::PlanDialect>();
    Builder builder(&context);
    traits.type = traits.sentType = RankedTensorType::get({8, 6}, builder.getF32Type());
    traits.computeType = RankedTensorType::get({8, 6}, builder.getBF16Type());
    traits.states = 2;
    setMesh(/*replicas=*/4, /*modelRanks=*/1);
  }

  void setMesh(int64_t replicas, int64_t modelRanks) {
    mesh = plan::makeMesh(&context, replicas, 1, modelRanks);
    reshards = std::make_unique<Reshards>(mesh, devices.costs);
  }

  ParameterCosts makeCosts() const { return {traits, *reshards, devices.costs, {/*accumulationSteps=*/4, 768}}; }

  ParameterLabel makeLabel(plan::ShardedCopies sharded) const {
    plan::LayoutAttr whole = plan::LayoutAttr::getWhole(traits.type);
    return {whole, plan::layOutCopies(whole, sharded, mesh), memories};
  }

  int64_t getDeviceBytes(const ParameterLabel &label) const {
    return makeCosts().getCopyBytes(label).at(plan::MemoryKind::device);
  }

  TestCluster devices{4};
  MLIRContext context{MLIRContext::Threading::DISABLED};
  ParameterTraits traits;
  plan::CopyMemories memories;
  plan::MeshAttr mesh;
  std::unique_ptr<Reshards> reshards;
};

const plan::ShardedCopies kWhole, kMaster{false, false, true}, kGradient{false, true, true}, kAll{true, true, true};

TEST_F(ParameterCostsTest, BytesOfCopies) {
  // 96 to compute with, 192 of gradient, and three times 192 of master copy and state.
  EXPECT_EQ(getDeviceBytes(makeLabel(kWhole)), 96 + 192 + 3 * 192);
  // A rank has 48 bytes of a sharded master copy, and the reduced gradient beside the accumulated one.
  EXPECT_EQ(getDeviceBytes(makeLabel(kMaster)), 96 + 192 + 48 + 3 * 48);
  EXPECT_EQ(getDeviceBytes(makeLabel(kGradient)), 96 + 48 + 3 * 48);
  EXPECT_EQ(getDeviceBytes(makeLabel(kAll)), 24 + 48 + 3 * 48);
  EXPECT_EQ(makeCosts().getGatheredBytes(makeLabel(kGradient)), 0);
  EXPECT_EQ(makeCosts().getGatheredBytes(makeLabel(kAll)), 96);
}

TEST_F(ParameterCostsTest, EqualCopiesAreOne) {
  traits.computeType = traits.type;
  traits.states = 0;
  EXPECT_EQ(getDeviceBytes(makeLabel(kWhole)), 192 + 192);
  EXPECT_EQ(getDeviceBytes(makeLabel(kMaster)), 192 + 192 + 48 + 48);
  traits.isTrainable = false;
  EXPECT_EQ(getDeviceBytes(makeLabel(kWhole)), 192);
}

TEST_F(ParameterCostsTest, BytesByMemory) {
  memories.state = plan::MemoryKind::host;
  // The weight, the gradient and its shard stay; the master's shard and those of two states go.
  EXPECT_THAT(makeCosts().getCopyBytes(makeLabel(kMaster)),
              ElementsAre(Pair(plan::MemoryKind::device, 96 + 192 + 48), Pair(plan::MemoryKind::host, 3 * 48)));
  // A weight that is not its own master takes bytes of its own in f32 too.
  traits.computeType = traits.type;
  EXPECT_THAT(makeCosts().getCopyBytes(makeLabel(kWhole)),
              ElementsAre(Pair(plan::MemoryKind::device, 192 + 192), Pair(plan::MemoryKind::host, 3 * 192)));
}

TEST_F(ParameterCostsTest, GradientsOnTheHost) {
  memories = {plan::MemoryKind::host, plan::MemoryKind::host, plan::MemoryKind::device};
  // Those which are scattered in each micro-batch; others are summed up on the device behind the backward pass.
  EXPECT_THAT(makeCosts().getCopyBytes(makeLabel(kGradient)),
              ElementsAre(Pair(plan::MemoryKind::device, 96), Pair(plan::MemoryKind::host, 4 * 48)));
  EXPECT_THAT(makeCosts().getCopyBytes(makeLabel(kWhole)),
              ElementsAre(Pair(plan::MemoryKind::device, 96 + 192), Pair(plan::MemoryKind::host, 3 * 192)));
  EXPECT_TRUE(makeCosts().getTimes(makeLabel(kWhole)).copies.empty());
  // Copies read and write 48 bytes, additions read twice as many as they write.
  ParameterTimes times = makeCosts().getTimes(makeLabel(kGradient));
  EXPECT_THAT(times.copies, ElementsAre(Pair(WindowKind::backward, 3 * 96), Pair(WindowKind::lastBackward, 96)));
  EXPECT_THAT(times.computed, ElementsAre(Pair(WindowKind::backward, 3 * 144), Pair(WindowKind::lastBackward, 144)));
  // A step of one micro-batch adds nothing.
  times =
      ParameterCosts(traits, *reshards, devices.costs, {/*accumulationSteps=*/1, 768}).getTimes(makeLabel(kGradient));
  EXPECT_EQ(times.copies[WindowKind::lastBackward], 96);
  EXPECT_EQ(times.computed[WindowKind::lastBackward], 0);
}

TEST_F(ParameterCostsTest, WeightsOnTheHost) {
  memories = {plan::MemoryKind::host, plan::MemoryKind::host, plan::MemoryKind::host};
  // Weights of which a rank keeps more than it updates stay on the device.
  EXPECT_THAT(makeCosts().getCopyBytes(makeLabel(kGradient)),
              ElementsAre(Pair(plan::MemoryKind::device, 96), Pair(plan::MemoryKind::host, 4 * 48)));
  EXPECT_TRUE(makeCosts().getTimes(makeLabel(kGradient)).fetches.empty());
  EXPECT_EQ(makeCosts().getGatheredBytes(makeLabel(kGradient)), 0);
  // A whole one is read from there by each pass of four micro-batches, 96 bytes read and written.
  EXPECT_EQ(makeCosts().getCopyBytes(makeLabel(kWhole)).at(plan::MemoryKind::device), 192);
  EXPECT_EQ(makeCosts().getGatheredBytes(makeLabel(kWhole)), 96);
  EXPECT_THAT(makeCosts().getTimes(makeLabel(kWhole)).fetches,
              ElementsAre(Pair(WindowKind::forward, 4 * 192), Pair(WindowKind::backward, 3 * 192),
                          Pair(WindowKind::lastBackward, 192)));
}

TEST_F(ParameterCostsTest, UpdatesOnTheHost) {
  int64_t onDevice = makeCosts().getTimes(makeLabel(kWhole)).exposed;
  LeastParameterTimes least = makeCosts().getLeastTimes(makeLabel(kWhole));
  memories.state = plan::MemoryKind::host;
  // CPU ranks are their hosts: the kernel is the same, and the copies beside it are shorter.
  EXPECT_EQ(makeCosts().getTimes(makeLabel(kWhole)).exposed, onDevice);
  LeastParameterTimes host = makeCosts().getLeastTimes(makeLabel(kWhole));
  EXPECT_GT(least.update, 0);
  EXPECT_EQ(host.update, 0);
  EXPECT_EQ(host.squares, least.squares);
}

TEST_F(ParameterCostsTest, UpdatesOnTheDeviceOfWhatTheHostHolds) {
  ParameterTimes there = makeCosts().getTimes(makeLabel(kWhole));
  LeastParameterTimes least = makeCosts().getLeastTimes(makeLabel(kWhole));
  memories.state = plan::MemoryKind::host;
  memories.updatesOnDevice = true;
  EXPECT_THAT(makeCosts().getCopyBytes(makeLabel(kMaster)),
              ElementsAre(Pair(plan::MemoryKind::device, 96 + 192 + 48), Pair(plan::MemoryKind::host, 3 * 48)));
  // The device computes as before; the master and two states come beside that, and go back, 3 x 192 bytes read and
  // written.
  EXPECT_EQ(makeCosts().getTimes(makeLabel(kWhole)).exposed, there.exposed + 2 * 3 * 192);
  EXPECT_EQ(makeCosts().getLeastTimes(makeLabel(kWhole)).update, least.update);
}

TEST_F(ParameterCostsTest, TimesWithoutShards) {
  ParameterTimes times = makeCosts().getTimes(makeLabel(kWhole));
  // Gradient, weight and two states of 192 bytes are read, the latter three written, and 96 bytes in bf16.
  EXPECT_EQ(times.exposed, 7 * 192 + 96);
  // The gradient takes a quarter of the all-reduce of a bucket: 6 messages, and 3/4 of 768 bytes twice.
  EXPECT_THAT(times.collectives, ElementsAre(Pair(WindowKind::lastBackward, (6000 + 2 * 576) / 4)));
}

TEST_F(ParameterCostsTest, TimesWithShards) {
  // A ring over four ranks sends 3 messages, and 3/4 of the bytes.
  const int64_t gradient = 3000 + 144, weight = 3000 + 72, update = 7 * 48 + 24;
  ParameterTimes master = makeCosts().getTimes(makeLabel(kMaster));
  EXPECT_EQ(master.exposed, update + weight);
  EXPECT_THAT(master.collectives, ElementsAre(Pair(WindowKind::lastBackward, gradient)));
  ParameterTimes reduced = makeCosts().getTimes(makeLabel(kGradient));
  // What each of four scatters brings is added: twice as much is read as is written.
  const int64_t additions = 4 * 3 * 48;
  EXPECT_EQ(reduced.exposed, update + weight + additions);
  EXPECT_THAT(reduced.collectives,
              ElementsAre(Pair(WindowKind::backward, 3 * gradient), Pair(WindowKind::lastBackward, gradient)));
  // The master has the layout of the weight, so nothing is gathered for the update, but in each forward and backward
  // pass.
  ParameterTimes all = makeCosts().getTimes(makeLabel(kAll));
  EXPECT_EQ(all.exposed, update + additions);
  EXPECT_THAT(all.collectives,
              ElementsAre(Pair(WindowKind::forward, 4 * weight), Pair(WindowKind::backward, 3 * (gradient + weight)),
                          Pair(WindowKind::lastBackward, gradient + weight)));
}

TEST_F(ParameterCostsTest, GradientsThatTravelInBf16) {
  traits.sentType = traits.computeType;
  // A ring over four ranks sends 3/4 of 96 bytes.
  const int64_t gradient = 3000 + 72, weight = 3000 + 72, update = 7 * 48 + 24;
  // The sum over micro-batches is read and written on the way to its reduction, and a quarter of it behind that.
  ParameterTimes master = makeCosts().getTimes(makeLabel(kMaster));
  EXPECT_EQ(master.exposed, update + weight + (192 + 96) + (48 + 24));
  EXPECT_THAT(master.collectives, ElementsAre(Pair(WindowKind::lastBackward, gradient)));
  // What is scattered in each micro-batch is rounded where it is made, and added as it comes.
  ParameterTimes reduced = makeCosts().getTimes(makeLabel(kGradient));
  EXPECT_EQ(reduced.exposed, update + weight + 4 * (48 + 24 + 48));
  EXPECT_THAT(reduced.collectives,
              ElementsAre(Pair(WindowKind::backward, 3 * gradient), Pair(WindowKind::lastBackward, gradient)));
  EXPECT_EQ(getDeviceBytes(makeLabel(kGradient)), 96 + 48 + 3 * 48);
  // A gradient of one micro-batch stays as it travels until the sum of squares and the update read it.
  ParameterCosts ofOne(traits, *reshards, devices.costs, {/*accumulationSteps=*/1, 768});
  EXPECT_EQ(ofOne.getTimes(makeLabel(kMaster)).exposed, update + weight + 48 + 24);
  traits.updatesFromSent = true;
  EXPECT_EQ(ParameterCosts(traits, *reshards, devices.costs, {1, 768}).getTimes(makeLabel(kMaster)).exposed,
            update + weight - 24);
  EXPECT_EQ(ofOne.getCopyBytes(makeLabel(kGradient)).at(plan::MemoryKind::device), 96 + 24 + 3 * 48);
}

TEST_F(ParameterCostsTest, SmallWeightsShareUnits) {
  // The gradient takes half of what a unit of 384 bytes takes, and the weight a quarter.
  auto getTimes = [&](int64_t unitBytes) {
    return ParameterCosts(traits, *reshards, devices.costs, {/*accumulationSteps=*/4, 768, /*mostBytes=*/0, unitBytes})
        .getTimes(makeLabel(kAll));
  };
  const int64_t unit = 3000 + 288, gradient = unit / 2, weight = unit / 4;
  EXPECT_THAT(getTimes(384).collectives,
              ElementsAre(Pair(WindowKind::forward, 4 * weight), Pair(WindowKind::backward, 3 * (gradient + weight)),
                          Pair(WindowKind::lastBackward, gradient + weight)));
  // A weight that fills a unit is gathered alone.
  EXPECT_EQ(getTimes(96).collectives, getTimes(0).collectives);
}

TEST_F(ParameterCostsTest, FrozenWeightsTakeNoTime) {
  traits.isTrainable = false;
  ParameterTimes times = makeCosts().getTimes(makeLabel(kWhole));
  EXPECT_EQ(times.exposed, 0);
  EXPECT_TRUE(times.collectives.empty());
}

TEST_F(ParameterCostsTest, GradientsAreBroughtToTheAccumulatedOne) {
  setMesh(/*replicas=*/2, /*modelRanks=*/2);
  ParameterLabel label = makeLabel(kWhole);
  auto unreducedOver = [&](StringRef axis) {
    auto sum = plan::UnreducedAttr::get(&context, StringAttr::get(&context, axis), train::ReductionKind::sum);
    return plan::addUnreduced(label.read, sum, mesh);
  };
  // The sum over replicas is among the times of the parameter.
  EXPECT_EQ(makeCosts().getGradientCost(3, unreducedOver("data"), label), 0);
  // The sum over the model's ranks is made once a step: a quarter of the all-reduce of a bucket over two ranks.
  EXPECT_EQ(makeCosts().getGradientCost(3, unreducedOver("model"), label), 3 * ((2000 + 768) / 4));
}

} // namespace
