#include "optim/tree_sum.h"

#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

using testing::FieldsAre;

TEST(LeafSpans, are_contiguous_and_as_equal_as_possible) {
  const auto share = [](Index process) { return leaves_of(8, 3, process); };
  EXPECT_THAT(share(0), FieldsAre(0, 3));
  EXPECT_THAT(share(1), FieldsAre(3, 6));
  EXPECT_THAT(share(2), FieldsAre(6, 8));
  EXPECT_THAT(leaves_of(5, 1, 0), FieldsAre(0, 5));
}

TEST(AlignedRanges, are_the_largest_powers_of_two_that_divide_their_begin) {
  EXPECT_THAT(aligned_ranges({0, 8}), ElementsAre(FieldsAre(0, 8)));
  EXPECT_THAT(aligned_ranges({3, 8}), ElementsAre(FieldsAre(3, 1), FieldsAre(4, 4)));
  EXPECT_THAT(aligned_ranges({0, 7}),
              ElementsAre(FieldsAre(0, 4), FieldsAre(4, 2), FieldsAre(6, 1)));
  EXPECT_THAT(aligned_ranges({5, 6}), ElementsAre(FieldsAre(5, 1)));
}

Tensor leaf(Index number) { return test::random({1000}, "leaf " + std::to_string(number)); }

/// Adds leaves one by one to `tree`.
void add(TreeSum& tree, LeafSpan leaves) {
  for (Index i = leaves.begin; i < leaves.end; ++i) {
    Tensor x = leaf(i);
    tree.add({i, 1}, x);
  }
}

Tensor sum(Index leaves) {
  TreeSum tree;
  Tensor x;
  add(tree, {0, leaves});
  tree.finish(x);
  return x;
}

TEST(TreeSum, of_four_adds_the_sums_of_two_pairs) {
  Tensor left = leaf(0), right = leaf(2), chain = leaf(0);
  left.add(leaf(1));
  right.add(leaf(3));
  left.add(right);
  EXPECT_TRUE(test::same(sum(4), left));
  for (const Index i : {1, 2, 3}) chain.add(leaf(i));
  EXPECT_FALSE(test::same(sum(4), chain)) << "the order matters";
}

TEST(TreeSum, of_seven_adds_the_ranges_that_remain_from_the_last) {
  Tensor pair = leaf(4), rest = leaf(6);
  pair.add(leaf(5));
  rest.add(pair);
  rest.add(sum(4));
  EXPECT_TRUE(test::same(sum(7), rest));
}

TEST(TreeSum, has_the_same_bits_for_any_number_of_processes) {
  for (const Index leaves : {1, 2, 3, 6, 8, 11, 12, 16}) {
    const Tensor whole = sum(leaves);
    for (Index processes = 1; processes <= leaves; ++processes) {
      TreeSum all;
      for (Index process = 0; process < processes; ++process) {
        const LeafSpan share = leaves_of(leaves, processes, process);
        TreeSum own;
        add(own, share);
        ASSERT_EQ(own.parts().size(), aligned_ranges(share).size());
        for (TreeSum::Part& part : own.parts()) all.add(part.leaves, part.sum);
      }
      Tensor x;
      all.finish(x);
      EXPECT_TRUE(test::same(x, whole)) << leaves << " in " << processes;
    }
  }
}

TEST(TreeSum, restarts_with_the_sum_of_the_last_range) {
  TreeSum tree;
  Tensor x;
  add(tree, {0, 6});
  tree.restart(x);
  Tensor pair = leaf(5);
  pair.add(leaf(4));
  EXPECT_TRUE(test::same(x, pair));
  EXPECT_TRUE(tree.parts().empty());
  EXPECT_EQ(tree.kept(), 1) << "the sum of the first four leaves";
  add(tree, {0, 3});
  tree.finish(x);
  EXPECT_TRUE(test::same(x, sum(3)));
}

TEST(TreeSum, keeps_the_tensors_of_a_sum_for_the_next_one) {
  TreeSum tree;
  Tensor x;
  for (const int round : {1, 2}) {
    for (Index i = 0; i < 8; ++i) {
      if (!x.allocated()) x = Tensor::empty({1000});
      x.copy_from(leaf(i));
      tree.add({i, 1}, x);
    }
    tree.finish(x);
    EXPECT_TRUE(test::same(x, sum(8))) << round;
    EXPECT_EQ(tree.kept(), 3) << round;
  }
}

}  // namespace
}  // namespace difftape
