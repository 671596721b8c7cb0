#include "optim/tree_sum.h"

#include <gmock/gmock.h>

#include <string>

#include "tests/support/tensors.h"

namespace difftape {
namespace {

using testing::ElementsAre;

TEST(TreeSum, is_cut_by_the_smallest_prime_factor_first) {
  EXPECT_THAT(tree_levels(1), ElementsAre());
  EXPECT_THAT(tree_levels(2), ElementsAre(2));
  EXPECT_THAT(tree_levels(12), ElementsAre(3, 2, 2));
  EXPECT_THAT(tree_levels(35), ElementsAre(7, 5));
  EXPECT_THAT(tree_levels(97), ElementsAre(97));
}

TEST(TreeSum, has_equal_ranges_that_are_subtrees) {
  std::vector<Index> able;
  for (Index n = 1; n <= 13; ++n) {
    if (cuts_into_subtrees(12, n)) able.push_back(n);
  }
  EXPECT_THAT(able, ElementsAre(1, 2, 4, 12));
  EXPECT_TRUE(cuts_into_subtrees(15, 3));
  EXPECT_FALSE(cuts_into_subtrees(15, 5)) << "ranges of three leaves cross subtrees of five";
  EXPECT_TRUE(cuts_into_subtrees(1, 1));
  EXPECT_FALSE(cuts_into_subtrees(1, 2));
}

Tensor leaf(Index number) { return test::random({1000}, "leaf " + std::to_string(number)); }

Tensor sum(Index begin, Index leaves) {
  TreeSum tree(leaves);
  Tensor x;
  for (Index i = 0; i < leaves; ++i) {
    x = leaf(begin + i);
    tree.add(i, x);
  }
  return x;
}

TEST(TreeSum, of_four_adds_the_sums_of_two_pairs) {
  Tensor left = leaf(0), right = leaf(2), chain = leaf(0);
  left.add(leaf(1));
  right.add(leaf(3));
  left.add(right);
  EXPECT_TRUE(test::same(sum(0, 4), left));
  for (const Index i : {1, 2, 3}) chain.add(leaf(i));
  EXPECT_FALSE(test::same(sum(0, 4), chain)) << "the order matters";
}

TEST(TreeSum, equals_the_sum_of_range_sums_bit_for_bit) {
  for (const Index leaves : {1, 2, 3, 6, 8, 9, 12, 30}) {
    const Tensor whole = sum(0, leaves);
    for (Index ranges = 1; ranges <= leaves; ++ranges) {
      if (!cuts_into_subtrees(leaves, ranges)) continue;
      TreeSum tree(ranges);
      Tensor x;
      for (Index i = 0; i < ranges; ++i) {
        x = sum(i * (leaves / ranges), leaves / ranges);
        tree.add(i, x);
      }
      EXPECT_TRUE(test::same(x, whole)) << leaves << " by " << ranges;
    }
  }
}

TEST(TreeSum, keeps_one_tensor_per_level_and_can_be_reused) {
  TreeSum tree(8);
  EXPECT_EQ(tree.kept(), 3);
  for (const int round : {1, 2}) {
    Tensor x;
    for (Index i = 0; i < 8; ++i) {
      x = leaf(i);
      tree.add(i, x);
    }
    EXPECT_TRUE(test::same(x, sum(0, 8))) << round;
  }
}

}  // namespace
}  // namespace difftape
