// Runs that begin with the weights of another one.
#include <gmock/gmock.h>

#include "core/error.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/step.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using testing::HasSubstr;

class Fork : public testing::Test {
 protected:
  Fork() { EXPECT_EQ(project.train("old"), system::Exit::ok); }

  std::vector<double> losses(const std::string& run) const {
    std::vector<double> found;
    for (const auto& line : test::metrics_lines(project / run)) found.push_back(line["train/loss"]);
    return found;
  }

  test::TinyProject project;
};

TEST_F(Fork, begins_where_the_weights_of_the_other_run_are) {
  const Outcome outcome = project.difftape(
      {"train", "tiny.yaml", "--fork", "old", "--out", "new", "--set", "optim.lr=0.005"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("begins with the weights of "));
  const auto env = read_env(project / "new");
  const fs::path checkpoint = project / "old/checkpoints/step-00000012.h5";
  EXPECT_EQ(env["init_from"]["checkpoint"], checkpoint.string());
  EXPECT_EQ(env["init_from"]["step"], 12);
  EXPECT_EQ(env["init_from"]["xxh3_128"], verify_checksum_header(checkpoint));
  EXPECT_EQ(config_of_run(project / "new").train.init_from, (project / "old").string());

  project.config.optim.lr = 0.005;
  TrainState by_hand(project.config);
  Checkpoint(find_checkpoint(project / "old")).load(by_hand.model.parameters(), nullptr);
  for (const double loss : losses("new")) EXPECT_EQ(train_step(by_hand).loss, loss);
}

TEST_F(Fork, trains_on_other_data_as_another_model_of_the_same_shape) {
  test::put(project / "other.txt", std::string(4000, 'x') + test::tiny_text());
  project.config.data.path = {(project / "other.txt").string()};
  project.config.train.init_from = (project / "old/checkpoints").string();
  project.config.model.attention.softmax_denominator = SoftmaxDenominator::softmax1;
  ASSERT_EQ(project.train("new"), system::Exit::ok);
  TrainState by_hand(project.config);
  Checkpoint(find_checkpoint(project / "old")).load(by_hand.model.parameters(), nullptr);
  EXPECT_EQ(losses("new").front(), train_step(by_hand).loss);
}

TEST_F(Fork, keeps_the_weights_it_began_with_when_it_goes_on) {
  ASSERT_EQ(project.train("other"), system::Exit::ok);
  std::vector<std::string> words{"train", "tiny.yaml", "--fork", "old", "--out", "new"};
  ASSERT_EQ(project.difftape(words).exit, 0);
  words[3] = "other";
  words.insert(words.end(), {"--set", "train.steps=20", "--resume"});
  const Outcome outcome = project.difftape(words);
  EXPECT_EQ(outcome.exit, 78);
  EXPECT_THAT(outcome.err, HasSubstr("train.init_from is " + (project / "old").string() + ", not " +
                                     (project / "other").string()));
}

TEST_F(Fork, goes_on_before_its_first_checkpoint_only_with_the_weights_it_began_with) {
  project.config.train.init_from = (project / "old").string();
  ASSERT_EQ(project.train("new"), system::Exit::ok);
  const std::string measured = test::measured(project / "new");
  fs::remove_all(project / "new/checkpoints");
  ASSERT_EQ(project.train("new", true), system::Exit::ok);
  EXPECT_EQ(test::measured(project / "new"), measured);
  fs::remove_all(project / "new/checkpoints");
  fs::copy_file(project / "old/checkpoints/step-00000012.h5", project / "kept.h5");
  fs::remove_all(project / "old");
  project.config.train.init_from.clear();
  project.config.run.seed = 2;
  ASSERT_EQ(project.train("old"), system::Exit::ok);
  project.config.train.init_from = (project / "old").string();
  project.config.run.seed = 1;
  EXPECT_THROW(project.train("new", true), DataError);
}

TEST_F(Fork, needs_no_old_run_once_it_has_a_checkpoint) {
  project.config.train.init_from = (project / "old").string();
  ASSERT_EQ(project.train("new"), system::Exit::ok);
  fs::remove_all(project / "old");
  EXPECT_EQ(project.train("new", true), system::Exit::ok);
}

TEST_F(Fork, of_what_fits_not_or_is_not_there_leaves_nothing) {
  const auto error = [&](const std::vector<std::string>& arguments, int exit) {
    std::vector<std::string> all{"train", "tiny.yaml", "--out", "new"};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const Outcome outcome = project.difftape(all);
    EXPECT_EQ(outcome.exit, exit);
    EXPECT_FALSE(fs::exists(project / "new"));
    return outcome.err;
  };
  EXPECT_THAT(error({"--fork", "gone"}, 66),
              testing::AllOf(HasSubstr("no checkpoint at "), HasSubstr("in train.init_from")));
  EXPECT_THAT(error({"--fork", "old", "--set", "model.d_ff=32"}, 65),
              HasSubstr("does not fit the model: "));
  EXPECT_THAT(error({"--fork", ""}, 64), HasSubstr("--fork: need a checkpoint"));
  EXPECT_THAT(error({"--fork", "old", "--set", "train.init_from=old"}, 64),
              HasSubstr("say the same"));
  EXPECT_THAT(error({"--fork", "text.txt"}, 65), HasSubstr("is not a difftape checkpoint"));
}

}  // namespace
}  // namespace difftape::run
