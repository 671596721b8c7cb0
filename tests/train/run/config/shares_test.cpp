// Values that follow from those of other keys.

#include "tests/train/run/config/config_files.h"
#include "train/run/config/fields.h"
#include "train/run/config/writer.h"

namespace difftape::run {
namespace {

using testing::HasSubstr;

class ConfigShares : public ConfigFiles {};

TEST_F(ConfigShares, warm_up_is_a_twentieth_of_the_steps_unless_it_is_given) {
  EXPECT_EQ(config("").optim.warmup_steps, 25);
  EXPECT_EQ(config("train.steps: 40\n").optim.warmup_steps, 2);
  EXPECT_EQ(config("train.steps: 1\n").optim.warmup_steps, 0);
  EXPECT_EQ(config("optim.warmup_steps: 7\n", {"train.steps=30"}).optim.warmup_steps, 7);
}

TEST_F(ConfigShares, the_last_rate_is_zero_or_a_fraction_of_the_peak_without_a_stray_digit) {
  EXPECT_EQ(config("").optim.min_lr, 0);
  EXPECT_EQ(config("optim: {lr: 3.0e-3, min_lr: 10%}\n").optim.min_lr, 3e-4);
  EXPECT_EQ(config("optim: {lr: 0.03, min_lr: 1%}\n").optim.min_lr, 3e-4);
}

TEST_F(ConfigShares, the_model_reads_as_far_as_the_data_go) {
  EXPECT_EQ(config("data.seq_len: 512\n").model.max_seq_len, 512);
  EXPECT_EQ(config("data.seq_len: 64\nmodel.max_seq_len: 200%\n").model.max_seq_len, 128);
  EXPECT_THAT(error("model.max_seq_len: 50%\n"), HasSubstr("lower data.seq_len or raise"));
}

TEST_F(ConfigShares, a_share_is_of_what_holds_in_the_end) {
  write("base.yaml", "train.steps: 1000\noptim.warmup_steps: 5%\n");
  EXPECT_EQ(config("base: base.yaml\ntrain.steps: 200\n").optim.warmup_steps, 10);
  EXPECT_EQ(config("base: base.yaml\n", {"optim.warmup_steps=30"}).optim.warmup_steps, 30);
  EXPECT_EQ(config("optim.warmup_steps: 30\n", {"optim.warmup_steps=2%"}).optim.warmup_steps, 10);
}

TEST_F(ConfigShares, the_resolved_configuration_has_the_number_and_says_what_it_is_a_share_of) {
  write("a.yaml", "train.steps: 40\noptim.min_lr: 5%\n");
  const ResolvedConfig resolved = load_config("a.yaml", {"model.max_seq_len=300"});
  EXPECT_THAT(to_yaml(resolved.config), HasSubstr("\n  warmup_steps: 2\n"));
  const std::string text = to_yaml_with_origins(resolved);
  EXPECT_THAT(text, HasSubstr("\n  warmup_steps: 2               # 5% of train.steps, default\n"));
  EXPECT_THAT(text, HasSubstr("\n  min_lr: 5.0e-05               # 5% of optim.lr, a.yaml:2\n"));
  EXPECT_THAT(text, HasSubstr("\n  max_seq_len: 300              # --set\n"));
}

TEST_F(ConfigShares, runs_of_a_sweep_have_shares_of_their_own) {
  const study::SweepConfig s = sweep(
      "optim.min_lr: 10%\nsweep: {lr: [0.01, 0.2], grid: {train.steps: [100, 300]}, arms: {a: "
      "}}\n");
  ASSERT_EQ(s.runs.size(), 4u);
  EXPECT_EQ(s.runs[0].config().optim.min_lr, 0.001);
  EXPECT_EQ(s.runs[0].config().optim.warmup_steps, 5);
  EXPECT_EQ(s.runs[3].config().optim.min_lr, 0.02);
  EXPECT_EQ(s.runs[3].config().optim.warmup_steps, 15);
}

TEST_F(ConfigShares, what_is_no_share_or_too_large_a_one_is_an_error_where_it_is_written) {
  EXPECT_EQ(error("optim.warmup_steps: ten\n"),
            "a.yaml:1:21: error: optim.warmup_steps: expected an integer, or a fraction of "
            "train.steps such as 10%, got 'ten'");
  EXPECT_THAT(error("optim.min_lr: -1%\n"),
              HasSubstr("expected a number, or a fraction of optim.lr"));
  EXPECT_THAT(error("train.steps: 10%\n"), HasSubstr("expected an integer, got '10%'"));
  EXPECT_EQ(error("model.max_seq_len: 0%\n"),
            "a.yaml:1:1: error: model.max_seq_len: 0% of data.seq_len, 256, is 0 and out of range; "
            "need in [1, 1048576]");
  EXPECT_EQ(error("train.steps: 10\n", {"optim.warmup_steps=150%"}),
            "--set optim.warmup_steps=150%: error: optim.warmup_steps: warm-up takes 15 steps, but "
            "the run has 10; lower optim.warmup_steps, to a share such as 10%, or raise "
            "train.steps");
}

TEST_F(ConfigShares, a_broken_whole_leaves_no_second_error) {
  EXPECT_EQ(error("train.steps: 0\n"),
            "a.yaml:1:14: error: train.steps: 0 is out of range; need >= 1");
}

TEST(ConfigFields, the_default_of_a_struct_is_the_share_that_the_registry_names) {
  int shares = 0;
  for (const Field& field : fields()) {
    if (field.spec.constraint.share_of.empty()) continue;
    ++shares;
    const ConfigValue resolved = field.get(config_from_yaml("{}", "nothing.yaml"));
    EXPECT_EQ(field.get(Config{}), resolved) << field.key;
  }
  EXPECT_EQ(shares, 3);
}

}  // namespace
}  // namespace difftape::run
