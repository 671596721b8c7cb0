// `difftape train --overfit`: overfits a single batch.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

TEST(Overfit, every_kind_learns_a_batch_within_300_steps) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    project.config.model.d_model = 64;
    project.config.model.d_ff = 96;
    project.save();
    const Outcome outcome = project.difftape({"train", "tiny.yaml", "--overfit"});
    EXPECT_EQ(outcome.exit, 0) << kind << outcome.out << outcome.err;
    EXPECT_THAT(outcome.out, HasSubstr("\nlearned: loss 0.00")) << kind;
    EXPECT_FALSE(fs::exists(project / "runs"));
  }
}

TEST(Overfit, learns_a_text_with_runs_of_equal_tokens) {
  TinyProject project;
  std::string text;
  for (int i = 0; i < 500; ++i) text += fmt::format("{:>30}\n", i);
  put(project / "text.txt", text);
  for (const int seed : {1, 2, 3, 4}) {
    project.config.run.seed = seed;
    project.save();
    test::output(project.difftape({"train", "tiny.yaml", "--overfit"}));
  }
}

TEST(Overfit, of_generated_data_learns_the_answers) {
  TinyProject project("diff_v2");
  project.config.model.d_model = 64;
  project.config.data.type = run::DataKind::mqar;
  project.config.data.mqar = {.keys = 8, .values = 8, .pairs = 2};
  project.save();
  test::output(project.difftape({"train", "tiny.yaml", "--overfit"}));
}

TEST(Overfit, a_batch_that_is_not_learned_or_diverges_is_exit_code_1) {
  const TinyProject project;
  const Outcome short_run = project.difftape({"train", "tiny.yaml", "--overfit=3"});
  EXPECT_EQ(short_run.exit, 1);
  EXPECT_EQ(short_run.err, "");
  EXPECT_THAT(short_run.out, HasSubstr("\nNOT LEARNED: loss "));
  EXPECT_THAT(short_run.out, HasSubstr(" at best in 3 steps, not below 0.01; "));
  const Outcome diverged = project.difftape(
      {"train", "tiny.yaml", "--overfit", "--set", "model.init.projection_std=1.0e20"});
  EXPECT_EQ(diverged.exit, 1);
  EXPECT_THAT(diverged.out, HasSubstr("NOT LEARNED: diverged at step "));
  EXPECT_THAT(diverged.out, Not(HasSubstr("-nan")));
}

TEST(Overfit, rejects_zero_steps_and_options_of_run_directories) {
  const TinyProject project;
  const auto refused = [&](const std::vector<std::string>& words) {
    return test::error(64, project.difftape(joined({"train", "tiny.yaml"}, words)));
  };
  EXPECT_EQ(refused({"--overfit=0"}),
            "difftape: --overfit: the number of steps is 0 or less, but must be at least 1\n");
  EXPECT_EQ(refused({"--overfit", "--out", "run"}),
            "difftape: --overfit writes no run and allows no other option than --set; remove the "
            "others\n");
}

}  // namespace
}  // namespace difftape::app
