#include "train/app/scaling.h"

#include "core/parallel.h"
#include "layers/cost.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step_memory.h"

namespace difftape::app {
namespace {

using testing::FieldsAre;

/// Three parameters of 12, 8 and 4 elements, of which the first is the embedding.
ParameterSet three() {
  ParameterSet parameters;
  parameters.declare("embed", {3, 4}, Role::embedding, Init::constant(0));
  parameters.declare("matrix", {2, 4}, Role::projection, Init::constant(0));
  parameters.declare("norm", {4}, Role::norm_weight, Init::constant(0));
  return parameters;
}

TEST(Scaling, counts_the_gradients_of_ranges_that_are_not_aligned) {
  EXPECT_EQ(most_gradients(1, 1), 1);
  EXPECT_EQ(most_gradients(8, 1), 4);
  EXPECT_EQ(most_gradients(8, 8), 1);
  EXPECT_EQ(most_gradients(16, 3), 4) << "leaves 11, 12 and 13, 14 and the next";
}

TEST(Scaling, traffic_of_two_processes_is_the_lower_bound_if_they_own_halves) {
  EXPECT_THAT(traffic_of(three(), {}, 4, 2), FieldsAre(12, 12, 12, 24, 12, 12));
  EXPECT_THAT(traffic_of(three(), {}, 4, 1), FieldsAre(0, 0, 0, 0, 24, 0));
}

// Process 0 owns the embedding, 1 the matrix, 2 the norm, and each sends one sum of gradients.
TEST(Scaling, traffic_of_three_processes_is_limited_by_the_owner_of_the_largest_parameter) {
  EXPECT_THAT(traffic_of(three(), {}, 4, 3), FieldsAre(24, 24, 24, 36, 12, 24));
}

// Leaves 4 to 6 are the sums of two aligned ranges, which process 1 sends separately.
TEST(Scaling, traffic_counts_every_aligned_range) {
  EXPECT_THAT(traffic_of(three(), {}, 7, 2), FieldsAre(24, 24, 12, 36, 12, 24));
}

/// An embedding of 64 blocks and a matrix of 16.
ParameterSet large() {
  ParameterSet parameters;
  parameters.declare("embed", {64, kElementGrain}, Role::embedding, Init::constant(0));
  parameters.declare("matrix", {16, kElementGrain}, Role::projection, Init::constant(0));
  return parameters;
}

TEST(Scaling, processes_own_equal_pieces_of_a_large_parameter) {
  const double block = kElementGrain, all = 80 * block;
  EXPECT_THAT(traffic_of(large(), {}, 4, 4),
              FieldsAre(60 * block, 48 * block, 60 * block, 120 * block, 20 * block, 60 * block));
  EXPECT_EQ(traffic_of(large(), {}, 80, 80).owned, block);
  EXPECT_EQ(traffic_of(large(), {.name = OptimizerKind::muon}, 80, 80).owned, 16 * block)
      << "muon needs whole matrices";
  EXPECT_EQ(traffic_of(large(), {.name = OptimizerKind::muon}, 4, 4).owned, all / 4)
      << "processes without a matrix own more of the embedding";
}

// A leaf takes 3 s, of which 2 are backward; an element takes 1/4 s, a message 0.1 s.
TEST(Scaling, seconds_of_a_step_are_those_computed_by_hand) {
  const ClusterSpeed speed{2e9, 4 * sizeof(real), 0.1};
  const auto exchange = [&](const Traffic& traffic, Index processes) {
    return predict(traffic, 4, processes, 6e9, speed).exchange;
  };
  EXPECT_DOUBLE_EQ(exchange({.gradients = 12, .last_gradients = 2, .weights = 8}, 2),
                   (3 - 2) + 2 + 5 * 0.1);
  EXPECT_DOUBLE_EQ(exchange({.gradients = 12, .last_gradients = 6, .weights = 8}, 2),
                   1.5 + 2 + 5 * 0.1);
  EXPECT_DOUBLE_EQ(exchange({.gradients = 4, .last_gradients = 1, .weights = 8}, 3),
                   0.25 + 2 + 8 * 0.1);
  EXPECT_DOUBLE_EQ(predict({}, 4, 1, 6e9, speed).seconds(), 12);
  EXPECT_DOUBLE_EQ(predict({}, 4, 2, 6e9, speed).compute, 6);
  EXPECT_DOUBLE_EQ(predict({}, 4, 3, 6e9, speed).compute, 6) << "one process has two leaves";
}

TEST(Scaling, table_divides_the_moments_and_adds_received_gradients) {
  run::Config config = TinyProject().config;
  config.train.gradient_accumulation_steps = 2;  // of two sequences, each a leaf
  config.model.d_model = 128;
  const ModelCost cost = model_cost(config.model, 16);
  const double flops = 64 * cost.train_flops_per_token;
  const std::vector<Index> counts{1, 2};
  const auto rows = scaling_table(config, counts, {flops / 8, 1e12, 0}).rows;
  ASSERT_EQ(rows.size(), 2u);
  const double all = static_cast<double>(run::step_memory(config).total()) / 1e6;
  EXPECT_THAT(rows[0],
              ElementsAre("1", "8", "8", "0", "8", "100.0 %", fmt::format("{:.1f}", all), "0.0"));
  EXPECT_EQ(rows[1][2], "4");
  const LanguageModel model(config.model);
  const run::StepMemory whole = run::step_memory(config);
  const double number = sizeof(real) / 1e6, count = static_cast<double>(model.parameters().count()),
               owned = traffic_of(model.parameters(), config.optim, 4, 2).owned;
  EXPECT_NEAR(owned / count, 0.5, 0.05);
  EXPECT_NEAR(std::stod(rows[1][6]),
              all - static_cast<double>(whole.moments) / 1e6 + (2 * owned - count + owned) * number,
              0.06)
      << "one sum less, half the moments, and gradients of the other process";
  EXPECT_NEAR(std::stod(rows[1][4]), 16, 0.1);
}

TEST(Scaling, rate_is_measured_in_real_steps) {
  EXPECT_GT(measured_flops(TinyProject().config), 1e6);
  run::Config config = TinyProject().config;
  config.data.batch_size = Index{1} << 30;
  EXPECT_THAT(
      [&] { measured_flops(config); },
      ThrowsMessage<ConfigError>(HasSubstr("; or give --rate, so that nothing is measured")));
}

TEST(Scaling, impossible_clusters_are_errors) {
  const TinyProject project;
  const auto error = [&](const Words& more, int exit) {
    const Outcome outcome = project.difftape(test::joined({"plan", "tiny.yaml"}, more));
    EXPECT_EQ(outcome.exit, exit) << outcome.out << outcome.err;
    return outcome.err;
  };
  const Words one{"--processes", "1", "--rate", "5"};
  EXPECT_THAT(error({"--processes", "9", "--rate", "5"}, 78), HasSubstr("start at most"));
  EXPECT_THAT(error({"--processes", "0", "--rate", "5"}, 64),
              HasSubstr("--processes: expected a number from 1 to 1048576, got '0'"));
  EXPECT_THAT(error(test::joined(one, {"--bandwidth", "-1"}), 64),
              HasSubstr("--bandwidth: must be above 0 and at most 1e9 GB/s, but is -1"));
  EXPECT_THAT(error(test::joined(one, {"--latency", "nan"}), 64), HasSubstr("--latency: must be"));
  EXPECT_THAT(error({"--processes", "1", "--rate", "0"}, 64), HasSubstr("--rate: must be above 0"));
  EXPECT_THAT(error({"--rate", "5"}, 64), HasSubstr("--processes"));
  EXPECT_THAT(error(test::joined(one, {"--kinds", "softmax"}), 64), HasSubstr("--kinds"));
}

}  // namespace
}  // namespace difftape::app
