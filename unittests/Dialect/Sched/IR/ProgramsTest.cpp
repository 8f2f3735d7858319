#include "windlass/Dialect/Sched/IR/Programs.h"
#include "windlass/Dialect/Sched/IR/Place.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace windlass::sched;
using testing::HasSubstr;

namespace {

struct Programs : testing::Test {
  Programs() : handler(&context, [this](Diagnostic &diagnostic) { said = diagnostic.str(); }) {
    context.loadDialect<SchedDialect>();
  }

  OwningOpRef<ModuleOp> parse(StringRef text) { return parseSourceString<ModuleOp>(text, &context); }

  MLIRContext context;
  std::string said;
  ScopedDiagnosticHandler handler;
};

TEST_F(Programs, TheOnlyOneIsThatOfOnePosition) {
  OwningOpRef<ModuleOp> none = parse("module {}"), one = parse("module { sched.program @a on <[]> {} }"),
                        two = parse("module { sched.program @a on <[]> {} sched.program @b position 1 on <[]> {} }");
  ASSERT_TRUE(none && one && two);
  FailureOr<ProgramOp> program = getOnlyProgram(*one);
  ASSERT_TRUE(succeeded(program));
  EXPECT_EQ(program->getSymName(), "a");
  EXPECT_TRUE(failed(getOnlyProgram(*none)));
  EXPECT_THAT(said, HasSubstr("has no sched.program"));
  EXPECT_TRUE(failed(getOnlyProgram(*two)));
  EXPECT_THAT(said, HasSubstr("has 2 programs: plans of one position are supported only"));
}

TEST_F(Programs, AnAreaIsAnArenaOrItsSlots) {
  OwningOpRef<ModuleOp> module = parse(R"(module { sched.program @a on <[]> {
    sched.arena @host host bytes 64
    sched.arena @device device bytes 1024
    sched.slots @slots chunk 3 in @device[256] count 2 bytes 128
  } })");
  ASSERT_TRUE(module);
  ProgramOp program = *getOnlyProgram(*module);
  ArenaTable arenas(program);
  auto find = [&](StringRef name) { return arenas.find(StringAttr::get(&context, name)); };
  EXPECT_FALSE(find("other"));
  ASSERT_TRUE(find("device") && find("slots"));
  EXPECT_EQ(find("device")->arena, 1);
  EXPECT_EQ(find("device")->offset, 0);
  EXPECT_FALSE(find("device")->slots);
  EXPECT_EQ(find("slots")->arena, 1);
  EXPECT_EQ(find("slots")->offset, 256);
  EXPECT_EQ(find("slots")->slots.getEnd(), 512);
  EXPECT_EQ(getSlots(program, 3), find("slots")->slots);
  EXPECT_FALSE(getSlots(program, 0));
}

} // namespace
