#include "windlass/Schedule/OrdersJson.h"
#include "windlass/Schedule/NamedSchedules.h"

#include "llvm/Support/FormatVariadic.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace windlass::schedule;

namespace {

TEST(OrdersJson, ReadsWhatItWrites) {
  for (const NamedSchedule &each : getNamedSchedules()) {
    Pipeline pipeline = llvm::cantFail(each.make(2, each.chunksPerPosition, 4));
    llvm::json::Object object{{"orders", writeOrders(pipeline)},
                              {"chains", llvm::json::Array(pipeline.placement.chains)}};
    llvm::Expected<Pipeline> read = readOrders(std::move(object));
    ASSERT_TRUE(static_cast<bool>(read)) << each.name.str() << ": " << llvm::toString(read.takeError());
    EXPECT_EQ(printPipeline(*read), printPipeline(pipeline)) << each.name.str();
  }
  EXPECT_EQ(
      llvm::formatv("{0}", llvm::json::Value(writeOrders(llvm::cantFail(findNamedSchedule("zb1p")->make(1, 1, 1)))))
          .str(),
      R"([[["F",0,0],["B",0,0],["W",0,0]]])");
}

std::string refusal(llvm::StringRef text) {
  llvm::Expected<Pipeline> read = readOrders(llvm::cantFail(llvm::json::parse(text)));
  return read ? "" : llvm::toString(read.takeError());
}

TEST(OrdersJson, WrongOrdersAreRefusedAtTheAction) {
  EXPECT_EQ(refusal("[]"), "has no 'orders', a list of actions for each rank");
  EXPECT_EQ(refusal(R"({"orders": [[], 3]})"), "rank 1 has no list of actions");
  EXPECT_EQ(refusal(R"({"orders": []})"), "has 0 positions; 1 to 65536 are possible");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["X",0,0]]]})"),
            "rank 0, action 1: expected [operation, chunk, micro-batch] with the operation F, BW, B or W");
  for (const char *wrong : {R"(["F",0])", R"(["",0,0])", R"([0,0,0])", R"(["F","0",0])", R"(["F",0.5,0])", "7"})
    EXPECT_EQ(refusal((R"({"orders": [[)" + llvm::Twine(wrong) + "]]}").str()),
              "rank 0, action 0: expected [operation, chunk, micro-batch] with the operation F, BW, B or W");
  EXPECT_EQ(refusal(R"({"orders": [[["F",-1,0]]]})"),
            "rank 0, action 0: chunk -1, micro-batch 0; chunks are below 65536 and micro-batches below 1048576");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["BW",0,0]],[["F",0,1]]]})"),
            "rank 1, action 0: runs chunk 0, which rank 0 runs");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["F",0,0]]]})"),
            "rank 0, action 1: F of micro-batch 0 of chunk 0 runs twice");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["B",0,0],["BW",0,0]]]})"),
            "rank 0, action 2: BW of micro-batch 0 of chunk 0 runs twice");
  EXPECT_EQ(refusal(R"({"orders": [[["BW",0,0],["F",0,0]]]})"),
            "rank 0, action 0: BW of micro-batch 0 of chunk 0 runs before its F");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["W",0,0],["B",0,0]]]})"),
            "rank 0, action 1: W of micro-batch 0 of chunk 0 runs before its B");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["B",0,0]]]})"), "rank 0 runs no W of micro-batch 0 of chunk 0");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0]]]})"), "rank 0 runs no BW or B of micro-batch 0 of chunk 0");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,1],["BW",0,1]]]})"),
            "rank 0 runs micro-batch 1 of chunk 0, but not micro-batch 0");
  EXPECT_EQ(refusal(R"({"orders": [[["F",1,0],["BW",1,0]]]})"), "no rank runs chunk 0, but rank 0 runs chunk 1");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["BW",0,0]],[]]})"), "has no chunk on position 1");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["BW",0,0],["F",0,1],["BW",0,1]],[["F",1,0],["BW",1,0]]]})"),
            "chunk 1 has 1 micro-batches, but chunk 0 has 2");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["BW",0,0]]], "chains": [0, "x"]})"),
            "'chains' is no list of the first chunks of its chains");
  EXPECT_EQ(refusal(R"({"orders": [[["F",0,0],["BW",0,0]]], "chains": [0, 1]})"), "has no chunk in chain 1");
  // Each waits for what the other runs later.
  EXPECT_EQ(
      refusal(R"({"orders": [[["F",0,0],["BW",0,0],["F",0,1],["BW",0,1]],)"
              R"([["F",1,0],["F",1,1],["BW",1,0],["BW",1,1]]]})"),
      "never ends: position 0 waits at action 1, the backward of micro-batch 0 of chunk 0, for position 1 to run the "
      "backward of micro-batch 0 of chunk 1; position 1 waits at action 1, the forward of micro-batch 1 of chunk 1, "
      "for position 0 to run the forward of micro-batch 1 of chunk 0");
}

} // namespace
