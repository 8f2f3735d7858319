#include "windlass/Dialect/Plan/PlanFile.h"

#include "windlass/Dialect/Plan/Transforms/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass;
using namespace windlass::plan;
using testing::HasSubstr;

namespace {

class PlanFileTest : public testing::Test {
protected:
  PlanFileTest() {
    context.loadDialect<func::FuncDialect, train::TrainDialect, PlanDialect>();
    context.getDiagEngine().registerHandler([](Diagnostic &) {});
  }

  OwningOpRef<ModuleOp> parse() { return parseSourceFile<ModuleOp>(PERCEPTRON, &context); }

  OwningOpRef<ModuleOp> parseWithStrategy(int64_t ranks) {
    OwningOpRef<ModuleOp> module = parse();
    PassManager passes(&context);
    ApplyStrategyOptions options;
    options.ranks = ranks;
    passes.addPass(createApplyStrategy(options));
    EXPECT_TRUE(succeeded(passes.run(*module)));
    return module;
  }

  PlanFile build(ModuleOp module, int64_t ranks) {
    Cluster cluster = llvm::cantFail(findCluster("cpu:" + std::to_string(ranks), int64_t(1) << 34));
    FailureOr<PlanFile> plan =
        buildPlanFile(module, cluster, getPlanSettings(module, {{"batch", 8}}, "loss"), std::string(64, 'a'));
    EXPECT_TRUE(succeeded(plan));
    return *plan;
  }

  std::string getText(int64_t ranks) {
    OwningOpRef<ModuleOp> module = parseWithStrategy(ranks);
    return writePlanFile(build(*module, ranks));
  }

  static std::string print(ModuleOp module) {
    std::string text;
    llvm::raw_string_ostream os(text);
    module.print(os);
    return text;
  }

  /// Reads the text, puts it onto the model and returns the first complaint.
  std::string tryText(llvm::StringRef text) {
    llvm::Expected<PlanFile> plan = readPlanFile(text);
    if (!plan)
      return llvm::toString(plan.takeError());
    OwningOpRef<ModuleOp> module = parse();
    return llvm::toString(applyPlanFile(*module, *plan));
  }

  /// Tries the plan of 8 ranks with one part of its text replaced.
  std::string tryEdit(const std::string &from, const std::string &to) {
    std::string text = getText(8);
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from << " is not in\n" << text;
    if (at == std::string::npos)
      return "";
    return tryText(text.replace(at, from.size(), to));
  }

  MLIRContext context;
};

TEST_F(PlanFileTest, WhatIsReadIsWhatWasWritten) {
  for (int64_t ranks : {1, 2, 4, 8, 16}) {
    OwningOpRef<ModuleOp> planned = parseWithStrategy(ranks);
    if (ranks == 4)
      planned->getOperation()->setAttr(kKeepsGathersAttr, UnitAttr::get(&context));
    std::string text = writePlanFile(build(*planned, ranks));
    llvm::Expected<PlanFile> plan = readPlanFile(text);
    ASSERT_TRUE(bool(plan)) << llvm::toString(plan.takeError());
    EXPECT_EQ(writePlanFile(*plan), text);
    OwningOpRef<ModuleOp> module = parse();
    EXPECT_EQ(llvm::toString(applyPlanFile(*module, *plan)), "");
    EXPECT_EQ(print(*module), print(*planned)) << ranks;

    PassManager passes(&context);
    VerifyLayoutsOptions options;
    options.materialized = false;
    passes.addPass(createVerifyLayouts(options));
    passes.addPass(createMaterializeLayouts());
    passes.addPass(createVerifyLayouts());
    EXPECT_TRUE(succeeded(passes.run(*module))) << ranks;
  }
}

TEST_F(PlanFileTest, SaysWhatItHolds) {
  std::string text = getText(8);
  EXPECT_THAT(text, HasSubstr(R"("fc0": {"layouts":["[8:batch, 6]"],"split":{"m0":["batch"]}})"));
  EXPECT_THAT(text, HasSubstr("\"layer0.bias\": {\"compute\":\"[6]\",\"gradient\":\"[6] sum(data,batch)\","));
  EXPECT_THAT(text, HasSubstr(R"("mesh": {"accumulation_steps":1,"axes":)"));
  EXPECT_THAT(text, HasSubstr(R"("replicas":4})"));
  EXPECT_THAT(text, HasSubstr("\"claims\": null"));
}

TEST_F(PlanFileTest, RefusesDamagedText) {
  std::string text = getText(8);
  for (size_t length : {size_t(0), size_t(1), text.size() / 2, text.size() - 3})
    EXPECT_NE(tryText(llvm::StringRef(text).take_front(length)), "");
  EXPECT_THAT(tryEdit("\"claims\"", "\"version\": 1, \"claims\""), HasSubstr("has the key 'version' twice"));
  EXPECT_THAT(tryEdit("\"claims\"", "\"clams\": 1, \"claims\""),
              HasSubstr("clams is no known key; the nearest is 'claims'"));
  EXPECT_THAT(tryEdit("\"version\": 8", "\"version\": 7"),
              HasSubstr("version is 7, of an older windlass, but this one reads version 8: plan again with this one"));
  EXPECT_THAT(tryEdit("\"version\": 8", "\"version\": 9"), HasSubstr("of a newer windlass"));
  // The rest of a file of another version is not read.
  EXPECT_THAT(tryText(R"({"version": 5, "defaults": {}})"), HasSubstr("version is 5, of an older windlass"));
  EXPECT_THAT(tryEdit("\"memory_limit_bytes\": null", "\"memory_limit_bytes\": 0"),
              HasSubstr("memory_limit_bytes must be an integer from 1"));
  EXPECT_THAT(tryEdit("\"bucket_bytes\": 26214400", "\"bucket_bytes\": 1e999"), HasSubstr("must be an integer"));
  EXPECT_THAT(tryEdit("\"bucket_bytes\": 26214400", "\"bucket_bytes\": \"big\""), HasSubstr("must be an integer"));
  EXPECT_THAT(tryEdit("\"claims\": null", "\"defaults\": {}, \"claims\": null"), HasSubstr("defaults is no known key"));
  EXPECT_THAT(tryEdit("\"claims\": null", "\"claims\": {}"), HasSubstr("claims.arena_bytes is missing"));
  EXPECT_THAT(tryEdit("\"claims\": null", "\"claims\": null, \"keeps_gathers\": true, \"pipeline\": {\"begins\": "
                                          "[\"fc1\"], \"positions\": 2, \"schedule\": \"1f1b\"}"),
              HasSubstr("keeps_gathers is true, but the chunks of a pipeline gather weights again"));
}

TEST_F(PlanFileTest, ClaimsAreNoPartOfWhatTheyAreMadeOf) {
  OwningOpRef<ModuleOp> module = parseWithStrategy(8);
  PlanFile plan = build(*module, 8);
  std::string hash = hashPlan(plan, 1);
  plan.claims = PlanClaims{4, 3, 2, 1, "certificates", hash, "profile"};
  EXPECT_EQ(hashPlan(plan, 1), hash);
  EXPECT_NE(hashPlan(plan, 2), hash);
  llvm::Expected<PlanFile> read = readPlanFile(writePlanFile(plan));
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  ASSERT_TRUE(read->claims);
  EXPECT_EQ(read->claims->costNanoseconds, 4);
  EXPECT_EQ(read->claims->boundNanoseconds, 3);
  EXPECT_EQ(read->claims->arenaBytes, 2);
  EXPECT_EQ(read->claims->peakBytes, 1);
  EXPECT_EQ(read->claims->certificateHash, "certificates");
  EXPECT_EQ(read->claims->planHash, hash);
  EXPECT_EQ(read->claims->profileHash, "profile");
  EXPECT_EQ(read->claims->boundStages, std::vector<int64_t>{1});
  EXPECT_EQ(hashPlan(*read, 1), hash);
  EXPECT_EQ(read->claims->boundOffload, Offload::none);
  plan.claims->boundStages = {1, 2, 8};
  plan.claims->boundOffload = Offload::gradients;
  llvm::Expected<PlanFile> ofStages = readPlanFile(writePlanFile(plan));
  ASSERT_TRUE(static_cast<bool>(ofStages)) << llvm::toString(ofStages.takeError());
  EXPECT_EQ(ofStages->claims->boundStages, (std::vector<int64_t>{1, 2, 8}));
  EXPECT_EQ(ofStages->claims->boundOffload, Offload::gradients);
  plan.claims->boundNanoseconds.reset();
  llvm::Expected<PlanFile> unbounded = readPlanFile(writePlanFile(plan));
  ASSERT_TRUE(static_cast<bool>(unbounded)) << llvm::toString(unbounded.takeError());
  EXPECT_FALSE(unbounded->claims->boundNanoseconds);
  for (auto edit : std::vector<void (*)(PlanFile &)>{
           [](PlanFile &plan) { plan.bucketBytes *= 2; }, [](PlanFile &plan) { plan.modelHash[0] = 'b'; },
           [](PlanFile &plan) { plan.settings.clip = true; }, [](PlanFile &plan) { plan.memoryLimit = 1; },
           [](PlanFile &plan) { plan.cluster.reserveBytes = 0; },
           [](PlanFile &plan) { plan.functions["microbatch"].whole.pop_back(); },
           [](PlanFile &plan) { plan.cluster = llvm::cantFail(findCluster("cpu:8", int64_t(1) << 33)); }}) {
    PlanFile edited = *read;
    edit(edited);
    EXPECT_NE(hashPlan(edited, 1), hash);
  }
}

TEST_F(PlanFileTest, KeepsAReserveThatWasGiven) {
  OwningOpRef<ModuleOp> module = parseWithStrategy(8);
  PlanFile plan = build(*module, 8);
  EXPECT_THAT(writePlanFile(plan), testing::Not(HasSubstr("reserve_bytes")));
  for (int64_t bytes : {int64_t(0), int64_t(3) << 29}) {
    plan.cluster.reserveBytes = bytes;
    llvm::Expected<PlanFile> read = readPlanFile(writePlanFile(plan));
    ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
    EXPECT_EQ(read->cluster.reserveBytes, bytes);
  }
  EXPECT_THAT(tryEdit("\"claims\": null", "\"reserve_bytes\": -1, \"claims\": null"),
              HasSubstr("reserve_bytes must be an integer from 0"));
  EXPECT_THAT(tryEdit("\"claims\": null", "\"reserve_bytes\": null, \"claims\": null"),
              HasSubstr("reserve_bytes must be an integer"));
}

TEST_F(PlanFileTest, RefusesAMeshThatDoesNotFit) {
  EXPECT_THAT(tryEdit(R"("role":"replica","size":4)", R"("role":"replica","size":2)"),
              HasSubstr("mesh.axes make 4 ranks, but the cluster has 8"));
  EXPECT_THAT(tryEdit(R"("name":"batch")", R"("name":"data")"), HasSubstr("axis 'data' twice"));
  EXPECT_THAT(tryEdit(R"("name":"batch")", R"("name":"b; rm")"), HasSubstr("use letters, digits"));
  EXPECT_THAT(tryEdit("[0,1,2,", "[0,1,1,"), HasSubstr("each device from 0 to 7 once"));
  EXPECT_THAT(tryEdit(R"("role":"replica")", R"("role":"batch")"),
              HasSubstr("mesh.replicas is 4, but the mesh.axes of role 'replica' have 1 member together"));
  EXPECT_THAT(tryEdit(R"("role":"batch")", R"("role":"replica")"), HasSubstr("have 8 members together"));
  EXPECT_THAT(tryEdit(R"("role":"batch")", R"("role":"stage")"),
              HasSubstr("mesh.axes[1].role is 'stage': use replica, batch, model or expert"));
  EXPECT_THAT(tryEdit(R"("role":"batch",)", ""), HasSubstr("mesh.axes[1].role is missing"));
  EXPECT_THAT(tryEdit(R"("accumulation_steps":1)", R"("accumulation_steps":2)"),
              HasSubstr("is not settings.micro_batches 4"));
}

TEST_F(PlanFileTest, RefusesAPlanThatDoesNotFitTheModel) {
  EXPECT_THAT(tryEdit("\"fc0\":", "\"fc7\":"), HasSubstr("operator 'fc0' of @evaluate is not in the plan"));
  EXPECT_THAT(tryEdit("\"fc0\":", "\"fc00\": {\"layouts\": [], \"split\": {}}, \"fc0\":"),
              HasSubstr("'fc00' of @evaluate, which the program does not have; the nearest is 'fc0'"));
  EXPECT_THAT(tryEdit("\"ramp\"", "\"ramp\", \"ramp\""), HasSubstr("operator 'ramp' of @init twice"));
  EXPECT_THAT(tryEdit(R"("split":{"m0":["batch"]})", R"("split":{"m0":["model"]})"),
              HasSubstr("axis 'model', which the mesh does not have"));
  EXPECT_THAT(tryEdit(R"("split":{"m0":["batch"]})", R"("split":{"m0":["batch","batch"]})"),
              HasSubstr("over axis 'batch' twice"));
  EXPECT_THAT(tryEdit(R"("split":{"m0":["batch"]})", R"("split":{"m9":["batch"]})"), HasSubstr("has no factor 'm9'"));
  EXPECT_THAT(tryEdit("[8:batch, 6]", "[8:batch, 7]"), HasSubstr("layout '[8:batch, 7]'"));
  EXPECT_THAT(tryEdit("[8:batch, 6]", "[8:batch]"), HasSubstr("has 1 dims, but the value has 2"));
  EXPECT_THAT(tryEdit("[8:batch, 6]", "[8, 6:batch+batch]"), HasSubstr("'batch' twice"));
  EXPECT_THAT(tryEdit("[8:batch, 6]", "[8, 2*3:batch]"), HasSubstr("does not divide it evenly"));
  EXPECT_THAT(tryEdit("[8:batch, 6]", "[8, 6"), HasSubstr("lacks a ']'"));
  EXPECT_THAT(tryEdit("\"layer0.bias\": {", "\"layer0.bian\": {"),
              HasSubstr("parameter 'layer0.bias' is not in the plan"));
  EXPECT_THAT(tryEdit("\"gradient\":\"[6] sum(data,batch)\"", "\"gradient\":null"),
              HasSubstr("trains, but the plan has no layout"));
}

TEST_F(PlanFileTest, NamesTheSettingThatChanged) {
  OwningOpRef<ModuleOp> module = parseWithStrategy(2);
  PlanFile plan = build(*module, 2);
  const PlanSettings same = plan.settings;
  auto check = [&](const PlanSettings &settings, const std::string &hash) {
    OwningOpRef<ModuleOp> made = parse();
    return llvm::toString(checkPlanFits(plan, settings, hash, *made));
  };
  EXPECT_EQ(check(same, plan.modelHash), "");
  EXPECT_THAT(check(same, std::string(64, 'b')), HasSubstr("another model"));
  PlanSettings other = same;
  other.microBatches = 8;
  EXPECT_THAT(check(other, plan.modelHash), HasSubstr("micro-batches 4, but it is 8 now"));
  other = same;
  other.optimizer = "adamw";
  EXPECT_THAT(check(other, plan.modelHash), HasSubstr("optimizer 'sgd', but it is 'adamw' now"));
  other = same;
  other.dims["batch"] = 4;
  EXPECT_THAT(check(other, plan.modelHash), HasSubstr("dimension 'batch' 8, but it is 4 now"));
  other = same;
  other.trainable.pop_back();
  EXPECT_THAT(check(other, plan.modelHash), HasSubstr("'layer1.weight' among the trainable parameters"));
  other = same;
  other.noDecay.push_back("layer1.weight");
  EXPECT_THAT(check(other, plan.modelHash), HasSubstr("'layer1.weight' is now among the no-decay parameters"));
  other = same;
  other.rateScales["layer1.weight"] = 1;
  EXPECT_EQ(check(other, plan.modelHash), "");
  other.rateScales["layer1.weight"] = 0.5;
  EXPECT_THAT(check(other, plan.modelHash),
              HasSubstr("made for 1 times the learning rate for 'layer1.weight', which has 0.5 times it now"));
}

TEST_F(PlanFileTest, HashForgetsSourcesAndLocations) {
  OwningOpRef<ModuleOp> one = parse(), other = parse();
  EXPECT_EQ(hashModel(*one).size(), 64u);
  for (auto parameter : other->getOps<train::ParameterOp>()) {
    parameter.setSourceAttr(
        train::SourceAttr::get(&context, train::SourceKind::external, "elsewhere.bin", 4, 96, Type()));
    parameter->setLoc(UnknownLoc::get(&context));
  }
  EXPECT_EQ(hashModel(*one), hashModel(*other));
  other->walk([](train::ReluOp op) { op->setAttr(train::kIdAttr, StringAttr::get(op.getContext(), "other")); });
  EXPECT_NE(hashModel(*one), hashModel(*other));
}

} // namespace
