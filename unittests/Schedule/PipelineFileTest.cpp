#include "windlass/Schedule/PipelineFile.h"
#include "windlass/Schedule/Generators.h"
#include "windlass/Schedule/OrdersJson.h"

#include "llvm/Support/FormatVariadic.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

std::string writeJson(const Pipeline &pipeline, llvm::json::Value cap) {
  return llvm::formatv("  {0}",
                       llvm::json::Value(llvm::json::Object{{"orders", writeOrders(pipeline)},
                                                            {"chains", llvm::json::Array(pipeline.placement.chains)},
                                                            {"cap", std::move(cap)}}));
}

std::string refusal(llvm::StringRef text) {
  llvm::Expected<PipelineFile> file = parsePipelineFile(text);
  return file ? "" : llvm::toString(file.takeError());
}

TEST(PipelineFile, BothFormsAreRead) {
  Pipeline pipeline = llvm::cantFail(makeDualPipe(2, 4));
  PipelineFile text = llvm::cantFail(parsePipelineFile(printPipeline(pipeline)));
  EXPECT_EQ(printPipeline(text.pipeline), printPipeline(pipeline));
  EXPECT_EQ(text.cap, std::nullopt);
  PipelineFile json = llvm::cantFail(parsePipelineFile(writeJson(pipeline, 2.5)));
  EXPECT_EQ(printPipeline(json.pipeline), printPipeline(pipeline));
  EXPECT_EQ(json.cap, 2.5);
  EXPECT_EQ(llvm::cantFail(parsePipelineFile(writeJson(pipeline, nullptr))).cap, std::nullopt);
}

TEST(PipelineFile, WhatIsNoScheduleIsRefused) {
  EXPECT_EQ(refusal(""), "expected 'positions' and their number in line 1 of the pipeline");
  EXPECT_EQ(refusal("7"), "expected 'positions' and their number in line 1 of the pipeline");
  EXPECT_EQ(refusal("[]"), "has no 'orders', a list of actions for each rank");
  Pipeline pipeline = llvm::cantFail(make1F1B(2, 1, 2));
  for (llvm::json::Value cap : {llvm::json::Value("2"), llvm::json::Value(0), llvm::json::Value(1e300)})
    EXPECT_EQ(refusal(writeJson(pipeline, cap)), "'cap' must be null or a number above 0 and at most 1048576");
  EXPECT_THAT(refusal("positions 1\nchunks 0\nposition 0: forward reduce update\n"),
              testing::HasSubstr("before the backward of micro-batch 0"));
}

TEST(PipelineFile, CapsAreCheckedAtTheAction) {
  Pipeline pipeline = llvm::cantFail(makeZeroBubble1(2, 4));
  EXPECT_EQ(llvm::toString(checkCaps(pipeline, {2, 2})), "");
  EXPECT_EQ(llvm::toString(checkCaps(pipeline, {2, 1})),
            "position 1 keeps 2 activations of chunks with the forward of micro-batch 1 of chunk 1, but its cap is 1");
}

} // namespace
