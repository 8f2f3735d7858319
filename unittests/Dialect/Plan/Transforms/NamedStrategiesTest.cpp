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
                llvm::all_of(strategy.name, [](char c) { return llvm::isDigit(c) || (c >= 'a' && c <= 'z'); }));
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
    EXPECT_THAT(describeNamedStrategies(), HasSubstr(strategy.name.str() + ", "));
  }
  ASSERT_GT(names.size(), 0u);
  EXPECT_FALSE(getLastResorts().empty());
}

TEST(NamedStrategiesTest, EachIsReadBack) {
  for (const NamedStrategy &strategy : getNamedStrategies()) {
    std::string name = strategy.name.str();
    EXPECT_EQ(tryParse(name, 4), name);
    EXPECT_EQ(tryParse(name + "=4", 4), name);
    EXPECT_THAT(tryParse(name + "=3", 4), HasSubstr("does not fit 4 ranks: use 3 ranks"));
    for (const NamedStrategy &other : getNamedStrategies()) {
      std::string product = name + "*" + other.name.str() + "=2";
      if (strategy.isForModel() == other.isForModel())
        EXPECT_THAT(tryParse(product, 4), HasSubstr("twice: leave one of its parts out"));
      else
        EXPECT_EQ(tryParse(product, 4), strategy.isForModel() ? other.name.str() + "*" + name + "=2" : product);
    }
  }
}

TEST(NamedStrategiesTest, UnknownNamesAreRefusedWithThoseThatAreKnown) {
  for (const NamedStrategy &strategy : getNamedStrategies())
    EXPECT_THAT(tryParse("zero9", 4), AllOf(HasSubstr("has a part 'zero9'"), HasSubstr(strategy.name.str())));
}
