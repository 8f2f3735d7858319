#include "windlass/Dialect/Plan/Transforms/NamedStrategies.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"
#include "gmock/gmock.h"

using namespace windlass::plan;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// Parses `text` for `ranks` ranks. Returns the error, or the text that the strategy prints.
static std::string tryParse(const std::string &text, int64_t ranks) {
  llvm::Expected<StrategyTerms> terms = parseStrategy(text, ranks);
  return terms ? terms->getText() : llvm::toString(terms.takeError());
}

TEST(NamedStrategiesTest, EachRowIsFilled) {
  llvm::StringSet<> names;
  for (const NamedStrategy &strategy : getNamedStrategies()) {
    SCOPED_TRACE(strategy.name.str());
    EXPECT_TRUE(names.insert(strategy.name).second);
    EXPECT_TRUE(!strategy.name.empty() &&
                llvm::all_of(strategy.name, [](char c) { return llvm::isDigit(c) || c == '-' || llvm::isLower(c); }));
    // The end of a sentence, in a cell of a table.
    EXPECT_TRUE(!strategy.summary.empty() && !strategy.summary.ends_with("."));
    EXPECT_FALSE(strategy.summary.contains('|'));
    EXPECT_FALSE(strategy.isForModel() && strategy.shardedCopies.master) << "copies are sharded over ranks of the data";
    // A strategy that shards a gradient or a weight updates shards of it.
    EXPECT_TRUE(strategy.shardedCopies.master || !strategy.shardedCopies.gradient);
    EXPECT_TRUE(strategy.shardedCopies.gradient || !strategy.shardedCopies.compute);
    EXPECT_FALSE(strategy.measuredAs.empty());
    for (llvm::StringRef measured : strategy.measuredAs)
      EXPECT_EQ(tryParse(measured.str(), 4), measured);
    EXPECT_THAT(describeNamedStrategies(), HasSubstr(strategy.getSpelling() + ", "));
    // What the host holds is searched otherwise.
    EXPECT_FALSE(strategy.tiers && (strategy.isCompared || strategy.lastResort > 0));
    EXPECT_EQ(findTierRule(strategy.name) != nullptr, strategy.tiers.has_value());
  }
  ASSERT_GT(names.size(), 0u);
  EXPECT_FALSE(getLastResorts().empty());
}

/// Whether the term of the strategy has another number where those of others may have one of ranks.
static bool takesNumber(const NamedStrategy &strategy) { return strategy.getSpelling() != strategy.name; }

TEST(NamedStrategiesTest, EachIsReadBack) {
  for (const NamedStrategy &strategy : getNamedStrategies()) {
    if (takesNumber(strategy))
      continue;
    std::string name = strategy.name.str();
    EXPECT_EQ(tryParse(name, 4), name);
    EXPECT_EQ(tryParse(name + "=4", 4), name);
    EXPECT_THAT(tryParse(name + "=3", 4), HasSubstr("does not fit 4 ranks: use 3 ranks"));
    for (const NamedStrategy &other : getNamedStrategies()) {
      if (takesNumber(other))
        continue;
      std::string product = name + "*" + other.name.str() + "=2";
      if (strategy.isForModel() == other.isForModel())
        EXPECT_THAT(tryParse(product, 4), HasSubstr("twice: leave one of its parts out"));
      else
        EXPECT_EQ(tryParse(product, 4), strategy.isForModel() ? other.name.str() + "*" + name + "=2" : product);
    }
  }
}

TEST(NamedStrategiesTest, SharesAreReadBack) {
  for (const NamedStrategy &strategy : getNamedStrategies()) {
    if (!strategy.tiers || strategy.tiers->takes != TierNumber::share)
      continue;
    std::string name = strategy.name.str();
    for (const char *share : {"=0", "=0.3", "=1"})
      EXPECT_EQ(tryParse(name + share, 4), name + share);
    EXPECT_EQ(tryParse("megatron=2*" + name + "=0.25", 4), name + "=0.25*megatron=2");
    EXPECT_THAT(tryParse(name, 4), HasSubstr("write " + name + "=0.5"));
    for (const char *share : {"=2", "=-0.1", "=nan", "=", "=half"})
      EXPECT_THAT(tryParse(name + share, 4), HasSubstr("use a number from 0 to 1"));
  }
}

TEST(NamedStrategiesTest, StridesAreReadBack) {
  for (const NamedStrategy &strategy : getNamedStrategies()) {
    if (!strategy.tiers || strategy.tiers->takes != TierNumber::stride)
      continue;
    std::string name = strategy.name.str();
    for (const char *stride : {"=1", "=2", "=40"})
      EXPECT_EQ(tryParse(name + stride, 4), name + stride);
    EXPECT_THAT(tryParse(name, 4), HasSubstr("write " + name + "=2"));
    for (const char *stride : {"=0", "=-1", "=1.5", "=", "=two"})
      EXPECT_THAT(tryParse(name + stride, 4), HasSubstr("use a whole number from 1 on"));
  }
}

TEST(NamedStrategiesTest, UnknownNamesAreRefusedWithThoseThatAreKnown) {
  for (const NamedStrategy &strategy : getNamedStrategies())
    EXPECT_THAT(tryParse("zero9", 4), AllOf(HasSubstr("has a part 'zero9'"), HasSubstr(strategy.name.str())));
}
