#include "train/run/data/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

namespace difftape::run {
namespace {

TEST(HeldOut, cuts_the_row_of_held_out_tokens_into_equal_ranges_in_order) {
  const HeldOut parts({{100, 164}, {1000, 1064}}, {});
  EXPECT_TRUE(parts.domains().empty());
  for (Index i = 0; i < 64; ++i) {
    EXPECT_EQ(parts.origin(100 + i).group, i / 2);
    EXPECT_EQ(parts.origin(1000 + i).group, 32 + i / 2);
  }
}

TEST(HeldOut, unites_the_ranges_of_domains_of_any_size) {
  const HeldOut parts({{0, 6400 + 640}}, {{"large", {0, 6400}}, {"small", {6400, 7040}}});
  EXPECT_THAT(parts.domains(), testing::ElementsAre("large", "small"));
  std::map<Index, Index> large, small;
  for (Index token = 0; token < 7040; ++token) {
    const RowOrigin origin = parts.origin(token);
    EXPECT_EQ(origin.domain, token < 6400 ? 0 : 1);
    ++(origin.domain == 0 ? large : small)[origin.group];
  }
  ASSERT_EQ(large.size(), 64u);
  for (Index group = 0; group < kLossGroups; ++group) {
    EXPECT_EQ(large[group], 100);
    EXPECT_EQ(small[group], 10);
  }
}

TEST(HeldOut, counts_a_domain_on_where_it_comes_again) {
  const HeldOut parts({{0, 20}, {30, 256}},
                      {{"a", {0, 10}}, {"b", {10, 40}}, {"a", {40, 158}}, {"b", {158, 300}}});
  EXPECT_EQ(parts.domains(), (std::vector<std::string>{"a", "b"}));
  // a has 10 + 118 = 128 held-out tokens, b 10 + 10 + 98 = 118.
  EXPECT_EQ(parts.origin(9).group, 4);
  EXPECT_EQ(parts.origin(40).group, 5);
  EXPECT_EQ(parts.origin(157).group, 63);
  EXPECT_EQ(parts.origin(30).domain, 1);
  EXPECT_EQ(parts.origin(30).group, 64 * 10 / 118);
  EXPECT_EQ(parts.origin(255).group, 63);
}

TEST(HeldOut, of_fewer_tokens_than_groups_leaves_groups_empty) {
  const HeldOut parts({{0, 4}}, {});
  for (Index token = 0; token < 4; ++token) EXPECT_EQ(parts.origin(token).group, 16 * token);
}

}  // namespace
}  // namespace difftape::run
