#include "train/study/compare/claims/claims_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "core/error.h"

namespace difftape::study {
namespace {

using testing::HasSubstr;

constexpr const char* kWhole = R"(alpha: 0.01
seeds: [11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22]
looks: true
arms:
  softmax: {kind: softmax}
  v2: {kind: diff_v2, lambda: none}
  wide:
claims:
  loss:
    statement: V2 is lower
    source: an article
    family: losses
    endpoint: primary
    arm: v2
    reference: softmax
    metric: val_loss
    where: {optim.lr: [0.01, 3.0e-2], optim.schedule: cosine}
    expect: lower
    margin: 0.01
    published: [-0.03, -0.02]
    controls:
      - {arm: softmax, metric: grad_spikes, from: 5, to: 30}
    plan: {spread: 0.011, effect: -0.025}
    if_supported: it is
    if_contradicted: it is not
  scale:
    statement: the same scale
    family: losses
    endpoint: secondary
    arm: wide
    reference: softmax
    metric: grad_norm_median
    expect: equivalent
    margin: 1.2
)";

TEST(ClaimsFile, is_read_in_full) {
  const ClaimsFile file = claims_from_text(kWhole, "c.yaml");
  EXPECT_EQ(file.alpha, 0.01);
  EXPECT_EQ(file.seeds,
            (std::vector<std::uint64_t>{11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22}));
  EXPECT_TRUE(file.looks);
  ASSERT_EQ(file.arms.size(), 3u);
  EXPECT_TRUE(file.arms[1].attention.has_value());
  EXPECT_FALSE(file.arms[2].attention.has_value());
  ASSERT_EQ(file.claims.size(), 2u);
  const Claim& loss = file.claims[0];
  EXPECT_EQ(loss.id, "loss");
  EXPECT_EQ(loss.endpoint, Rank::primary);
  EXPECT_EQ(loss.metric, &quantity("val_loss"));
  EXPECT_EQ(loss.where, (Regime{{"optim.lr", {"0.01", "3.0e-2"}}, {"optim.schedule", {"cosine"}}}));
  EXPECT_EQ(loss.on_axis(loss.margin), 0.01);
  EXPECT_EQ(loss.published_low, -0.03);
  EXPECT_EQ(loss.published_high, -0.02);
  ASSERT_EQ(loss.controls.size(), 1u);
  EXPECT_EQ(loss.controls[0].to, 30);
  EXPECT_EQ(loss.planned_effect, -0.025);
  EXPECT_EQ(loss.if_contradicted, "it is not");
  EXPECT_EQ(file.claims[1].expect, Expect::equivalent);
  EXPECT_DOUBLE_EQ(file.claims[1].on_axis(file.claims[1].margin), std::log(1.2));
}

TEST(ClaimsFile, has_a_digest_that_any_change_changes) {
  const std::string text = kWhole;
  EXPECT_EQ(claims_from_text(text, "a").digest, claims_from_text(text, "b").digest);
  EXPECT_NE(claims_from_text(text, "a").digest, claims_from_text(text + "\n", "a").digest);
}

/// What is said of the file with one text replaced by another.
std::string error(const std::string& text, const std::string& by) {
  std::string file = kWhole;
  const auto at = file.find(text);
  if (at == std::string::npos) return "no such text";
  file.replace(at, text.size(), by);
  try {
    claims_from_text(file, "c.yaml");
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(ClaimsFile, with_something_it_does_not_know_is_refused_with_place_and_what_there_is) {
  EXPECT_THAT(error("metric: val_loss", "metric: val_los"),
              HasSubstr("c.yaml:16:13: error: claims.loss.metric: no metric is called "
                        "'val_los'; did you mean 'val_loss'?; there are train_loss, val_loss"));
  EXPECT_THAT(error("arm: v2", "arm: v3"),
              HasSubstr("c.yaml:14:10: error: claims.loss.arm: 'v3' is not in arms (softmax, v2, "
                        "wide)"));
  EXPECT_THAT(error("{arm: softmax, metric", "{arm: softmx, metric"),
              HasSubstr("claims.loss.controls.arm: 'softmx' is not in arms"));
  EXPECT_THAT(error("expect: lower", "expect: smaller"),
              HasSubstr("claims.loss.expect: 'smaller' is not one of lower, higher"));
  EXPECT_THAT(error("optim.schedule: cosine", "optim.shedule: cosine"),
              HasSubstr("unknown key 'claims.loss.where.optim.shedule'; did you mean "
                        "'optim.schedule'?"));
  EXPECT_THAT(error("    if_supported: it is\n", "    if_suported: it is\n"),
              HasSubstr("unknown key 'claims.loss.if_suported'; did you mean 'if_supported'?"));
  EXPECT_THAT(error("lambda: none", "lambda: nothing"), HasSubstr("c.yaml:6:"));
  EXPECT_THAT(error("    metric: val_loss",
                    "    compared_with: {arm: v2, reference: v3}\n"
                    "    metric: val_loss"),
              HasSubstr("claims.loss.compared_with.reference: 'v3' is not in arms"));
  EXPECT_THAT(error("    metric: val_loss",
                    "    compared_with: {arm: v2, reference: softmax}\n"
                    "    metric: val_loss"),
              HasSubstr("claims.loss.compared_with: names the two arms of the claim itself"));
}

TEST(ClaimsFile, with_numbers_that_do_not_fit_is_refused) {
  EXPECT_THAT(error("margin: 0.01", "margin: -0.01"), HasSubstr("claims.loss.margin"));
  EXPECT_THAT(error("margin: 1.2", "margin: 0.9"), HasSubstr("claims.scale.margin"));
  EXPECT_THAT(error("    margin: 1.2\n", ""),
              HasSubstr("claims.scale.margin: is missing; 'equivalent' needs"));
  EXPECT_THAT(error("[-0.03, -0.02]", "[-0.02, -0.03]"),
              HasSubstr("claims.loss.published: expected two numbers, the lower first"));
  EXPECT_THAT(error("alpha: 0.01", "alpha: 1"), HasSubstr("alpha"));
  EXPECT_THAT(error("seeds: [11, 12,", "seeds: [-1, 12,"), HasSubstr("seeds"));
}

TEST(ClaimsFile, has_one_primary_claim_a_family_before_its_secondary_ones) {
  EXPECT_THAT(error("endpoint: secondary", "endpoint: primary"),
              HasSubstr("claims.scale: family 'losses' has a primary claim already"));
  EXPECT_THAT(
      error("    endpoint: primary\n", ""),
      HasSubstr("claims.scale: secondary, but family 'losses' has no primary claim before"));
}

TEST(ClaimsFile, without_claims_or_with_other_than_a_map_is_refused) {
  for (const char* text : {"", "a", "[1]", "alpha: 0.1", "claims: {}", "claims: [a]",
                           "claims: {a: 1}", "claims: {a: {}}", "claims: {a: {arm: x}}",
                           "claims: {a: {statement: s, arm: x, reference: y}}", "{", "a: 1"}) {
    EXPECT_THROW(claims_from_text(text, "c.yaml"), ConfigError) << text;
  }
  EXPECT_THROW(load_claims("/nowhere/claims.yaml"), MissingInput);
}

TEST(ClaimsFile, of_every_shipped_study_is_right) {
  namespace fs = std::filesystem;
  int read = 0;
  for (const auto& entry : fs::recursive_directory_iterator(DIFFTAPE_TEST_SOURCE_DIR "/configs")) {
    const std::string path = entry.path().string();
    const bool claims =
        path.find("/claims/") != std::string::npos || entry.path().filename() == "claims.yaml";
    if (!claims || entry.path().extension() != ".yaml") continue;
    EXPECT_FALSE(load_claims(path).claims.empty()) << path;
    ++read;
  }
  EXPECT_GE(read, 2);
}

}  // namespace
}  // namespace difftape::study
