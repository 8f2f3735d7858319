#include "windlass/Search/Certificate.h"

#include "RandomProblem.h"

#include <gtest/gtest.h>

using namespace windlass::search;

namespace {

constexpr int64_t kWork = 1'000'000;
constexpr int64_t kOne = int64_t(1) << Certificate::kPriceBits, kMessage = int64_t(1) << Certificate::kMessageBits;

int64_t prove(const Problem &problem, const Certificate &certificate) {
  llvm::Expected<int64_t> bound = proveBound(problem, certificate);
  EXPECT_TRUE(static_cast<bool>(bound)) << (bound ? "" : llvm::toString(bound.takeError()));
  return bound ? *bound : -1;
}

std::string errorOf(const Problem &problem, const Certificate &certificate) {
  llvm::Expected<int64_t> bound = proveBound(problem, certificate);
  return bound ? "" : llvm::toString(bound.takeError());
}

void expectIn(const std::string &part, const std::string &message) {
  EXPECT_NE(message.find(part), std::string::npos) << "'" << message << "' has no '" << part << "'";
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

/// Two nodes with an edge, a row of memory, and a window of two streams.
Problem makeProblem() {
  Problem problem;
  problem.nodes = {{{10, 20}, {{0, 1, {4, 0}}, {1, 2, {6, 0}}}}, {{1, 2}, {{0, 1, {3, 1}}, {2, 3, {5, 0}}}}};
  problem.tables = {{0, 7, 3, 0}};
  problem.edges = {{0, 1, 0}};
  problem.capacity = {5};
  problem.load = {1, 2};
  problem.windowEnd = {2};
  problem.constant = 100;
  return problem;
}

Certificate makeCertificate() {
  Certificate certificate;
  certificate.prices = {2 * kOne, kOne / 4, kOne / 4 * 3};
  certificate.messages = {{{{0, kMessage}, {0, 0}}}};
  return certificate;
}

TEST(Certificate, ProvesWhatItSays) {
  // Rows 100 - 10 + 1/4 + 6/4; first node 10 + 8 + 6/4 or 20 + 1; second 1 + 6 + 15/4 or 2 + 2; edge 0, 7, 3 - 1 or -1.
  // That is 114 and a quarter.
  EXPECT_EQ(prove(makeProblem(), makeCertificate()), 115);
  EXPECT_EQ(tryEverything(makeProblem()), 100 + 20 + 2 + 2);
  // Nothing but streams.
  Certificate none;
  none.prices = {0, 0, kOne};
  EXPECT_EQ(prove(makeProblem(), none), 100 + 2 + 10 + 2);
}

TEST(Certificate, IsBelowTheOptimumOfRandomProblems) {
  constexpr int64_t kDraws = 10'000;
  int64_t tight = 0, feasible = 0;
  for (int64_t seed = 0; seed < kDraws; ++seed) {
    Problem problem = makeRandomProblem(seed);
    int64_t optimum = tryEverything(problem);
    Certificate certificate = certify(problem, optimum, kWork);
    ASSERT_LE(certificate.bound, optimum) << "seed " << seed;
    ASSERT_EQ(prove(problem, certificate), certificate.bound) << "seed " << seed;
    tight += optimum < kForbidden && certificate.bound == optimum;
    feasible += optimum < kForbidden;
  }
  EXPECT_GE(tight, feasible / 2);
}

/// A changed certificate is refused, or still bounds the optimum.
TEST(Certificate, StaysTrueWhenItIsChanged) {
  int64_t refused = 0, changed = 0;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    Problem problem = makeRandomProblem(seed);
    int64_t optimum = tryEverything(problem);
    Certificate certificate = certify(problem, optimum, kWork / 30);
    uint64_t state = seed;
    auto below = [&](size_t count) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      return static_cast<size_t>((state >> 33) % count);
    };
    for (int flip = 0; flip < 20; ++flip) {
      Certificate other = certificate;
      int64_t bit = int64_t(1) << below(63);
      size_t edges = other.messages.size();
      if (edges && below(2)) {
        std::vector<int64_t> &side = other.messages[below(edges)][below(2)];
        side[below(side.size())] ^= bit;
      } else if (!other.prices.empty()) {
        other.prices[below(other.prices.size())] ^= bit;
      } else {
        continue;
      }
      llvm::Expected<int64_t> bound = proveBound(problem, other);
      if (!bound) {
        llvm::consumeError(bound.takeError());
        ++refused;
        continue;
      }
      ASSERT_LE(*bound, optimum) << "seed " << seed;
      changed += *bound != certificate.bound;
    }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(changed, 100);
}

TEST(Certificate, SaysThatNothingIsAllowed) {
  Problem problem = makeProblem();
  problem.tables = {{kForbidden, kForbidden, kForbidden, kForbidden}};
  EXPECT_EQ(prove(problem, makeCertificate()), kForbidden);
  problem = makeProblem();
  problem.nodes[1].costs = {kForbidden, kForbidden};
  EXPECT_EQ(prove(problem, makeCertificate()), kForbidden);
}

/// With the largest numbers everywhere, sums stay in their range, or the overflow is reported.
TEST(Certificate, KnowsItsRange) {
  Problem problem = makeProblem();
  problem.nodes[0].costs = problem.nodes[1].costs = {kForbidden - 1, kForbidden - 1};
  problem.tables = {{kForbidden - 1, kForbidden - 1, kForbidden - 1, kForbidden - 1}};
  EXPECT_EQ(prove(problem, makeCertificate()), kForbidden);
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  problem.nodes[0].pieces.assign(5, {0, 1, {most, most}});
  Certificate certificate = makeCertificate();
  certificate.prices[0] = Certificate::kMost - kOne;
  expectIn("whose sums leave 127 bits", errorOf(problem, certificate));
}

/// What an edge hands over to all labels of a node alike changes nothing, however much it is.
TEST(Certificate, CountsTheLargestMessages) {
  Problem problem = makeProblem();
  Certificate certificate = makeCertificate();
  certificate.messages[0] = {{{0, 0}, {0, 0}}};
  int64_t without = prove(problem, certificate);
  for (int64_t first : {-Certificate::kMost, int64_t(-1), Certificate::kMost})
    for (int64_t second : {-Certificate::kMost, (int64_t(1) << 60) - 1, Certificate::kMost}) {
      certificate.messages[0] = {{{first, first}, {second, second}}};
      EXPECT_EQ(prove(problem, certificate), without) << first << ' ' << second;
    }
}

TEST(Certificate, RefusesWhatIsOfAnotherProblem) {
  Problem problem = makeProblem();
  Certificate certificate = makeCertificate();
  certificate.prices.pop_back();
  expectIn("has 2 prices, but the problem has 3 rows", errorOf(problem, certificate));
  certificate = makeCertificate();
  certificate.prices[0] = -1;
  expectIn("has the price -1 of row 0", errorOf(problem, certificate));
  certificate.prices[0] = Certificate::kMost;
  expectIn("their sum is at most 2^62", errorOf(problem, certificate));
  certificate = makeCertificate();
  ++certificate.prices[1];
  expectIn("up to row 3 that add up to 1099511627777, but those of a window make 2^40", errorOf(problem, certificate));
  certificate = makeCertificate();
  certificate.messages.emplace_back();
  expectIn("has messages of 2 edges, but the problem has 1", errorOf(problem, certificate));
  certificate = makeCertificate();
  certificate.messages[0][1].pop_back();
  expectIn("has 1 messages of edge 0 to node 1, which has 2 labels", errorOf(problem, certificate));
  certificate = makeCertificate();
  certificate.messages[0][0][0] = -Certificate::kMost - 1;
  expectIn("has the message -4611686018427387905 of edge 0", errorOf(problem, certificate));
}

TEST(Certificate, IsReadAsItIsWritten) {
  std::vector<NamedCertificate> certificates = {{{4, 1, 2}, makeCertificate()}, {{}, {}}};
  certificates[0].certificate.messages[0][1][1] = -5;
  certificates[1].certificate.bound = kForbidden;
  std::string text = printCertificates(certificates);
  auto read = parseCertificates(text);
  ASSERT_TRUE(static_cast<bool>(read)) << llvm::toString(read.takeError());
  ASSERT_EQ(read->size(), 2u);
  EXPECT_EQ(read->front().name, (std::vector<int64_t>{4, 1, 2}));
  EXPECT_EQ(read->front().certificate.messages, certificates[0].certificate.messages);
  EXPECT_EQ(read->front().certificate.prices, certificates[0].certificate.prices);
  EXPECT_EQ(read->back().certificate.bound, kForbidden);
  EXPECT_EQ(printCertificates(*read), text);
  EXPECT_EQ(printCertificates({}), "{\"version\":1,\"certificates\":[]}\n");
}

TEST(Certificate, RefusesWhatIsNoFile) {
  auto expect = [](const std::string &text, const std::string &part) {
    auto read = parseCertificates(text);
    expectIn(part, read ? "" : llvm::toString(read.takeError()));
  };
  expect("", "cut short");
  expect("{\"version\":2,\"certificates\":[]}", "another version");
  expect("{\"version\":1}", "has no 'certificates'");
  expect("{\"version\":1,\"certificates\":[{\"bond\":1}]}", "the nearest is 'bound'");
  expect("{\"version\":1,\"certificates\":[{\"bound\":-1}]}", "no integer of 0 or more");
  expect("{\"version\":1,\"certificates\":[{\"prices\":[1e9]}]}", "no integer of 0 or more");
  expect("{\"version\":1,\"certificates\":[{\"prices\":[9223372036854775808]}]}", "above 2^63 - 1");
  expect("{\"version\":1,\"certificates\":[{\"messages\":[[[1],[2],[3]]]}]}", "of edge 0 to 3 nodes; an edge has 2");
  expect("{\"version\":1,\"certificates\":[{\"messages\":[[[1]]]}]}", "of edge 0 to 1 nodes");
}

} // namespace
