// A training loop: a model with differential attention learns sequences that count by 1, 2 or 3.
#include <cstdio>

#include <difftape/core/random.h>
#include <difftape/layers/language_model.h>
#include <difftape/optim/grad_norm.h>
#include <difftape/optim/optimizer.h>

int main() {
  using namespace difftape;
  constexpr Index kBatch = 16, kSeq = 12, kSteps = 150;
  ModelConfig config{.d_model = 32, .num_layers = 2, .num_heads = 2, .d_ff = 64, .vocab_size = 50};
  config.attention.kind = "diff_v2";
  config.init.preset = InitPreset::gpt2;  // the loss begins at log(vocab_size)
  LanguageModel model(config);
  model.parameters().initialize(1);
  Optimizer optimizer(model.parameters(), {.lr = 1e-2});
  const RandomStream random(1, "sequences");
  for (Index step = 0; step < kSteps; ++step) {
    std::vector<std::int32_t> tokens, targets;
    for (Index i = 0; i < kBatch; ++i) {
      const auto at = static_cast<std::uint64_t>(2 * (step * kBatch + i));
      const auto start = static_cast<std::int32_t>(random.below(at, 50));
      const auto stride = static_cast<std::int32_t>(1 + random.below(at + 1, 3));
      for (std::int32_t t = 0; t < kSeq; ++t) {
        tokens.push_back((start + t * stride) % 50);
        targets.push_back((start + (t + 1) * stride) % 50);
      }
    }
    for (Parameter& parameter : model.parameters()) parameter.zero_grad();
    Tape tape;
    const Var loss = model.loss(tape, {tokens, kBatch, kSeq}, targets);
    tape.backward(loss);
    const double norm = grad_norms(model.parameters()).global;
    optimizer.step(1e-2, clip_scale(norm, 1.0));
    if (step % 30 == 0 || step + 1 == kSteps) {
      std::printf("step %3d  loss %.4f  grad_norm %.3f\n", static_cast<int>(step),
                  static_cast<double>(loss.value().values()[0]), norm);
    }
  }
}
