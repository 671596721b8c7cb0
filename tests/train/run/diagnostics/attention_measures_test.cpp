// Tests properties of the measures of any layer, and layers with known maps.
#include "train/run/diagnostics/attention_measures.h"

#include "tests/support/threads.h"
#include "tests/train/run/diagnostics/view.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/diagnostics/diagnose.h"
#include "train/run/diagnostics/map_scan.h"

namespace difftape::run {
namespace {

using test::view_of;

/// The measures of a layer by metric name without the prefix "attn/".
struct Measured : AttentionMeasures {
  explicit Measured(const AttentionView& view) : AttentionMeasures(measure_attention(view)) {}

  const double* find(const std::string& name) const {
    const auto found = std::ranges::find(metrics, "attn/" + name, &Metrics::value_type::first);
    return found == metrics.end() ? nullptr : &found->second;
  }
  double operator[](const std::string& name) const { return *find(name); }
};

/// Returns the mean of f(n) over queries that see n = 1 to `seq` keys.
template <class F>
double mean_over_queries(Index seq, F&& f) {
  double sum = 0;
  for (Index n = 1; n <= seq; ++n) sum += f(static_cast<double>(n));
  return sum / static_cast<double>(seq);
}

TEST(AttentionMeasures, of_uniform_attention_follow_from_the_number_of_keys) {
  AttentionView view = view_of(HeadMapping::standard(2, 1), 2, 64);
  view.q.fill(0);
  const Measured found(view);
  EXPECT_NEAR(found["first_token_mass"], mean_over_queries(64, [](double n) { return 1 / n; }),
              1e-12);
  EXPECT_NEAR(found["entropy"], mean_over_queries(64, [](double n) { return std::log(n); }), 1e-12);
  EXPECT_EQ(found["sink_rate"], 0);
  EXPECT_EQ(found["logit_max"], 0);
  for (Index j = 0; j < 64; ++j)
    EXPECT_NEAR(static_cast<double>(found.first_maps.row(63)[j]), 1.0 / 64, 1e-7);
}

TEST(AttentionMeasures, attention_to_token_1_alone_is_a_sink_without_entropy) {
  AttentionView view = view_of(HeadMapping::standard(2, 2), 1, 100);
  view.q.fill(1);
  view.k.fill(0);
  for (Index d = 0; d < 8; ++d) view.k.data()[d] = 100;  // token 1 of key head 0; head 1 is uniform
  const Measured found(view);
  EXPECT_NEAR(found["first_token_mass"],
              (1 + mean_over_queries(64, [](double n) { return 1 / n; })) / 2, 1e-12);
  EXPECT_NEAR(found["entropy"], mean_over_queries(100, [](double n) { return std::log(n); }) / 2,
              1e-12);
  EXPECT_EQ(found["sink_rate"], 0.5);
  EXPECT_NEAR(found["logit_max"], 800 / std::sqrt(8.0), 1e-4);
}

TEST(AttentionMeasures, first_token_mass_uses_the_first_64_tokens) {
  const AttentionView longer = view_of(HeadMapping::standard(2, 1), 1, 100);
  AttentionView first = longer;
  for (Tensor* of_all : {&first.q, &first.k, &first.context}) {
    const Shape shape = of_all->shape().with(1, 64);  // the first rows of the only sequence
    *of_all = Tensor::from(shape, of_all->values().first(static_cast<size_t>(shape.size())));
  }
  const Measured a(longer), b(first);
  EXPECT_EQ(a["first_token_mass"], b["first_token_mass"]);
  EXPECT_TRUE(std::ranges::equal(a.first_maps.values(), b.first_maps.values()));
  EXPECT_NE(a["entropy"], b["entropy"]);
}

TEST(AttentionMeasures, with_lambda_0_the_map_of_a_head_is_its_first_softmax) {
  const Measured two(view_of(HeadMapping::doubled(2, 1), 2, 70, 0));
  AttentionView plain = view_of(HeadMapping::doubled(2, 1), 2, 70, 0);
  plain.mapping.maps = 1;
  plain.lambda = Tensor();
  const Measured one(plain);
  EXPECT_NEAR(two["first_token_mass"], one["first_token_mass"], 1e-14);
  EXPECT_NEAR(two["entropy"], one["entropy"], 1e-13);
  EXPECT_EQ(two["map1/sink_rate"], one["sink_rate"]);
  EXPECT_GE(two["logit_max"], one["logit_max"]) << "pooled over both maps";
}

TEST(AttentionMeasures, use_capped_maps_and_uncapped_logits_with_a_soft_cap) {
  for (const HeadMapping& mapping : {HeadMapping::standard(2, 1), HeadMapping::doubled(2, 1)}) {
    AttentionView view = view_of(mapping, 1, 30), capped = view;
    capped.logit_softcap = 0.5;
    test::attend(capped);
    EXPECT_EQ(Measured(capped)["logit_max"], Measured(view)["logit_max"]);
    const Measured found(capped);
    EXPECT_NE(found["entropy"], Measured(view)["entropy"]);
    const auto heads = static_cast<Index>(mapping.outputs.size());
    for (Index head = 0; head < heads; ++head) {
      const MapRows rows(capped, 0, head);
      for (Index t = 0; t < 30; ++t) {
        Eigen::ArrayXd weights = rows.row(0, t).probabilities;
        EXPECT_NEAR(weights.sum(), 1, 1e-12);
        if (mapping.maps == 2) weights -= 0.5 * rows.row(1, t).probabilities;
        double context = 0;  // first feature of the context that the kernel computed
        for (Index s = 0; s <= t; ++s)
          context += weights[s] * static_cast<double>(capped.v.row(s * mapping.value_heads)[0]);
        EXPECT_NEAR(context, static_cast<double>(capped.context.row(t * heads + head)[0]), 1e-5);
      }
    }
  }
}

TEST(AttentionMeasures, equal_maps_and_lambda_1_leave_rows_of_zeros) {
  AttentionView view = view_of(HeadMapping::doubled(1, 1), 1, 10, 1);
  for (Index t = 0; t < 10; ++t) std::copy_n(view.q.data() + t * 16, 8, view.q.data() + t * 16 + 8);
  test::attend(view);
  const Measured found(view);
  EXPECT_EQ(found["first_token_mass"], 0);
  EXPECT_EQ(found["entropy"], 0);
  EXPECT_EQ(found["context_rms_max"], 0);
}

TEST(AttentionMeasures, rows_of_every_map_sum_to_1) {
  const Measured found(view_of(HeadMapping::doubled(2, 2), 1, 30));
  ASSERT_EQ(found.first_maps.shape(), (Shape{2, 3, 30, 30}));
  for (Index i = 0; i < 2 * 3 * 30; ++i) {
    double sum = 0;
    for (Index j = 0; j < 30; ++j) {
      sum += static_cast<double>(found.first_maps.row(i)[j]);
      EXPECT_TRUE(j <= i % 30 || found.first_maps.row(i)[j] == 0) << i << " " << j;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
}

/// Returns the largest RMS of the values that a query sees.
double largest_value(const AttentionView& view, Index b, Index t, Index head) {
  double largest = 0;
  for (Index j = 0; j <= t; ++j) {
    const real* v = view.v.row((b * view.v.shape()[1] + j) * view.mapping.value_heads + head);
    double squares = 0;
    for (Index d = 0; d < 8; ++d) squares += static_cast<double>(v[d]) * static_cast<double>(v[d]);
    largest = std::max(largest, std::sqrt(squares / 8));
  }
  return largest;
}

TEST(AttentionMeasures, context_stays_within_the_strict_bounds_of_real_values) {
  for (const double lambda : {0.0, 0.8, 1.7}) {
    const AttentionView view = view_of(HeadMapping::doubled(2, 1), 1, 40, lambda, 4);
    const Measured found(view);
    double bound = 0;
    for (Index t = 0; t < 40; ++t) bound = std::max(bound, largest_value(view, 0, t, 0));
    EXPECT_LE(found["context_rms_max"], (1 + lambda) * bound * (1 + 1e-6));
    EXPECT_GT(found["context_rms_max"], 0.5 * bound) << "the bound is near";
  }
}

TEST(AttentionMeasures, a_nan_makes_all_affected_measures_nan) {
  AttentionView view = view_of(HeadMapping::doubled(2, 2), 1, 20);
  view.q.data()[0] = std::numeric_limits<real>::quiet_NaN();  // A1 of head 0
  test::attend(view);
  const Measured found(view);
  for (const double value :
       {found["first_token_mass"], found["entropy"], found["sink_rate"], found["logit_max"],
        found["context_rms"], found["context_rms_max"], found["map1/sink_rate"]})
    EXPECT_TRUE(std::isnan(value));
  for (const double value : {found["map2/sink_rate"], found["lambda"]})
    EXPECT_TRUE(std::isfinite(value));
}

TEST(AttentionMeasures, an_infinite_logit_is_the_largest) {
  AttentionView view = view_of(HeadMapping::standard(1, 1), 1, 5);
  view.q.fill(1);
  std::fill_n(view.k.data(), 8, std::numeric_limits<real>::max());  // key of token 1
  view.scale = 1e300;
  const Measured found(view);
  EXPECT_TRUE(std::isinf(found["logit_max"]));
  EXPECT_TRUE(std::isnan(found["entropy"]));
}

TEST(AttentionMeasures, sparsity_is_the_fraction_of_pairs_without_weight) {
  AttentionView view = view_of(HeadMapping::standard(2, 2), 1, 100);
  view.q.fill(1);
  view.k.fill(0);
  EXPECT_EQ(Measured(view)["sparsity"], 0) << "no weight of 100 is below 0.01";
  for (Index d = 0; d < 8; ++d) view.k.data()[d] = 100;  // token 1 of key head 0
  const double pairs = 100 * 101 / 2, others = pairs - 100;
  EXPECT_NEAR(Measured(view)["sparsity"], others / (2 * pairs), 1e-12);
  view.q.data()[0] = std::numeric_limits<real>::quiet_NaN();
  EXPECT_TRUE(std::isnan(Measured(view)["sparsity"]));
}

TEST(AttentionMeasures, lambda_correlates_with_the_context_it_scales) {
  AttentionView view = view_of(HeadMapping::doubled(2, 1), 2, 40);
  EXPECT_FALSE(Measured(view).find("lambda_rms_correlation")) << "one lambda for all";
  view.lambda = test::drawn({2, 40, 2}, "lambda", 1);
  for (Index i = 0; i < view.context.size(); ++i)
    view.context.data()[i] = 3 - view.lambda.data()[i / 8];  // its RMS is |3 - lambda|
  EXPECT_NEAR(Measured(view)["lambda_rms_correlation"], -1, 1e-3);
  view.lambda.fill(0.5);
  EXPECT_TRUE(std::isnan(Measured(view)["lambda_rms_correlation"]));
}

TEST(AttentionMeasures, the_output_cosine_compares_heads_that_read_the_same_values) {
  const HeadMapping shared = HeadMapping::standard(4, 2), own = HeadMapping::standard(4, 4);
  Tensor weight = test::drawn({5, 4 * 3}, "W_O");
  EXPECT_FALSE(smallest_output_cosine(shared, {}));
  EXPECT_FALSE(smallest_output_cosine(own, weight));
  EXPECT_GT(smallest_output_cosine(shared, weight).value(), -0.9);
  for (Index row = 0; row < 5; ++row) {
    real* w = weight.data() + row * 12;
    for (Index d = 0; d < 3; ++d) w[9 + d] = -2 * w[6 + d];  // heads 2 and 3
  }
  EXPECT_NEAR(smallest_output_cosine(shared, weight).value(), -1, 1e-6);
  for (Index row = 0; row < 5; ++row) {
    real* w = weight.data() + row * 12;
    for (Index d = 0; d < 3; ++d) w[9 + d] = 0, w[3 + d] = w[6 + d];  // heads 1 and 2 share nothing
  }
  EXPECT_TRUE(std::isnan(smallest_output_cosine(shared, weight).value()));
}

TEST(AttentionMeasures, the_rounding_error_comes_from_rounded_operands) {
  AttentionView view = view_of(HeadMapping::doubled(2, 1), 2, 40);
  const double error = rounding_error(view);
  EXPECT_GT(error, 1e-4);
  EXPECT_LT(error, 3e-2);
  AttentionView one = view_of(HeadMapping::standard(1, 1), 1, 1);  // its map is exactly 1
  one.v.fill(1 + 1.0 / 512);                                       // rounds to 1
  EXPECT_NEAR(rounding_error(one), 1.0 / 513, 1e-6);
}

TEST(AttentionMeasures, are_defined_for_a_single_token) {
  const Measured found(view_of(HeadMapping::standard(1, 1), 1, 1));
  EXPECT_EQ(found["first_token_mass"], 1);
  EXPECT_EQ(found["entropy"], 0);
  EXPECT_EQ(found.first_maps.shape(), (Shape{1, 1, 1, 1}));
}

TEST(AttentionMeasures, have_the_same_bits_for_every_number_of_threads) {
  AttentionView view = view_of(HeadMapping::doubled(4, 2), 3, 90);
  std::vector<Metrics> found;
  for (const int threads : {1, 2, 5}) {
    const test::Threads use(threads);
    found.push_back(measure_attention(view).metrics);
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

/// Returns the rounding error of attention over eight sequences whose queries and keys have the
/// standard deviation `std`.
double error_of(const HeadMapping& mapping, double std, double lambda = 0.5) {
  constexpr Index kRows = 8, kTokens = 64;
  return rounding_error(test::view_of(mapping, kRows, kTokens, lambda, std));
}

// The V2 article claims "less attention rounding error". The difference of maps itself rounds no
// better, since it loses digits; only smaller logits reduce the error.
TEST(V2Article, a_difference_of_maps_rounds_no_better_at_the_same_logits) {
  const HeadMapping one = HeadMapping::standard(2, 1), two = HeadMapping::doubled(2, 1);
  for (const double std : {0.5, 1.5, 3.0}) {
    EXPECT_GT(error_of(two, std), error_of(one, std)) << "queries of " << std;
    EXPECT_GT(error_of(two, std, 0.9), error_of(two, std, 0.1))
        << "a larger lambda loses more digits";
  }
  EXPECT_LT(error_of(two, 0.5), error_of(two, 3.0)) << "smaller logits, smaller error";
}

// V2 article: a transformer with twice the heads could learn W_O(2i) = -W_O(2i+1), but does not.
TEST(V2Article, twice_the_heads_do_not_learn_opposite_output_projections) {
  TinyProject project("softmax_2h");
  project.config.model.num_heads = 2;
  project.config.model.num_kv_heads = 1;
  project.config.train.steps = 300;
  project.config.train.eval_interval = 0;
  project.save();
  ASSERT_EQ(project.train("out"), system::Exit::ok);
  const auto lines = metrics_lines(project / "out");
  const auto loss = [](const auto& line) { return line.at("train/loss").template get<double>(); };
  EXPECT_LT(loss(lines.back()), loss(lines.front()) - 0.5) << "the model has learned";
  for (const char* layer : {"attn/output_cosine/0", "attn/output_cosine/1"})
    EXPECT_GT(lines.back().at(layer).get<double>(), -0.5);  // opposite projections have -1
}

}  // namespace
}  // namespace difftape::run
