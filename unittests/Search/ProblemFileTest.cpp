#include "windlass/Search/ProblemFile.h"

#include <gtest/gtest.h>

using namespace windlass::search;

namespace {

Problem parse(const std::string &text) {
  llvm::Expected<Problem> problem = parseProblem(text);
  EXPECT_TRUE(static_cast<bool>(problem)) << (problem ? "" : llvm::toString(problem.takeError()));
  return problem ? *problem : Problem();
}

std::string errorOf(const std::string &text) {
  llvm::Expected<Problem> problem = parseProblem(text);
  return problem ? "" : llvm::toString(problem.takeError());
}

const char *const kNodes = R"("nodes":{"intervals":[[0,3],[3,3],[2,9]],"costs":[[1,2],[3],[4,1000000000000000000]],)"
                           R"("usages":[[5,6],[7],[8,9]]})";
const char *const kEdges = R"("edges":{"nodes":[[0,1],[2,0]],"costs":[[10,20],[1,2,3,4]]})";

std::string document(const std::string &nodes, const std::string &edges, const std::string &rest) {
  return "{\"problem\": {" + nodes + "," + edges + rest + "}}";
}

TEST(ProblemFile, ReadsTheContestsFormat) {
  Problem problem = parse(document(kNodes, kEdges, R"(,"usage_limit":12,"name":"asplos \" A")"));
  ASSERT_EQ(problem.nodes.size(), 3u);
  EXPECT_EQ(problem.nodes[2].costs, (std::vector<int64_t>{4, kForbidden}));
  // Times 0, 2, 3, 9: three rows. The interval [3, 3) is empty.
  EXPECT_EQ(problem.capacity, (std::vector<int64_t>{12, 12, 12}));
  ASSERT_EQ(problem.nodes[0].pieces.size(), 1u);
  EXPECT_EQ(problem.nodes[0].pieces[0].end, 2);
  EXPECT_TRUE(problem.nodes[1].pieces.empty());
  EXPECT_EQ(problem.nodes[2].pieces[0].begin, 1);
  EXPECT_EQ(problem.nodes[2].pieces[0].end, 3);
  EXPECT_EQ(evaluate(problem, {1, 0, 0}).cost, 2 + 3 + 4 + 20 + 2);
  EXPECT_EQ(evaluate(problem, {1, 0, 0}).excess, 6 + 8 - 12);
}

TEST(ProblemFile, ReadsCountsPiecesAndWindows) {
  Problem problem = parse(R"({"version":1,"problem":{"nodes":{"costs":[[1,2],[3]],"usages":[[1,0],[2]],
    "intervals":[[0,1],[0,1]],"counts":[10,1],"pieces":[[[4,6,[3,4]]],[]],"loads":[[[1,0,[5,6]]],[]]},
    "edges":{"nodes":[[0,1]],"costs":[[7,8]],"counts":[100]},"windows":[[0],[1,2]],"usage_limit":9}})");
  EXPECT_EQ(problem.capacity.size(), 3u); // times 0, 1, 4, 6
  EXPECT_EQ(problem.load, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(problem.windowEnd, (std::vector<int32_t>{1, 3}));
  // Counted costs 20 + 3 + 800, window 0 nothing, window 1 the busier of 1 + 10 * 6 and 2.
  EXPECT_EQ(evaluate(problem, {1, 0}).cost, 823 + 61);
  EXPECT_EQ(rowUsage(problem, {1, 0}), (std::vector<int64_t>{2, 0, 4, 0, 60, 0}));
}

TEST(ProblemFile, WritesWhatItReads) {
  Problem problem =
      parse(R"({"version":1,"problem":{"nodes":{"costs":[[1,2],[3],[0,10000000000000000]],"usages":[[1,0],[2],[0,0]],
    "intervals":[[0,1],[0,1],[5,5]],"pieces":[[[4,6,[3,4]]],[],[]],"loads":[[[1,0,[5,6]]],[[0,0,[9]],[1,1,[2]]],[]]},
    "edges":{"nodes":[[0,1],[2,0]],"costs":[[7,8],[1,2,3,4]]},"windows":[[0],[1,2]],"usage_limit":9}})");
  Problem again = parse(printProblem(problem));
  for (int32_t first : {0, 1})
    for (int32_t last : {0, 1}) {
      EXPECT_EQ(evaluate(again, {first, 0, last}).cost, evaluate(problem, {first, 0, last}).cost);
      EXPECT_EQ(evaluate(again, {first, 0, last}).excess, evaluate(problem, {first, 0, last}).excess);
    }
  EXPECT_EQ(printProblem(again), printProblem(problem));
}

TEST(ProblemFile, SharesEqualTables) {
  Problem problem = parse(R"({"problem":{"nodes":{"costs":[[1,2],[3],[4]],"usages":[[0,0],[0],[0]],
    "intervals":[[0,0],[0,0],[0,0]]},"edges":{"nodes":[[0,1],[0,2],[0,1]],"costs":[[7,8],[7,8],[8,7]]}}})");
  EXPECT_EQ(problem.tables.size(), 2u);
  EXPECT_EQ(problem.edges[1].table, problem.edges[0].table);
}

TEST(ProblemFile, RefusesWhatIsNoProblem) {
  auto expect = [](const std::string &text, const std::string &part) {
    std::string message = errorOf(text);
    EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' has no '" << part << "'";
    EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  };
  expect("", "cut short");
  expect("[]", "'{' is wanted");
  expect("{\"problem\":{}}", "has no 'nodes'");
  expect("{\"problem\":{\"nodse\":{}}}", "the nearest is 'nodes'");
  expect("{\"problem\":{\"name\":\"a\",\"name\":\"b\"}}", "twice");
  expect("{\"problem\":{\"name\":\"a", "string without an end");
  expect("{\"version\":2,\"problem\":{}}", "another version");
  expect(document(kNodes, kEdges, ""), "no usage_limit");
  std::string good = document(kNodes, kEdges, ",\"usage_limit\":12");
  expect(good + "x", "goes on after its end");
  for (size_t length = 0; length < good.size(); ++length)
    EXPECT_NE(errorOf(good.substr(0, length)), "") << length;
  auto changed = [&](const std::string &from, const std::string &to) {
    std::string text = good;
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  expect(changed("[1,2]", "[1,-2]"), "no integer of 0 or more");
  expect(changed("[1,2]", "[1,2.5]"), "no integer of 0 or more");
  expect(changed("[1,2]", "[1,1e3]"), "no integer of 0 or more");
  expect(changed("[1,2]", "[1,9223372036854775808]"), "above 2^63 - 1");
  expect(changed("[1,2]", "[]"), "0 labels at node 0");
  expect(changed("[1,2]", "[1,2,3]"), "2 usages for 3 labels at node 0");
  expect(changed("[0,3]", "[0,3,4]"), "not [begin, end]");
  expect(changed("[0,3],", ""), "2 intervals for 3 nodes");
  expect(changed("[[0,1],", "[[0,3],"), "names node 3 at edge 0 and has 3 nodes");
  expect(changed("[[0,1],", "[[0],"), "1 nodes at edge 0");
  expect(changed("[10,20]", "[10]"), "1 costs for 2 pairs of labels at edge 0");
  expect(changed("[10,20],", ""), "1 tables of costs for 2 edges");
  expect(changed("[5,6]", "[5,2000000000000000000]"), "more than 2^60");
  expect(changed("\"usage_limit\":12", "\"usage_limit\":12,\"windows\":[[]]"), "no streams in window 0");
  expect(changed("\"usages\"", "\"loads\":[[[0,0,[1,1]]],[],[]],\"usages\""), "not among its windows");
  expect(changed("\"usages\"", "\"pieces\":[[[0,0]],[],[]],\"usages\""), "less than [number, number");
  expect(changed("\"usages\"", "\"counts\":[1],\"usages\""), "1 counts for 3 nodes");
  // Lists may nest to any depth: nothing recurses.
  expect(std::string(1 << 20, '['), "'{' is wanted");
  expect("{\"problem\":{\"windows\":[" + std::string(1 << 20, '['), "no integer");
}

} // namespace
