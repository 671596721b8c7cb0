// `difftape init`: a first configuration.
#include "tests/train/run/loop/tiny.h"
#include "train/run/config/reader.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::TinyProject;
using testing::HasSubstr;

TEST(Init, writes_a_configuration_of_the_defaults_for_every_kind_that_trains_as_it_is) {
  const TinyProject project;
  for (const std::string& kind : attention_kinds()) {
    const Outcome init = project.difftape({"init", kind});
    ASSERT_EQ(init.exit, 0) << init.err;
    EXPECT_EQ(init.out,
              kind + ".yaml: change what you like, then: difftape train " + kind + ".yaml\n");
    const run::Config written = run::load_config(project / (kind + ".yaml")).config;
    run::Config expected;
    expected.run.name = kind;
    expected.model.attention.kind = kind;
    EXPECT_EQ(run::to_yaml(written), run::to_yaml(expected));
    const Outcome trained = project.difftape(
        {"train", kind + ".yaml", "--set", "train.steps=1", "--set", "data.batch_size=1", "--set",
         "train.final_eval_batches=1", "--set", "data.path=text.txt"});
    EXPECT_EQ(trained.exit, 0) << trained.err;
  }
}

TEST(Init, says_above_each_key_what_it_means_and_shows_the_fields_of_attention_as_comments) {
  const TinyProject project;
  ASSERT_EQ(project.difftape({"init", "--out", "first.yaml"}).exit, 0);
  const std::string text = test::contents(project / "first.yaml");
  EXPECT_THAT(text, testing::StartsWith("# diff_v2: Ye et al. 2026"));
  EXPECT_THAT(text, HasSubstr("\n#   difftape train first.yaml\n"));
  EXPECT_THAT(text, HasSubstr("\n  # Peak learning rate.\n  lr: 0.001\n"));
  EXPECT_THAT(text, HasSubstr("\n  warmup_steps: 5%\n"));
  EXPECT_THAT(text, HasSubstr("\n    # lambda: preset\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Init, overwrites_nothing_and_knows_the_kinds) {
  const TinyProject project;
  const Outcome there = project.difftape({"init", "--out", "tiny.yaml"});
  EXPECT_EQ(there.exit, 74);
  EXPECT_EQ(there.err,
            "difftape: tiny.yaml exists; nothing is overwritten: choose another name with --out\n");
  const Outcome unknown = project.difftape({"init", "dif_v2"});
  EXPECT_EQ(unknown.exit, 64);
  EXPECT_THAT(unknown.err, HasSubstr("KIND: 'dif_v2' is not one of diff_v1, diff_v2, "));
  EXPECT_THAT(unknown.err, HasSubstr("; did you mean 'diff_v2'?\n"));
  EXPECT_FALSE(std::filesystem::exists(project / "dif_v2.yaml"));
  const Outcome folder = project.difftape({"init", "--out", "nowhere/a.yaml"});
  EXPECT_EQ(folder.exit, 74) << folder.err;
}

}  // namespace
}  // namespace difftape::app
