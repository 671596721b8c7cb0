// Which run directories are those of a configuration.
#include "train/run/loop/train_state.h"

#include "tests/train/run/loop/tiny.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;
using test::TinyProject;

TEST(SameRun, differs_in_nothing_that_changes_a_result) {
  const TinyProject project;
  fs::create_directory(project / "run");
  test::put(project / "run/config.yaml", to_yaml(project.config));
  Config other = project.config;
  other.run.out = "elsewhere";
  other.run.claims = "0123456789abcdef";
  other.train.activation_checkpointing = ActivationCheckpointing::blocks;
  EXPECT_TRUE(same_run(project / "run", other));
  EXPECT_TRUE(same_run(project.config, other));
  for (const auto& change : std::vector<std::function<void(Config&)>>{
           [](Config& c) { c.run.seed += 1; }, [](Config& c) { c.run.name = "another"; },
           [](Config& c) { c.optim.lr *= 2; }, [](Config& c) { c.train.steps += 1; },
           [](Config& c) { c.log.diagnostics_every += 1; }}) {
    Config changed = project.config;
    change(changed);
    EXPECT_FALSE(same_run(project / "run", changed));
    EXPECT_FALSE(same_run(project.config, changed));
  }
  EXPECT_FALSE(same_run(project / "nowhere", project.config));
}

TEST(SameRun, goes_on_with_other_activation_checkpointing_with_and_without_a_checkpoint) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const std::string measured = test::measured(project / "run");
  project.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  EXPECT_EQ(project.train("run", true), system::Exit::ok);
  EXPECT_EQ(test::measured(project / "run"), measured);
  fs::remove_all(project / "run/checkpoints");
  EXPECT_EQ(project.train("run", true), system::Exit::ok) << "from step 0";
  EXPECT_EQ(test::measured(project / "run"), measured);
}

}  // namespace
}  // namespace difftape::run
