// Compares generation with sampling that reads all tokens again at every step, without a cache.
#include "train/run/inference/generate.h"

#include "tests/support/threads.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/inference/model.h"

namespace difftape::run {
namespace {

struct Generate : testing::Test {
  Generate() {
    project.config.model.max_seq_len = 64;
    EXPECT_EQ(project.train("run"), system::Exit::ok);
    named = open_model(project / "run");
  }

  /// Generates without a cache.
  std::vector<std::int32_t> by_hand(Index tokens) {
    std::vector<std::int32_t> all = request.prompt, written;
    const RandomStream numbers(request.seed, fmt::format("generate/{}", request.stream));
    while (std::ssize(written) < tokens) {
      Tape tape(Tape::Mode::inference);
      const Tensor logits = named.model->logits(tape, {all, 1, std::ssize(all)}).value();
      const std::span<const real> last(logits.row(std::ssize(all) - 1), 256);
      written.push_back(sample(last, request.sampling, numbers.uniform(written.size())));
      all.push_back(written.back());
    }
    return written;
  }

  TinyProject project{"diff_v2"};
  NamedModel named;
  GenerateRequest request{.prompt = {'t', 'h', 'e', ' '}, .max_tokens = 30};
};

TEST_F(Generate, equals_sampling_without_a_cache) {
  for (const double temperature : {0.0, 0.7}) {
    request.sampling.temperature = temperature;
    const Generated text = generate(*named.model, request);
    EXPECT_EQ(text.tokens, by_hand(30));
    EXPECT_EQ(text.finish_reason, FinishReason::length);
  }
}

TEST_F(Generate, equals_sampling_without_a_cache_for_shared_keys_and_values) {
  project.config.model.num_layers = 3;
  project.config.model.yoco_self_layers = 1;
  project.config.model.attention.sliding_window = 3;
  ASSERT_EQ(project.train("yoco"), system::Exit::ok);
  named = open_model(project / "yoco");
  EXPECT_EQ(generate(*named.model, request).tokens, by_hand(30));
}

TEST_F(Generate, depends_on_seed_and_stream_but_not_on_threads) {
  const auto text = [&](std::uint64_t seed, std::uint64_t stream) {
    request.seed = seed;
    request.stream = stream;
    return generate(*named.model, request).tokens;
  };
  const auto first = text(1, 0);
  EXPECT_NE(text(2, 0), first);
  EXPECT_NE(text(1, 1), first);
  for (const int threads : {1, 2, 3}) {
    const test::Threads scope(threads);
    EXPECT_EQ(text(1, 0), first);
  }
}

TEST_F(Generate, ends_at_a_stop_at_the_context_or_when_cancelled) {
  request.sampling.temperature = 0;
  const std::vector<std::int32_t> all = generate(*named.model, request).tokens;
  request.is_stop = [&](std::span<const std::int32_t> written) {
    return written.size() > 1 && written[written.size() - 2] == all[4] && written.back() == all[5];
  };
  Generated text = generate(*named.model, request);
  EXPECT_EQ(text.finish_reason, FinishReason::stop);
  ASSERT_GE(text.tokens.size(), 2u);
  EXPECT_EQ(text.tokens.back(), all[5]);
  request.is_stop = GenerateRequest{}.is_stop;
  request.eos_token_id = all[0];
  text = generate(*named.model, request);
  EXPECT_THAT(text.tokens, ElementsAre(all[0]));
  EXPECT_EQ(text.finish_reason, FinishReason::stop);
  request.eos_token_id = -1;
  request.max_tokens = std::numeric_limits<Index>::max();
  text = generate(*named.model, request);
  EXPECT_EQ(text.finish_reason, FinishReason::context);
  EXPECT_EQ(text.tokens.size(), 64u - 4 + 1) << "the last one needs no position";
  Index seen = 0;
  request.on_token = [&](std::int32_t) { return ++seen < 3; };
  text = generate(*named.model, request);
  EXPECT_EQ(text.finish_reason, FinishReason::cancelled);
  EXPECT_EQ(text.tokens.size(), 3u);
}

TEST_F(Generate, samples_only_known_tokens) {
  request.sampling.temperature = 100;
  request.known = 'e';
  for (const std::int32_t token : generate(*named.model, request).tokens) EXPECT_LT(token, 'e');
}

TEST_F(Generate, rejects_prompts_that_the_model_cannot_read) {
  request.prompt = {};
  EXPECT_THROW(generate(*named.model, request), DataError);
  request.prompt = {1, 256};
  EXPECT_THROW(generate(*named.model, request), DataError);
  request.prompt.assign(65, 'x');
  EXPECT_THROW(generate(*named.model, request), DataError);
  request.prompt.assign(64, 'x');
  EXPECT_EQ(generate(*named.model, request).tokens.size(), 1u);
}

/// Logits with softmax 0.2, 0.5, 0, 0.3.
const std::vector<real> kLogits{static_cast<real>(std::log(0.2)), static_cast<real>(std::log(0.5)),
                                real(-80), static_cast<real>(std::log(0.3))};

/// Returns the fraction of 1000 evenly spaced numbers that samples each token.
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

TEST(Sample, samples_in_proportion_to_the_probabilities) {
  EXPECT_THAT(shares({}), AreAbout(Shares{{1, 0.5}, {3, 0.3}, {0, 0.2}}));
  const double norm = 0.25 + 0.09 + 0.04;
  EXPECT_THAT(shares({.temperature = 0.5}),
              AreAbout(Shares{{1, 0.25 / norm}, {3, 0.09 / norm}, {0, 0.04 / norm}}));
}

TEST(Sample, is_greedy_at_temperature_0_with_ties_to_the_first) {
  EXPECT_THAT(shares({.temperature = 0}), AreAbout(Shares{{1, 1}}));
  EXPECT_EQ(sample(std::vector<real>{1, 2, 2, 0}, {.temperature = 0}, 0.99), 1);
  EXPECT_EQ(sample(std::vector<real>{1, 2, 2, 0}, {.top_k = 1}, 0.99), 1);
}

TEST(Sample, drops_tokens_by_top_k_top_p_and_min_p) {
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

TEST(Sample, rejects_logits_that_are_not_finite) {
  std::vector<real> logits = kLogits;
  logits[2] = std::numeric_limits<real>::quiet_NaN();
  EXPECT_THROW(sample(logits, {}, 0.5), DataError);
  logits[2] = std::numeric_limits<real>::infinity();
  EXPECT_THROW(sample(logits, {.temperature = 0}, 0.5), DataError);
}
}  // namespace
}  // namespace difftape::run
