#include "train/system/suggest.h"

#include <gtest/gtest.h>

namespace difftape::system {
namespace {

TEST(EditDistance, counts_insertions_deletions_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "ac"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("modle", "model"), 1);
}

TEST(DidYouMean, offers_the_nearest_word_and_nothing_far) {
  EXPECT_EQ(did_you_mean("diff_v3x", {"softmax", "diff_v1", "diff_v3"}),
            "; did you mean 'diff_v3'?");
  EXPECT_EQ(did_you_mean("relu", {"softmax", "diff_v1"}), "");
}

TEST(NearestKey, the_name_counts_first_and_then_the_section) {
  const std::vector<std::string> keys = {"run.name", "optim.name", "optim.lr"};
  EXPECT_EQ(nearest_key("opt.name", keys), "optim.name");
  EXPECT_EQ(nearest_key("rn.name", keys), "run.name");
  EXPECT_EQ(nearest_key("rn.nam", keys), "run.name");
  EXPECT_EQ(nearest_key("lr", keys), "optim.lr");
  EXPECT_EQ(nearest_key("train.lr", keys), "optim.lr");
  EXPECT_EQ(nearest_key("optim.momentum", keys), "");
}

}  // namespace
}  // namespace difftape::system
