// Tests that loss and gradients of a step are means over its scored tokens, however the step is cut
// into micro-batches and leaves.
#include "tests/train/run/loop/mpirun.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/leaves.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

/// Returns the sum of the losses of the scored targets, computed in double from the logits of one
/// sequence at a time, and adds their number to `count`.
double summed_loss(TrainState& state, const Batch& batch, Index& count) {
  double sum = 0;
  for (Index b = 0; b < batch.batch; ++b) {
    const Batch row = batch.rows({b, b + 1});
    const std::vector<std::int32_t> inputs = row.inputs(), targets = row.targets();
    Tape tape(Tape::Mode::inference);
    const auto found = state.model.loss_and_logits(tape, {inputs, 1, row.seq, nullptr}, targets);
    const Tensor& logits = found.logits.value();
    for (Index t = 0; t < row.seq; ++t) {
      if (targets[t] == kIgnoreIndex) continue;
      double total = 0;
      for (Index v = 0; v < logits.shape().last(); ++v)
        total += std::exp(static_cast<double>(logits.row(t)[v]));
      sum += std::log(total) - static_cast<double>(logits.row(t)[targets[t]]);
      ++count;
    }
  }
  return sum;
}

/// Loss and gradients of a step.
struct StepResult {
  double loss = 0;
  std::vector<Tensor> gradients;
};

StepResult step_of(TrainState& state, const MicroBatches& batches) {
  StepResult result{accumulate_gradients(state, batches).loss, {}};
  for (const Parameter& p : state.model.parameters()) result.gradients.push_back(p.grad.clone());
  return result;
}

/// Returns loss and gradients of all sequences of a step in one batch, on one tape.
StepResult in_one_batch(TrainState& state, Index micros) {
  Batch all = state.data->train_batch(0, 0);
  for (Index micro = 1; micro < micros; ++micro) {
    const Batch more = state.data->train_batch(0, micro);
    all.batch += more.batch;
    all.tokens.insert(all.tokens.end(), more.tokens.begin(), more.tokens.end());
    all.scored.insert(all.scored.end(), more.scored.begin(), more.scored.end());
  }
  for (Parameter& p : state.model.parameters()) p.zero_grad();
  Tape tape;
  LossTerms terms;
  tape.backward(state.loss(tape, all, &terms), Tensor::scalar(1));
  StepResult result{static_cast<double>(terms.cross_entropy), {}};
  for (const Parameter& p : state.model.parameters()) result.gradients.push_back(p.grad.clone());
  return result;
}

void expect_near(const StepResult& a, const StepResult& b) {
  EXPECT_NEAR(a.loss, b.loss, 2e-6 * b.loss);
  ASSERT_EQ(a.gradients.size(), b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) {
    double largest = 0, difference = 0;
    for (size_t k = 0; k < b.gradients[i].values().size(); ++k) {
      const auto x = static_cast<double>(a.gradients[i].values()[k]);
      const auto y = static_cast<double>(b.gradients[i].values()[k]);
      largest = std::max(largest, std::abs(y));
      difference = std::max(difference, std::abs(x - y));
    }
    EXPECT_LT(difference, 2e-5 * largest) << i;
  }
}

struct OneLoss : testing::TestWithParam<DataKind> {
  TinyProject project{"diff_v2"};

  OneLoss() {
    DataConfig& data = project.config.data;
    data.type = GetParam();
    data.seq_len = project.config.model.max_seq_len = 32;
    project.config.model.vocab_size = 256;
    if (data.type == DataKind::text) return;
    if (data.type != DataKind::tokens) data.path = {};
    data.needles.facts = {2, 4};
    data.needles.queries = {1, 3};
    if (data.type != DataKind::tokens) return;
    std::string tokens;
    for (const char byte : test::tiny_text()) tokens += {byte, '\0'};
    put(project / "text.bin", tokens);
    data.path = {(project / "text.bin").string()};
  }
  /// Returns the state of a step of 16 sequences in this many micro-batches.
  TrainState state_of(Index micros) const {
    Config config = project.config;
    config.data.batch_size = 16 / micros;
    config.train.gradient_accumulation_steps = micros;
    return TrainState(config);
  }
};

TEST_P(OneLoss, is_the_mean_over_the_scored_tokens_of_a_step_for_every_cut) {
  TrainState whole = state_of(1);
  Index scored = 0;
  const double loss = summed_loss(whole, whole.data->train_batch(0, 0), scored);
  const StepResult expected = in_one_batch(whole, 1);
  EXPECT_NEAR(expected.loss, loss / static_cast<double>(scored), 1e-5);
  for (const Index micros : {1, 2, 4, 8, 16}) {
    TrainState state = state_of(micros);
    SCOPED_TRACE(micros);
    expect_near(step_of(state, batches_of(state, 1)), expected);
  }
}

INSTANTIATE_TEST_SUITE_P(Data, OneLoss,
                         testing::Values(DataKind::text, DataKind::tokens, DataKind::needles,
                                         DataKind::mqar, DataKind::backcopy),
                         [](const auto& of) { return std::string(to_string(of.param)); });

TEST(OneLossOfNeedles, has_unequal_counts_of_scored_tokens) {
  Config config = TinyProject().config;
  config.data.type = DataKind::needles;
  config.data.seq_len = 32;
  config.data.batch_size = 4;
  config.data.needles.facts = {2, 4};
  config.data.needles.queries = {1, 3};
  const auto data = make_dataset(config.data, config.model, 1, 4);
  std::set<Index> counts;
  for (Index micro = 0; micro < 4; ++micro)
    counts.insert(data->train_batch(0, micro).scored_targets());
  EXPECT_GT(counts.size(), 1u);
}

TEST(MicroBatches, without_a_scored_target_do_not_count) {
  TinyProject project;
  project.config.data.batch_size = 2;
  project.config.train.gradient_accumulation_steps = 2;
  std::vector<Batch> batches;
  for (const std::uint8_t scored : {1, 0}) {
    Batch batch{2, 16, std::vector<std::int32_t>(34, 65 + scored)};
    batch.scored.assign(32, scored);
    batches.push_back(batch);
  }
  TrainState state(project.config, std::make_unique<FixedBatches>(batches, 256));
  const StepResult both = step_of(state, batches_of(state, 1));
  expect_near(both, in_one_batch(state, 1));
}

/// Runs of several processes on a task whose micro-batches have unequal counts.
struct OneLossTogether : test::Mpirun {};

TEST_F(OneLossTogether, has_the_bits_of_one_process) {
  Config& config = project.config;
  config.data.type = DataKind::needles;
  config.data.path = {};
  config.data.seq_len = 32;
  config.data.batch_size = 3;
  config.data.needles.facts = {2, 4};
  config.data.needles.queries = {1, 3};
  config.model.max_seq_len = 32;
  config.train.eval_batches = config.train.final_eval_batches = 7;
  expect_the_bits_of_one(3);
}

}  // namespace
}  // namespace difftape::run
