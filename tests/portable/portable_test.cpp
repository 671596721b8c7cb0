// With train.gemm: portable a run gives these bits on every processor with fused multiply-add,
// whatever its vector registers (./dev portable builds this for several).

#include "core/digest.h"
#include "layers/language_model.h"
#include "tests/support/test.h"
#include "train/run/config/config.h"
#include "train/run/loop/step.h"

namespace difftape::run {
namespace {

/// Returns the hash of parameters and optimizer state, and the last loss, after a few steps of a
/// generated task; no size is a multiple of a vector.
std::string trained(const std::function<void(Config&)>& change) {
  Config config;
  config.model = {.d_model = 24, .num_layers = 2, .num_heads = 2, .d_ff = 40};
  config.data.type = DataKind::backcopy;
  config.data.seq_len = 37;
  config.data.batch_size = 3;
  config.data.backcopy.symbols = 69;
  config.model.vocab_size = config.data.backcopy.vocab_size();
  config.model.max_seq_len = config.data.seq_len;
  config.model.init.preset = InitPreset::gpt2;
  config.optim.lr = 1e-2;
  config.optim.min_lr = 1e-4;
  config.optim.schedule = ScheduleKind::cosine;
  config.optim.warmup_steps = 2;
  config.optim.weight_decay = 0.1;
  config.optim.independent_weight_decay = false;
  config.train.steps = 6;
  config.train.gemm = Engine::portable;
  change(config);
  TrainState state(config);
  EXPECT_STREQ(gemm_backend(), "portable") << "or it is the fast one that has these bits here";
  double loss = 0;
  while (state.step < config.train.steps) loss = train_step(state).loss;
  Digest all;
  const auto add = [&all](std::span<const real> values) {
    Digest digest;
    digest.add(std::as_bytes(values));
    all.add(digest.hex());
  };
  for (const Parameter& p : state.model.parameters()) add(p.value.values());
  for (const Optimizer::State& kept : state.optimizer.states()) {
    for (const StateTensor& tensor : kept.tensors) add(tensor.value.values());
  }
  return fmt::format("{} {:a}", all.hex(), loss);
}

/// Returns the digests of the machine that wrote digests.json.
std::string committed(const std::string& name) {
  std::ifstream in(DIFFTAPE_TEST_SOURCE_DIR "/tests/portable/digests.json");
  return nlohmann::json::parse(in).at(kRealName).value(name, "nothing");
}

void expect_committed(const std::string& name, const std::function<void(Config&)>& change) {
  if (!unsupported_reason(Engine::portable).empty())
    GTEST_SKIP() << test::kOtherHardware << "no fused multiply-add";
  EXPECT_EQ(trained(change), committed(name)) << name;
}

struct Kind : testing::TestWithParam<std::string> {};

TEST_P(Kind, trains_to_the_committed_bits) {
  expect_committed(GetParam(), [&](Config& c) { c.model.attention.kind = GetParam(); });
}

INSTANTIATE_TEST_SUITE_P(Portable, Kind, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

TEST(Portable, every_optimizer_trains_to_the_committed_bits) {
  for (const auto& [name, kind] : kNames<OptimizerKind>)
    expect_committed(fmt::format("optim.name {}", name),
                     [of = kind](Config& c) { c.optim.name = of; });
}

TEST(Portable, optional_model_features_train_to_the_committed_bits) {
  expect_committed("softcap, z_loss, qk_norm, window", [](Config& c) {
    c.model.attention.kind = "diff_v2";
    c.model.attention.attn_logit_softcap = 5;
    c.model.attention.qk_norm = true;
    c.model.attention.sliding_window = 11;
    c.model.final_logit_softcap = 10;
    c.model.z_loss_weight = 1e-4;
  });
}

#ifndef DIFFTAPE_F64  // doubles are not rounded to bfloat16
TEST(Portable, rounded_to_bfloat16_trains_to_the_committed_bits) {
  expect_committed("bf16_emulated",
                   [](Config& c) { c.train.precision = Precision::bf16_emulated; });
  // Scores of several units, whose last bits matter.
  expect_committed("bf16_emulated, diff_v2, qk_norm", [](Config& c) {
    c.train.precision = Precision::bf16_emulated;
    c.model.attention.kind = "diff_v2";
    c.model.attention.qk_norm = true;
  });
}
#endif

TEST(Portable, multiplies_while_it_is_selected) {
  const std::string before = gemm_backend();
  auto first = std::make_unique<EngineScope>(Engine::portable);
  EXPECT_STREQ(gemm_backend(), "portable");
  auto second = std::make_unique<EngineScope>(Engine::portable);
  const EngineScope fast(Engine::fast);
  first.reset();
  EXPECT_STREQ(gemm_backend(), "portable") << "whichever ends first";
  second.reset();
  EXPECT_EQ(gemm_backend(), before);
}

TEST(Portable, multiplies_no_bfloat16) {
  Config config;
  config.train.gemm = Engine::portable;
  config.train.precision = Precision::bf16;
  EXPECT_THAT(message_of<ConfigError>([&] { engine_of(config); }),
              testing::AnyOf(HasSubstr("set train.precision to bf16_emulated or full"),
                             HasSubstr("without fused multiply-add")));
}

}  // namespace
}  // namespace difftape::run
