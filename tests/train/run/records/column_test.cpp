#include "train/run/records/column.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "core/random.h"

namespace difftape::run {
namespace {

TEST(Column, is_a_map_from_rows_in_whatever_order_they_come) {
  const RandomStream random(7, "rows");
  for (std::uint64_t trial = 0; trial < 20; ++trial) {
    Column<double> column;
    std::map<std::size_t, double> expected;
    for (std::uint64_t i = 0; i < 60; ++i) {
      const std::uint64_t at = 100 * trial + i;
      // First one behind the other, as files have them; then anywhere.
      const std::size_t row = trial % 2 == 0 && i < 30 ? i : random.below(at, 50);
      column.set(row, static_cast<double>(at));
      expected[row] = static_cast<double>(at);
    }
    ASSERT_EQ(column.values().size(), expected.size());
    std::size_t i = 0;
    for (const auto& [row, value] : expected) {
      EXPECT_EQ(column.row(i), row);
      EXPECT_EQ(column.values()[i++], value);
    }
    for (std::size_t row = 0; row < 60; ++row) {
      if (expected.contains(row)) {
        EXPECT_EQ(column[row], expected[row]);
      } else {
        EXPECT_TRUE(std::isnan(column[row]));
      }
    }
  }
}

TEST(Column, has_an_empty_list_where_a_row_logged_none) {
  Column<std::vector<double>> lists;
  lists.set(3, {1, 2});
  EXPECT_TRUE(lists[2].empty());
  EXPECT_EQ(lists[3], (std::vector<double>{1, 2}));
  EXPECT_TRUE(lists[4].empty());
}

}  // namespace
}  // namespace difftape::run
