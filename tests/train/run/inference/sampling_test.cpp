// Draws by hand-computed probabilities.
#include "train/run/inference/generate.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>

#include "core/error.h"

namespace difftape::run {
namespace {

/// Logits whose softmax is 0.2, 0.5, 0, 0.3.
const std::vector<real> kLogits{static_cast<real>(std::log(0.2)), static_cast<real>(std::log(0.5)),
                                real(-80), static_cast<real>(std::log(0.3))};

/// The share of 1000 evenly spaced numbers that draws each token.
std::map<std::int32_t, double> shares(const Sampling& sampling) {
  std::map<std::int32_t, double> found;
  for (int i = 0; i < 1000; ++i) found[sample(kLogits, sampling, (i + 0.5) / 1000)] += 0.001;
  return found;
}

using Shares = std::map<std::int32_t, double>;
MATCHER_P(AreAbout, expected, "") {
  const Shares& should = expected;
  return arg.size() == should.size() && std::ranges::all_of(arg, [&](const auto& share) {
           return should.contains(share.first) &&
                  std::abs(should.at(share.first) - share.second) < 0.0021;
         });
}

TEST(Sample, draws_in_proportion_to_the_probabilities) {
  EXPECT_THAT(shares({}), AreAbout(Shares{{1, 0.5}, {3, 0.3}, {0, 0.2}}));
  const double norm = 0.25 + 0.09 + 0.04;
  EXPECT_THAT(shares({.temperature = 0.5}),
              AreAbout(Shares{{1, 0.25 / norm}, {3, 0.09 / norm}, {0, 0.04 / norm}}));
}

TEST(Sample, takes_the_likeliest_at_temperature_0_and_of_equal_ones_the_first) {
  EXPECT_THAT(shares({.temperature = 0}), AreAbout(Shares{{1, 1}}));
  EXPECT_EQ(sample(std::vector<real>{1, 2, 2, 0}, {.temperature = 0}, 0.99), 1);
  EXPECT_EQ(sample(std::vector<real>{1, 2, 2, 0}, {.top_k = 1}, 0.99), 1);
}

TEST(Sample, leaves_out_what_is_not_likely_enough) {
  EXPECT_THAT(shares({.top_k = 2}), AreAbout(Shares{{1, 0.625}, {3, 0.375}}));
  EXPECT_THAT(shares({.top_k = 9}), AreAbout(shares({})));
  EXPECT_THAT(shares({.top_p = 0.4}), AreAbout(Shares{{1, 1}}));
  EXPECT_THAT(shares({.top_p = 0.6}), AreAbout(Shares{{1, 0.625}, {3, 0.375}}));
  EXPECT_THAT(shares({.top_p = 0.9}), AreAbout(Shares{{1, 0.5}, {3, 0.3}, {0, 0.2}}));
  EXPECT_THAT(shares({.min_p = 0.55}), AreAbout(Shares{{1, 0.625}, {3, 0.375}}));
  EXPECT_THAT(shares({.min_p = 1}), AreAbout(Shares{{1, 1}}));
  EXPECT_THAT(shares({.top_k = 2, .top_p = 0.6}), AreAbout(Shares{{1, 1}}))
      << "of the two that are left the first has 0.625";
}

TEST(Sample, of_weights_that_diverged_draws_nothing) {
  std::vector<real> logits = kLogits;
  logits[2] = std::numeric_limits<real>::quiet_NaN();
  EXPECT_THROW(sample(logits, {}, 0.5), DataError);
  logits[2] = std::numeric_limits<real>::infinity();
  EXPECT_THROW(sample(logits, {.temperature = 0}, 0.5), DataError);
}

}  // namespace
}  // namespace difftape::run
