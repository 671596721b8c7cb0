// Observers see the tensors that the layers computed and change nothing.
#include "layers/language_model.h"
#include "tests/layers/attention_layer.h"

namespace difftape {
namespace {

using test::same;

struct Seen : Observer {
  void attention(Index layer, const AttentionView& view) override {
    order.push_back(fmt::format("attention {}", layer));
    views.push_back(view);
  }
  void hidden(Index layer, const Tensor& x) override {
    order.push_back(fmt::format("hidden {}", layer));
    states.push_back(x);
  }
  std::vector<std::string> order;
  std::vector<AttentionView> views;
  std::vector<Tensor> states;
};

TEST(Observer, sees_the_operands_and_the_result_of_the_attention_of_every_variant) {
  const Tensor x = test::random({2, 70, 6}, "x");
  for (ModelConfig config : test::variants()) {
    config.attention.sliding_window = 40;
    test::Layer layer(config);
    Tape tape(Tape::Mode::inference);
    Seen seen;
    const Var y = layer.attention(tape.constant(x), {.observer = &seen});
    EXPECT_TRUE(same(y.value(), layer.forward(x))) << "looking changes nothing";
    ASSERT_EQ(seen.views.size(), 1u);
    const AttentionView& view = seen.views[0];
    EXPECT_EQ(view.visible.sliding_window, 40);
    const Tensor context = attention_forward(view).out;
    ASSERT_EQ(view.context.shape(), context.shape());
    EXPECT_EQ(same(view.context, context), !view.gated) << config.attention.kind.name();
  }
}

TEST(Observer, sees_the_input_of_the_norm_or_the_output_of_the_gate) {
  const Tensor x = test::random({1, 5, 6}, "x");
  ModelConfig config = test::layer_config("gated");
  for (const bool norm : {false, true}) {
    config.attention.subln = norm;
    test::Layer layer(config);
    layer.weight("gate_proj.weight").fill(0);  // sigmoid(0): half of it
    Tape tape(Tape::Mode::inference);
    Seen seen;
    layer.attention(tape.constant(x), {.observer = &seen});
    const AttentionView& view = seen.views[0];
    EXPECT_EQ(view.gated, !norm);
    const Tensor context = attention_forward(view).out;
    for (Index i = 0; i < context.size(); ++i) {
      EXPECT_EQ(view.context.data()[i], context.data()[i] * (norm ? 1 : real(0.5)));
    }
  }
}

TEST(Observer, of_a_model_sees_attention_and_hidden_states_layer_by_layer) {
  ModelConfig config = test::layer_config("diff_v2");
  config.num_layers = 2;
  config.vocab_size = 7;
  config.d_ff = 8;
  LanguageModel model(config);
  model.parameters().initialize(1);
  const std::vector<std::int32_t> ids{1, 2, 3, 4, 5, 6, 0, 1};
  const TokenBatch tokens{ids, 2, 4};
  Tape tape(Tape::Mode::inference);
  Seen seen;
  model.observe(tape, tokens, seen);
  EXPECT_THAT(seen.order, ElementsAre("attention 0", "hidden 0", "attention 1", "hidden 1"));
  EXPECT_EQ(seen.states[1].shape(), (Shape{2, 4, 6}));
  const Var normed =
      rms_norm(tape.constant(seen.states[1]),
               tape.parameter(*model.parameters().find("model.norm.weight")), config.norm_eps);
  const Var logits = linear(normed, tape.parameter(*model.parameters().find("lm_head.weight")));
  EXPECT_TRUE(same(logits.value(), model.logits(tape, tokens).value()))
      << "the last hidden state is what the head reads";
}

}  // namespace
}  // namespace difftape
