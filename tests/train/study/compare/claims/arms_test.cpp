// Which arms of a study a claim means.
#include "train/study/compare/claims/measure.h"

#include <gtest/gtest.h>

#include "tests/train/study/compare/claims/some_claims.h"
#include "tests/train/study/compare/synthetic_study.h"

namespace difftape::study {
namespace {

using test::Result;

/// The arms that V2 and softmax of `some_claims` are, or why there are none.
std::string pair(const std::vector<Result>& results) {
  const std::vector<RunRecord> runs = test::records(results);
  const ClaimsFile file = test::some_claims();
  try {
    const auto [arm, other] = find_arms(file.claims.front(), file, test::pointers(runs));
    return arm.name + " against " + other.name;
  } catch (const NoNumbers& none) {
    return none.what();
  }
}

TEST(ArmsOfClaims, are_those_of_the_fields_of_attention_and_no_others) {
  const Result softmax{.arm = "mine"}, v2{.arm = "other", .attention = {{"kind", "diff_v2"}}};
  const auto changed = [&](const char* key, const char* value) {
    Result result = v2;
    result.attention[key] = value;
    return pair({softmax, result});
  };
  EXPECT_EQ(pair({softmax, v2}), "other against mine");
  EXPECT_EQ(changed("lambda", "sigmoid"), "other against mine") << "that of the kind, said again";
  EXPECT_EQ(changed("gate", "preset"), "other against mine");
  EXPECT_EQ(changed("gate", "head"), "no arm is v2 (kind: diff_v2)");
  EXPECT_EQ(changed("qk_norm", "true"), "other and mine also differ in model.attention.qk_norm");
  EXPECT_EQ(changed("sliding_window", "64"),
            "other and mine also differ in model.attention.sliding_window");
  const std::string unknown =
      "no arm is v2 (kind: diff_v2); this version cannot read the attention of other";
  EXPECT_EQ(changed("gate", "both"), unknown);
  EXPECT_EQ(changed("rotation", "none"), unknown);
}

TEST(ArmsOfClaims, are_the_first_that_differ_in_nothing_else) {
  const Result v2{.arm = "v2", .attention = {{"kind", "diff_v2"}}};
  const Result wide{.arm = "wide", .config = {{"optim.max_grad_norm", "0"}}};
  EXPECT_EQ(pair({wide, v2}), "v2 and wide also differ in optim.max_grad_norm");
  EXPECT_EQ(pair({wide, {.arm = "plain"}, v2}), "v2 against plain");
  EXPECT_EQ(pair({{.arm = "plain", .config = {{"model.d_ff", "300"}}}, v2}), "v2 against plain");
}

}  // namespace
}  // namespace difftape::study
