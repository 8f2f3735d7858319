#include "windlass/Target/Cpp/ProgramTables.h"

#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/SchedOps.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using testing::ContainsRegex;
using testing::HasSubstr;

namespace {

/// Returns the constant of a split.
std::string split(int dim, int axis, int blocks) {
  return "[] { auto out = split{}; out.dim = " + std::to_string(dim) + "; out.axis = " + std::to_string(axis) +
         "; out.blocks = " + std::to_string(blocks) + "; return out; }()";
}

class ProgramTables : public testing::Test {
protected:
  ProgramTables() {
    context.loadDialect<windlass::sched::SchedDialect, windlass::train::TrainDialect, windlass::plan::PlanDialect,
                        mlir::func::FuncDialect>();
  }

  /// Returns the tables of a program with one weight [4, width] and its gradient, whose columns have these factors; or
  /// the diagnostic.
  std::string tablesOf(llvm::StringRef columns, llvm::StringRef gradientColumns, int64_t width = 24, int64_t parts = 2,
                       const std::string &arenaOfGradient = "device_arena") {
    const std::string layout = "#plan.layout<[#plan.dim<[#plan.factor<4, [\"b\"]>]>, #plan.dim<[";
    std::string text = R"(
module attributes {train.settings = {optimizer = "sgd", micro_batches = 1 : i64}} {
  train.parameter weight @w "w" : tensor<4xWIDTHxf32> from <packed, "", 0, 384> {trainable}
sched.program @program on <[<"a", 2>, <"b", 2>, <"c", 2>]> {
  sched.arena @device_arena device bytes 4096
  sched.stream @over_a_x_b communicator
  sched.stream @compute compute
  sched.communicator @communicator_0 over ["a", "b"] on @over_a_x_b
  sched.arena @host_arena host bytes 512
  sched.schedule [#sched.action<forward>, #sched.action<backward>, #sched.action<reduce>, #sched.action<update>]
  sched.resource parameter @p : tensor<2xPARTxf32> of tensor<4xWIDTHxf32> LAYOUT {logical_name = "w", of = @w, arena = @device_arena, offset = 64 : i64}
  sched.resource gradient @g : tensor<2xPARTxf32> of tensor<4xWIDTHxf32> GRADIENT {of = @w, arena = @ARENA, offset = 256 : i64}
  sched.resource loss @loss : SCALAR {arena = @device_arena, offset = 0 : i64}
  sched.resource grad_norm @norm : SCALAR {arena = @device_arena, offset = 4 : i64}
  sched.resource evaluate @evaluate : SCALAR {arena = @device_arena, offset = 8 : i64}
}
})";
    auto put = [&](llvm::StringRef name, const std::string &value) {
      for (size_t at = text.find(name); at != std::string::npos; at = text.find(name))
        text.replace(at, name.size(), value);
    };
    put("LAYOUT", layout + columns.str() + "]>]>");
    put("GRADIENT", layout + gradientColumns.str() + "]>]>");
    put("SCALAR", "tensor<f32> of tensor<f32> #plan.layout<[]>");
    put("ARENA", arenaOfGradient);
    put("WIDTH", std::to_string(width));
    put("PART", std::to_string(width / parts));
    std::string diagnostics;
    mlir::ScopedDiagnosticHandler handler(&context, [&](mlir::Diagnostic &d) { diagnostics += d.str(); });
    auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
    if (!module)
      return diagnostics;
    auto tables = windlass::cpp::writeProgramTables(*module, options);
    return failed(tables) ? diagnostics : *tables;
  }

  mlir::MLIRContext context;
  windlass::cpp::ProjectOptions options;
};

TEST_F(ProgramTables, SplitsSayOfHowManyBlocksTheyCutEach) {
  // Heads of a joint projection: each of the three blocks is cut.
  std::string text = tablesOf("#plan.factor<3>, #plan.factor<8, [\"a\"]>", "#plan.factor<24, [\"c\"]>");
  EXPECT_THAT(text, HasSubstr("constexpr split splits_1[] = {" + split(0, 1, 1) + ", " + split(1, 0, 3) + "};"));
  EXPECT_THAT(text, HasSubstr("constexpr split splits_2[] = {" + split(0, 1, 1) + ", " + split(1, 2, 1) + "};"));
  EXPECT_THAT(text, HasSubstr("out.name = \"w\"; out.type = element_type::f32; out.sizes = {sizes_0, 2};"));
  EXPECT_THAT(text,
              HasSubstr("out.parameter = 0; out.type = element_type::f32; out.splits = {splits_1, 2}; out.at = {0, "
                        "64}; out.master_splits = {splits_1, 2}; out.master = {0, 64};"));
  EXPECT_THAT(text, HasSubstr("out.parameter = 0; out.splits = {splits_2, 2}; out.at = {0, 256};"));
}

TEST_F(ProgramTables, AxesOfOneFactorNest) {
  std::string text =
      tablesOf("#plan.factor<24, [\"c\", \"a\"]>", "#plan.factor<6, [\"c\"]>, #plan.factor<4, [\"a\"]>", 24, 4);
  EXPECT_THAT(text,
              HasSubstr("splits_1[] = {" + split(0, 1, 1) + ", " + split(1, 2, 1) + ", " + split(1, 0, 2) + "};"));
  EXPECT_THAT(text,
              HasSubstr("splits_2[] = {" + split(0, 1, 1) + ", " + split(1, 2, 1) + ", " + split(1, 0, 6) + "};"));
}

TEST_F(ProgramTables, PlacesNameTheirArena) {
  llvm::StringRef columns = "#plan.factor<24, [\"a\"]>";
  std::string text = tablesOf(columns, columns, 24, 2, "host_arena");
  EXPECT_THAT(text, HasSubstr("out.parameter = 0; out.splits = {splits_1, 2}; out.at = {1, 256};"));
  EXPECT_THAT(text, HasSubstr("out.loss = {0, 0};"));
  EXPECT_THAT(tablesOf(columns, columns, 24, 2, "no_arena"), HasSubstr("has no place in an arena"));
}

TEST_F(ProgramTables, OnlyTheDeviceArenaIsDeviceMemory) {
  llvm::StringRef columns = "#plan.factor<24, [\"a\"]>";
  std::string text = tablesOf(columns, columns);
  EXPECT_THAT(text, HasSubstr("out.kind = memory_kind::device; out.bytes = 4096; out.name = \"device\";"));
  EXPECT_THAT(text, HasSubstr("out.kind = memory_kind::pinned; out.bytes = 512; out.name = \"host\";"));
}

TEST_F(ProgramTables, CommunicatorsNameTheirStreams) {
  llvm::StringRef columns = "#plan.factor<24, [\"a\"]>";
  std::string text = tablesOf(columns, columns);
  EXPECT_THAT(text,
              ContainsRegex("stream_entry streams\\[\\] = \\{\n[^\n]*out.kind = stream_kind::communicator; out.name = "
                            "\"over a x b\";[^\n]*\n[^\n]*out.kind = stream_kind::compute; out.name = \"compute\";"));
  EXPECT_THAT(text,
              ContainsRegex("out.axes = \\{communicator_axes_[0-9], 2\\}; out.stream = 0; out.exchanges = false;"));
  EXPECT_THAT(text, HasSubstr("out.streams = {streams, 2};"));
}

TEST_F(ProgramTables, TooManyPiecesAreRefused) {
  // 2 parts of the rows times 2 * 1024 of the columns are as many as a checkpoint's tensor may have.
  llvm::StringRef most = "#plan.factor<1024>, #plan.factor<2, [\"a\"]>";
  EXPECT_THAT(tablesOf(most, most, 2048), HasSubstr(split(1, 0, 1024)));
  llvm::StringRef more = "#plan.factor<1025>, #plan.factor<2, [\"a\"]>";
  EXPECT_THAT(tablesOf(more, more, 2050), HasSubstr("is cut into more than 4096 pieces at an inner factor of dim 1"));
}

TEST_F(ProgramTables, AlgorithmsOfProductsHoldForOneLibrary) {
  windlass::ProductChoices products = {"a device", "a library", {}, {}};
  options.products = &products;
  products.epilogues["matmul_bias()"] = {1e-5, 2e-5};
  EXPECT_THAT(tablesOf("#plan.factor<24>", "#plan.factor<24>"), HasSubstr("out.products = {};"));
  products.choices["bf16 NN"] = {{1, 2, 3, 4, 5, 6, 7, 8, 9}, 1e-5, 2e-5};
  EXPECT_THAT(tablesOf("#plan.factor<24>", "#plan.factor<24>"),
              HasSubstr("out.device = \"a device\"; out.library = \"a library\"; out.choices = {products, 1};"));
}

TEST_F(ProgramTables, AttentionsOfTheLibraryHaveTheirShapes) {
  EXPECT_THAT(tablesOf("#plan.factor<24>", "#plan.factor<24>"), HasSubstr("out.attentions = {nullptr, 0};"));
  options.scratchBytes = 4096;
  options.attentions = {
      {{windlass::rt::element_type::bf16, true, false, 0.125, 2, 4, 2, 64, 96, 16, 8, {{1, 2, 3}}}, 4000}};
  std::string text = tablesOf("#plan.factor<24>", "#plan.factor<24>");
  EXPECT_THAT(text, HasSubstr("out.shape = [] { auto out = attention_shape{}; out.type = element_type::bf16; "
                              "out.is_gradient = true; out.is_causal = false; out.scale = 1.2500000000000000e-01; "
                              "out.batch = 2; out.heads = 4; out.kv_heads = 2; out.queries = 64; out.keys = 96; "
                              "out.depth = 16; out.value_depth = 8; out.strides[0][0] = 1; out.strides[0][1] = 2; "
                              "out.strides[0][2] = 3; out.strides[1][0] = 0;"));
  EXPECT_THAT(text, HasSubstr("out.workspace_bytes = 4000;"));
  EXPECT_THAT(text, HasSubstr("out.attentions = {attentions, 1};"));
}

} // namespace
