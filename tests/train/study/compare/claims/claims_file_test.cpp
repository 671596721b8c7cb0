#include "train/study/compare/claims/claims_file.h"

#include "tests/support/test.h"
#include "tests/train/study/compare/claims/two_arms.h"

namespace difftape::study {
namespace {

constexpr const char* kWhole = R"(alpha: 0.01
seeds: [11, 12..14, 9]
learning_rates: lr_star.csv
margins:
  val_loss: {margin: 0.01, reason: half of the published lead}
  val_loss_per_decade: {margin: 0.02, reason: as much}
  grad_norm_median: {margin: 1.2, reason: comparable}
arms: {softmax: , v2: , wide: }
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
    published: [-0.03, -0.02]
    controls:
      - {arm: softmax, metric: grad_spikes, from: 5, to: 30}
    planned_sd: 0.011
  scale:
    statement: the same scale
    family: losses
    endpoint: secondary
    arm: wide
    reference: softmax
    metric: grad_norm_median
    expect: equivalent
  slope:
    statement: it grows
    arm: v2
    reference: softmax
    metric: val_loss
    lr: [4 x own, own]
    slope_over: parameters
    seeds: {64: [11, 12], 32: [11..15]}
    expect: not_higher
)";

TEST(ClaimsFile, is_read_in_full) {
  const ClaimsFile file = claims_from_text(kWhole, "c.yaml");
  EXPECT_EQ(file.alpha, 0.01);
  EXPECT_EQ(file.seeds, (Seeds{11, 12, 13, 14, 9}));
  EXPECT_EQ(file.learning_rates, "lr_star.csv");
  EXPECT_EQ(file.margins.at("val_loss").reason, "half of the published lead");
  EXPECT_THAT(file.arms, ElementsAre("softmax", "v2", "wide"));
  ASSERT_EQ(file.claims.size(), 3u);
  const Claim& loss = file.claims[0];
  EXPECT_EQ(loss.id, "loss");
  EXPECT_EQ(loss.endpoint, Rank::primary);
  EXPECT_EQ(loss.metric, &quantity("val_loss"));
  EXPECT_EQ(loss.terms[0].where,
            (Regime{{"optim.lr", {"0.01", "3.0e-2"}}, {"optim.schedule", {"cosine"}}}));
  EXPECT_EQ(loss.on_axis(loss.margin), 0.01);
  ASSERT_EQ(loss.controls.size(), 1u);
  EXPECT_EQ(loss.controls[0].to, 30);
  EXPECT_EQ(loss.planned_sd, 0.011);
  EXPECT_EQ(loss.seeds, file.seeds);
  EXPECT_EQ(loss.over, Over::no_sizes);
  EXPECT_EQ(file.claims[1].expect, Expect::equivalent);
  EXPECT_DOUBLE_EQ(file.claims[1].on_axis(file.claims[1].margin), std::log(1.2));
  const Claim& slope = file.claims[2];
  EXPECT_EQ(slope.over, Over::slope);
  EXPECT_EQ(slope.margin, 0.02) << "the margin of slopes";
  EXPECT_EQ(slope.own_lr, (std::vector{1.0, 4.0}));
  EXPECT_EQ(slope.seeds_of_size.at(32).size(), 5u);
  EXPECT_EQ(slope.planned_pairs(), (std::vector<Index>{5, 2}));
}

TEST(ClaimsFile, has_a_digest_that_depends_on_every_byte) {
  const std::string text = kWhole;
  EXPECT_EQ(claims_from_text(text, "a").digest, claims_from_text(text, "b").digest);
  EXPECT_NE(claims_from_text(text, "a").digest, claims_from_text(text + "\n", "a").digest);
}

/// Returns the errors of the file after replacing one string.
std::string error(const std::string& text, const std::string& by) {
  std::string file = kWhole;
  const auto at = file.find(text);
  if (at == std::string::npos) return "no such text";
  file.replace(at, text.size(), by);
  return message_of<ConfigError>([&] { claims_from_text(file, "c.yaml"); });
}

TEST(ClaimsFile, with_unknown_names_is_rejected_with_location_and_alternatives) {
  EXPECT_THAT(error("metric: val_loss", "metric: val_los"),
              EndsWith("c.yaml:17:13: error: claims.loss.metric: no metric is named 'val_los'; did "
                       "you mean 'val_loss'?"));
  EXPECT_THAT(error("metric: val_loss", "metric: bleu"),
              HasSubstr("no metric is named 'bleu'; the metrics are train_loss, val_loss"));
  EXPECT_THAT(error("arm: v2", "arm: v3"),
              HasSubstr("c.yaml:15:10: error: claims.loss.arm: 'v3' is not in arms (softmax, v2, "
                        "wide)"));
  EXPECT_THAT(error("{arm: softmax, metric", "{arm: softmx, metric"),
              HasSubstr("claims.loss.controls.arm: 'softmx' is not in arms"));
  EXPECT_THAT(error("expect: lower", "expect: smaller"),
              HasSubstr("claims.loss.expect: 'smaller' is not one of lower, higher"));
  EXPECT_THAT(error("optim.schedule: cosine", "optim.shedule: cosine"),
              HasSubstr("unknown key 'claims.loss.where.optim.shedule'; did you mean "
                        "'optim.schedule'?"));
  EXPECT_THAT(error("    planned_sd:", "    planed_sd:"),
              HasSubstr("unknown key 'claims.loss.planed_sd'; did you mean 'planned_sd'?"));
  EXPECT_THAT(error("    published:", "    margin: 0.01\n    published:"),
              HasSubstr("unknown key 'claims.loss.margin'"))
      << "margins stand at the top, one for each metric";
  EXPECT_THAT(error("  grad_norm_median: {m", "  grad_norm_medan: {m"),
              HasSubstr("unknown key 'margins.grad_norm_medan'; did you mean 'grad_norm_median'?"));
  EXPECT_THAT(error("wide: }", "wide: {kind: diff_v2}}"),
              HasSubstr("arms.wide: expected nothing after the name of an arm, got a map; arms are "
                        "found by run.arm"));
  EXPECT_THAT(error("    metric: val_loss",
                    "    compared_with: {arm: v2, reference: v3}\n"
                    "    metric: val_loss"),
              HasSubstr("claims.loss.compared_with.reference: 'v3' is not in arms"));
  EXPECT_THAT(error("    metric: val_loss",
                    "    compared_with: {arm: v2, reference: softmax}\n"
                    "    metric: val_loss"),
              HasSubstr("claims.loss.compared_with: equals the claim's own difference"));
}

TEST(ClaimsFile, with_invalid_numbers_is_rejected) {
  EXPECT_THAT(error("margin: 0.01,", "margin: -0.01,"), HasSubstr("margins.val_loss.margin"));
  EXPECT_THAT(error("margin: 1.2,", "margin: 0.9,"), HasSubstr("margins.grad_norm_median.margin"));
  EXPECT_THAT(error("{margin: 0.01, reason: half of the published lead}", "{margin: 0.01}"),
              HasSubstr("margins.val_loss: has no 'reason'"));
  EXPECT_THAT(error("  grad_norm_median: {margin: 1.2, reason: comparable}\n", ""),
              HasSubstr("claims.scale.expect: 'equivalent' needs a margin; add grad_norm_median: "
                        "{margin: ..., reason: ...} to 'margins' at the top of the file"));
  EXPECT_THAT(error("  val_loss_per_decade: {margin: 0.02, reason: as much}\n", ""),
              HasSubstr("'not_higher' needs a margin; add val_loss_per_decade: {"));
  EXPECT_THAT(error("alpha: 0.01", "alpha: 1"), HasSubstr("alpha"));
}

TEST(ClaimsFile, may_have_the_largest_seeds) {
  const ClaimsFile file = claims_from_text(
      "seeds: [18446744073709551614..18446744073709551615]\n"
      "claims: {c: {statement: s, arm: a, reference: b, metric: val_loss}}\n",
      "c.yaml");
  EXPECT_EQ(file.seeds, (Seeds{18446744073709551614u, 18446744073709551615u}));
}

TEST(ClaimsFile, with_invalid_seeds_or_sizes_is_rejected) {
  EXPECT_THAT(
      error("seeds: [11, 12..14", "seeds: [-1, 12..14"),
      HasSubstr("seeds: expected seeds such as 11 or 11..18, at most 10000 in a range, got '-1'"));
  EXPECT_THAT(error("seeds: [11, 12..14", "seeds: [11, 14..12"), HasSubstr("got '14..12'"));
  EXPECT_THAT(error("seeds: [11, 12..14", "seeds: [11, 1..1000000"), HasSubstr("got '1..1000000'"));
  EXPECT_THAT(error("seeds: [11, 12..14", "seeds: [12, 12..14"),
              HasSubstr("has seed 12 twice; remove one"));
  EXPECT_THAT(error("{64: [11, 12], 32: [11..15]}", "{wide: [11, 12], 32: [11..15]}"),
              HasSubstr("claims.slope.seeds.wide: expected a value of model.d_model"));
  EXPECT_THAT(error("{64: [11, 12], 32: [11..15]}", "{32: [11..15]}"),
              HasSubstr("claims.slope.seeds: has one size, but must have at least two"));
  EXPECT_THAT(error("    slope_over: parameters\n", ""),
              HasSubstr("claims.slope.seeds: seeds per size need mean_over or"));
  EXPECT_THAT(error("    slope_over: parameters\n", "    slope_over: steps\n"),
              HasSubstr("claims.slope.slope_over: 'steps'"));
  EXPECT_THAT(error("    slope_over: parameters\n",
                    "    slope_over: parameters\n    mean_over: parameters\n"),
              HasSubstr("claims.slope.slope_over: excludes mean_over; keep one of them"));
}

TEST(ClaimsFile, with_invalid_learning_rates_is_rejected) {
  EXPECT_THAT(error("[4 x own, own]", "[4 own, own]"),
              HasSubstr("claims.slope.lr: expected own or 4 x own, got '4 own'"));
  EXPECT_THAT(error("[4 x own, own]", "[1 x own, own]"),
              HasSubstr("claims.slope.lr: has 1 x own twice; remove one"));
  EXPECT_THAT(error("learning_rates: lr_star.csv\n", ""),
              HasSubstr("claims.slope.lr: needs the file of lr_star; name it in 'learning_rates'"));
  EXPECT_THAT(
      error("learning_rates: lr_star.csv", "learning_rates: a/lr_star.csv"),
      HasSubstr(
          "learning_rates: is 'a/lr_star.csv', but must be the name of a file in the same folder"));
  EXPECT_THAT(error("    lr: [4 x own, own]\n", "    lr: own\n    where: {optim.lr: 0.01}\n"),
              HasSubstr("claims.slope.lr: excludes optim.lr in 'where'"));
  EXPECT_THAT(error("    metric: val_loss\n    lr: [4 x own, own]\n",
                    "    metric: lr_penalty\n    lr: own\n"),
              HasSubstr("claims.slope.lr: has 1 learning rates, but lr_penalty needs two"));
}

TEST(ClaimsFile, has_one_primary_claim_per_family_before_its_secondary_ones) {
  EXPECT_THAT(error("endpoint: secondary", "endpoint: primary"),
              HasSubstr("claims.scale: family 'losses' already has a primary claim"));
  EXPECT_THAT(
      error("    endpoint: primary\n", ""),
      HasSubstr("claims.scale: is secondary, but family 'losses' has no primary claim before"));
}

TEST(ClaimsFile, without_a_map_of_claims_is_rejected) {
  for (const char* text : {"", "a", "[1]", "alpha: 0.1", "claims: {}", "claims: [a]",
                           "claims: {a: 1}", "claims: {a: {}}", "claims: {a: {arm: x}}",
                           "claims: {a: {statement: s, arm: x, reference: y}}", "{", "a: 1"}) {
    EXPECT_THROW(claims_from_text(text, "c.yaml"), ConfigError) << text;
  }
  EXPECT_THROW(load_claims("/nowhere/claims.yaml"), MissingInput);
}

TEST(ClaimsFile, of_every_shipped_study_is_valid) {
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

TEST(ClaimsFile, says_which_seeds_a_claim_counts) {
  const auto claim = [](const std::string& more) {
    return claims("    metric: val_loss\n" + more).claims.front();
  };
  EXPECT_TRUE(claim("").counts(7));
  EXPECT_TRUE(claim("    seeds: [1, 7]\n").counts(7));
  EXPECT_FALSE(claim("    seeds: [1, 2]\n").counts(7));
  const Claim sizes = claim("    mean_over: parameters\n    seeds: {32: [1], 64: [7]}\n");
  EXPECT_TRUE(sizes.counts(7));
  EXPECT_FALSE(sizes.counts(2));
}

}  // namespace
}  // namespace difftape::study
