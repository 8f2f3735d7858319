#include "../../lib/Search/Classes.h"

#include "windlass/Search/Problem.h"

#include <gtest/gtest.h>

#include <random>

using namespace windlass::search;

namespace {

constexpr double kNot = static_cast<double>(kForbidden);

/// A table whose rows and columns repeat those of a smaller one.
std::vector<int64_t> makeTable(std::mt19937 &random, int32_t height, int32_t width, int32_t rows, int32_t columns) {
  std::vector<int64_t> small(static_cast<size_t>(rows) * columns), table;
  for (int64_t &cost : small)
    cost = random() % 5 == 0 ? kForbidden : random() % 1000;
  std::vector<size_t> rowOf, columnOf;
  for (int32_t x = 0; x < height; ++x)
    rowOf.push_back(random() % rows);
  for (int32_t y = 0; y < width; ++y)
    columnOf.push_back(random() % columns);
  for (size_t row : rowOf)
    for (size_t column : columnOf)
      table.push_back(small[row * columns + column]);
  return table;
}

/// Returns the message by the full table.
Doubles sendWhole(const std::vector<int64_t> &table, const Doubles &a, int32_t width) {
  auto height = static_cast<int32_t>(a.size());
  Doubles whole(static_cast<size_t>(height) * padded(width), kNot), out(padded(width));
  for (int32_t x = 0; x < height; ++x)
    for (int32_t y = 0; y < width; ++y)
      whole[static_cast<size_t>(x) * padded(width) + y] =
          static_cast<double>(table[static_cast<size_t>(x) * width + y]);
  minPlus(out.data(), a.data(), whole.data(), height, padded(width));
  return out;
}

TEST(Classes, MessagesHaveTheBitsOfTheWholeTable) {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> amount(-1e9, 1e9);
  for (int draw = 0; draw < 200; ++draw) {
    auto height = static_cast<int32_t>(60 + random() % 100), width = static_cast<int32_t>(60 + random() % 100);
    std::vector<int64_t> table = makeTable(random, height, width, 1 + random() % 8, 1 + random() % 8), transposed;
    for (int32_t y = 0; y < width; ++y)
      for (int32_t x = 0; x < height; ++x)
        transposed.push_back(table[static_cast<size_t>(x) * width + y]);
    std::optional<Classes> classes = findClasses(table, height, width, kNot);
    ASSERT_TRUE(classes);
    EXPECT_LE(classes->rows, 8);
    Classes back = classes->transpose(width, kNot);
    for (bool isBack : {false, true}) {
      Doubles a(isBack ? width : height), out(padded(isBack ? height : width)), room(1024);
      for (double &value : a)
        value = amount(random);
      minPlus(out.data(), a.data(), isBack ? back : *classes, room.data());
      EXPECT_EQ(out, sendWhole(isBack ? transposed : table, a, isBack ? height : width)) << draw;
    }
  }
}

TEST(Classes, TablesThatHardlyRepeatHaveNone) {
  std::mt19937 random(8);
  std::vector<int64_t> table(64 * 64);
  for (int64_t &cost : table)
    cost = random();
  EXPECT_FALSE(findClasses(table, 64, 64, kNot));
  // A small table is quicker as a whole.
  EXPECT_FALSE(findClasses(std::vector<int64_t>(16, 3), 4, 4, kNot));
}

} // namespace
