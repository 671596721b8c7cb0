// Tests how a step is cut into leaves, and that its loss and gradients keep their meaning.
#include "train/run/loop/leaves.h"

#include "optim/grad_norm.h"
#include "tests/train/run/loop/tiny.h"
#include "tests/train/run/loop/uneven_batch.h"
#include "train/run/loop/data_parallel.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

using test::uneven_batch;

constexpr Index kSmall = 67'000;

Index leaves(Index batch_size, Index micros, Index parameters = kSmall, Index seq_len = 256) {
  Config config;
  config.data.batch_size = batch_size;
  config.data.seq_len = seq_len;
  config.train.gradient_accumulation_steps = micros;
  return leaves_per_micro_batch(config, parameters);
}

TEST(Leaves, are_eight_per_step_if_it_has_as_many_sequences) {
  EXPECT_EQ(leaves(16, 1), 8);
  EXPECT_EQ(leaves(8, 1), 8);
  EXPECT_EQ(leaves(3, 1), 3);
  EXPECT_EQ(leaves(16, 2), 4);
  EXPECT_EQ(leaves(16, 3), 3) << "nine";
  EXPECT_EQ(leaves(2, 3), 2);
  EXPECT_EQ(leaves(16, 8), 1);
  EXPECT_EQ(leaves(16, 100), 1);
}

TEST(Leaves, of_a_large_model_have_at_least_1024_tokens) {
  EXPECT_EQ(leaves(8, 1, 4'000'000), 8);
  EXPECT_EQ(leaves(8, 1, 4'000'001), 2);
  EXPECT_EQ(leaves(64, 1, 11'000'000), 8);
  EXPECT_EQ(leaves(3, 1, 11'000'000, 1000), 1) << "one sequence is too short, and two are left";
  EXPECT_EQ(leaves(3, 1, 11'000'000, 1024), 3);
  EXPECT_EQ(leaves(1, 1, 11'000'000, 16), 1);
}

TEST(Leaves, are_whole_micro_batches_if_routers_have_a_loss) {
  Config config;
  EXPECT_EQ(leaves_per_micro_batch(config, kSmall), 8);
  config.model.moe.router_bias_update_rate = 0.01;
  EXPECT_EQ(leaves_per_micro_batch(config, kSmall), 8);
  for (double MoeConfig::*coefficient :
       {&MoeConfig::router_aux_loss_coef, &MoeConfig::router_z_loss_coef}) {
    Config with = config;
    with.model.moe.*coefficient = 0.01;
    EXPECT_EQ(leaves_per_micro_batch(with, kSmall), 1);
  }
}

TEST(Leaves, contain_each_sequence_once_and_weigh_as_much_as_their_scored_targets) {
  const Batch batch = uneven_batch(5);
  Batch joined;
  std::vector<double> weights;
  for (Index i = 0; i < 3; ++i) {
    const Leaf leaf = leaf_of(batch, 3, i);
    EXPECT_EQ(leaf.batch.seq, 16);
    joined.batch += leaf.batch.batch;
    joined.tokens.insert(joined.tokens.end(), leaf.batch.tokens.begin(), leaf.batch.tokens.end());
    joined.scored.insert(joined.scored.end(), leaf.batch.scored.begin(), leaf.batch.scored.end());
    weights.push_back(leaf.weight);
  }
  EXPECT_EQ(joined.batch, 5);
  EXPECT_EQ(joined.tokens, batch.tokens);
  EXPECT_EQ(joined.scored, batch.scored);
  EXPECT_THAT(weights, ElementsAre(0.1, 0.5, 0.4)) << "of rows 0 and 1, 2 and 3, 4";
}

TEST(Leaves, weigh_nothing_without_a_scored_target) {
  const Leaf first = leaf_of(uneven_batch(5), 5, 0);
  EXPECT_EQ(first.weight, 0);
  EXPECT_EQ(first.batch.scored_targets(), 16) << "its forward pass has a loss";
  Batch none = uneven_batch(1);
  EXPECT_EQ(leaf_of(none, 1, 0).weight, 0);
  EXPECT_EQ(leaf_of(none, 1, 0).batch.scored_targets(), 16);
}

/// Returns loss and gradients of the whole micro-batches, without leaves. Both are means over the
/// scored tokens of all of them.
double whole_step(TrainState& state, const std::vector<Batch>& batches,
                  std::vector<Tensor>& gradients) {
  double loss = 0, scored = 0;
  for (const Batch& batch : batches) scored += static_cast<double>(batch.scored_targets());
  for (Parameter& p : state.model.parameters()) p.zero_grad();
  for (const Batch& batch : batches) {
    Tape tape;
    LossTerms terms;
    const Var mean = state.loss(tape, batch, &terms);
    const double weight = static_cast<double>(batch.scored_targets()) / scored;
    tape.backward(mean, Tensor::scalar(static_cast<real>(weight)));
    loss += weight * static_cast<double>(terms.cross_entropy);
  }
  for (const Parameter& p : state.model.parameters()) gradients.push_back(p.grad.clone());
  return loss;
}

TEST(Leaves, leave_the_loss_and_the_gradients_of_a_step) {
  for (const bool has_documents : {false, true}) {
    TinyProject project("diff_v2");
    project.config.data.batch_size = 5;
    project.config.train.gradient_accumulation_steps = 2;
    project.config.model.z_loss_weight = has_documents ? 0 : 0.1;
    std::vector<Batch> batches{uneven_batch(5), uneven_batch(5)};
    batches[1].scored.clear();
    if (has_documents) {
      project.config.data.eos_token_id = 7;
      for (Batch& batch : batches)
        for (size_t i = 3; i < batch.tokens.size(); i += 5) batch.tokens[i] = 7;
      ASSERT_NE(batches[0].document_offsets(7)->at(15), 0);
    }
    TrainState state(project.config, std::make_unique<FixedBatches>(batches, 256));
    std::vector<Tensor> expected;
    const double loss = whole_step(state, batches, expected);
    const StepTerms terms = accumulate_gradients(state, batches_of(state, 1));
    EXPECT_NEAR(terms.loss, loss, 1e-6 * loss);
    EXPECT_GT(terms.squared_log_z, 1);
    size_t i = 0;
    for (const Parameter& p : state.model.parameters()) {
      double largest = 0, difference = 0;
      for (size_t k = 0; k < p.grad.values().size(); ++k) {
        const auto was = static_cast<double>(expected[i].values()[k]);
        largest = std::max(largest, std::abs(was));
        difference = std::max(difference, std::abs(was - static_cast<double>(p.grad.values()[k])));
      }
      EXPECT_GT(largest, 1e-5) << p.name;
      EXPECT_LT(difference, 1e-5 * largest) << p.name;
      ++i;
    }
  }
}

TEST(Leaves, leave_what_observers_of_a_step_see) {
  TinyProject project("diff_v2");
  project.config.model.moe = test::every_part_of_moe();
  project.config.model.moe.router_aux_loss_coef = project.config.model.moe.router_z_loss_coef = 0;
  project.config.model.attention.qk_clip_threshold = 0.05;
  project.config.data.batch_size = 5;
  const Batch batch = uneven_batch(5);
  TrainState state(project.config, std::make_unique<FixedBatches>(std::vector{batch}, 256));
  {
    Tape tape;
    state.loss(tape, batch, nullptr, state.step_observer());
    state.balancer->end_pass();
  }
  const std::vector<Index> loads = state.balancer->loads();
  const double largest = state.qk_clip->seen().largest;
  accumulate_gradients(state, batches_of(state, 1));
  EXPECT_EQ(state.balancer->loads(), loads) << "also of the row without a scored target";
  EXPECT_EQ(std::accumulate(loads.begin(), loads.end(), Index{0}), 2 * 2 * 5 * 16);
  EXPECT_NEAR(state.qk_clip->seen().largest, largest, 1e-5 * std::abs(largest));
}

TEST(Leaves, of_a_step_without_any_scored_target_are_an_error) {
  TinyProject project;
  Batch none = uneven_batch(2);
  std::ranges::fill(none.scored, 0);
  TrainState state(project.config, std::make_unique<FixedBatches>(std::vector{none}, 256));
  EXPECT_THAT([&] { train_step(state); },
              ThrowsMessage<DataError>("all targets of a step are ignored; need at least one"));
}

/// Returns the error of starting so many processes.
std::string refusal(const Config& config, Index processes) {
  return message_of<ConfigError>([&] { require_shares(config, processes); });
}

TEST(RequireShares, names_the_most_processes_and_the_nearest_keys_that_allow_more) {
  Config config = TinyProject().config;
  config.data.batch_size = 16;
  require_shares(config, 8);
  EXPECT_EQ(refusal(config, 9),
            "data.batch_size: a step has 16 sequences, which at most 8 processes can share, but 9 "
            "were started; start at most 8, or set train.gradient_accumulation_steps to 16 and "
            "data.batch_size to 1, for the same 16 sequences per step");
  config.data.batch_size = 2;
  require_shares(config, 2);
  EXPECT_THAT(refusal(config, 3), EndsWith("start at most 2, or set "
                                           "train.gradient_accumulation_steps to 2, for 4 "
                                           "sequences per step"));
}

TEST(RequireShares, names_settings_that_are_enough) {
  Config config = TinyProject().config;
  static const std::regex both(
      "steps to (\\d+) and data.batch_size to (\\d+), for the same (\\d+)"),
      more("steps to (\\d+), for (\\d+)");
  for (const bool has_loss : {false, true}) {
    config.model.moe = has_loss ? test::every_part_of_moe() : MoeConfig();
    for (const auto& [batch, micros, processes] :
         {std::array<Index, 3>{16, 1, 24}, {24, 1, 12}, {4, 2, 9}, {6, 2, 12}, {7, 1, 14}}) {
      config.data.batch_size = batch;
      config.train.gradient_accumulation_steps = micros;
      const std::string text = refusal(config, processes);
      EXPECT_EQ(text.find("losses of routers need whole micro-batches") != text.npos, has_loss);
      std::smatch found;
      Config wanted = config;
      if (std::regex_search(text, found, both)) {
        wanted.data.batch_size = std::stoll(found[2]);
        EXPECT_EQ(std::stoll(found[3]), batch * micros);
      } else {
        ASSERT_TRUE(std::regex_search(text, found, more)) << text;
        EXPECT_EQ(std::stoll(found[2]), batch * std::stoll(found[1]));
      }
      wanted.train.gradient_accumulation_steps = std::stoll(found[1]);
      EXPECT_NO_THROW(require_shares(wanted, processes)) << text;
    }
  }
}

}  // namespace
}  // namespace difftape::run
