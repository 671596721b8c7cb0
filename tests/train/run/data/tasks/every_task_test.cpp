// Properties of every task, such as batches that are functions of their arguments.
#include "tests/train/run/data/tasks/task_data.h"
#include "tests/train/run/loop/tiny.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

using test::make_task;

struct EveryTask : testing::TestWithParam<std::string> {
  static DataConfig config(Index batch_size = 4) {
    return {.type = from_string<DataKind>(GetParam()).value(),
            .path = {},
            .seq_len = 64,
            .batch_size = batch_size};
  }
};

TEST_P(EveryTask, gives_whole_rows_of_known_tokens_and_scores_some_of_them) {
  const auto data = make_task(config());
  for (const Batch& batch : {data->train_batch(0, 0), data->val_batch(0)}) {
    EXPECT_EQ(batch.batch, 4);
    EXPECT_EQ(batch.seq, 64);
    ASSERT_EQ(batch.tokens.size(), 4u * 65);
    for (const std::int32_t token : batch.tokens) {
      EXPECT_GE(token, 0);
      EXPECT_LT(token, data->vocab_size());
    }
    if (!batch.scored.empty()) {
      EXPECT_EQ(batch.scored.size(), 4u * 64);
    }
    for (Index b = 0; b < 4; ++b) {
      Index scored = 0;
      for (Index t = 0; t < 64; ++t) scored += test::is_scored(batch, b, t);
      EXPECT_GE(scored, 1) << "row " << b;
    }
  }
}

TEST_P(EveryTask, a_batch_depends_only_on_seed_step_and_micro_batch) {
  const auto tokens = [](std::uint64_t seed, Index step, Index micro) {
    return make_task(config(), seed)->train_batch(step, micro).tokens;
  };
  const auto data = make_task(config());
  data->train_batch(9, 1);
  EXPECT_EQ(data->train_batch(5, 0).tokens, tokens(1, 5, 0));
  EXPECT_NE(tokens(1, 5, 0), tokens(2, 5, 0));
  EXPECT_NE(tokens(1, 5, 0), tokens(1, 6, 0));
  EXPECT_NE(tokens(1, 5, 0), tokens(1, 5, 1));
}

TEST_P(EveryTask, a_step_reads_the_same_sequences_for_every_split) {
  const Batch whole = make_task(config(4))->train_batch(7, 0);
  Batch halves = make_task(config(2))->train_batch(7, 0);
  const Batch second = make_task(config(2))->train_batch(7, 1);
  halves.tokens.insert(halves.tokens.end(), second.tokens.begin(), second.tokens.end());
  halves.scored.insert(halves.scored.end(), second.scored.begin(), second.scored.end());
  EXPECT_EQ(whole.tokens, halves.tokens);
  EXPECT_EQ(whole.scored, halves.scored);
  EXPECT_EQ(whole.queries.size(),
            make_task(config(2))->train_batch(7, 0).queries.size() + second.queries.size());
}

TEST_P(EveryTask, validation_is_the_same_for_every_seed_and_not_in_training) {
  const auto a = make_task(config(), 0), b = make_task(config(), 2);
  ASSERT_GE(a->val_batches(), 2);
  EXPECT_EQ(a->val_batch(1).tokens, b->val_batch(1).tokens);
  EXPECT_EQ(a->val_batch(1).scored, b->val_batch(1).scored);
  EXPECT_NE(a->val_batch(0).tokens, a->val_batch(1).tokens);
  EXPECT_NE(a->val_batch(0).tokens, a->train_batch(0, 0).tokens);
}

TEST_P(EveryTask, answers_lie_in_their_rows_and_in_the_grid) {
  const auto data = make_task(config());
  const Batch batch = data->val_batch(0);
  const AccuracyGrid grid = data->grid();
  ASSERT_FALSE(batch.answers.empty());
  Index row = 0;
  for (const AnswerSpan& answer : batch.answers) {
    EXPECT_GE(answer.row, row) << "in order of the rows";
    row = answer.row;
    EXPECT_GE(answer.targets.begin, 0);
    EXPECT_LE(answer.targets.end, 64);
    EXPECT_LT(answer.grid_row, static_cast<Index>(grid.rows.size()));
    EXPECT_LT(answer.grid_column, static_cast<Index>(grid.columns.size()));
    Index scored = 0;
    for (Index t = answer.targets.begin; t < answer.targets.end; ++t)
      scored += test::is_scored(batch, answer.row, t);
    EXPECT_GE(scored, 1);
  }
  EXPECT_EQ(row, 3);
}

TEST_P(EveryTask, info_has_type_and_vocabulary_size) {
  const auto data = make_task(config());
  EXPECT_EQ(data->info()["type"], GetParam());
  EXPECT_EQ(data->info()["vocab_size"], data->vocab_size());
}

TEST_P(EveryTask, a_small_vocabulary_is_a_config_error) {
  ModelConfig small;
  small.vocab_size = make_task(config())->vocab_size() - 1;
  EXPECT_THAT(
      test::errors_of(config(), small),
      HasSubstr(fmt::format(
          "vocab_size is {}, but data.type '{}' with these sizes needs at least {}; raise it",
          small.vocab_size, GetParam(), small.vocab_size + 1)));
}

TEST_P(EveryTask, a_run_logs_accuracy_and_resumes_to_the_same_bits) {
  TinyProject project;
  project.config.model.vocab_size = 160;
  project.config.model.max_seq_len = 32;
  project.config.data = config(10);
  project.config.data.seq_len = 32;
  project.config.train.checkpoint_interval = 5;
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  test::cut_after(5, project / "whole", project / "cut");
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  test::expect_the_same_run(project / "whole", project / "cut");
  const auto last = metrics_lines(project / "whole").back();
  ASSERT_TRUE(last.contains("val/accuracy"));
  EXPECT_GE(last["val/accuracy"], 0);
  EXPECT_LT(last["val/accuracy"], 1);
  EXPECT_EQ(last.contains("task/exact_match"), GetParam() == "needles");
  const auto data = system::parse_json(contents(project / "whole/env.json"))["data"];
  EXPECT_TRUE(data.contains("best_loss"));
  EXPECT_GE(last["val/loss"], data["best_loss"]);
  EXPECT_THAT(project.console.str(), StartsWith("best achievable: loss "));
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryTask, testing::Values("needles", "mqar", "backcopy"),
                         [](const auto& kind) { return kind.param; });

TEST(TaskDigests, of_the_first_batches_never_change) {
  const auto digest = [](DataKind kind) {
    return test::digest_of({.type = kind, .path = {}, .seq_len = 64, .batch_size = 4});
  };
  EXPECT_EQ(digest(DataKind::needles), "8f774ee248a06946fb2598a9cafce2d2");
  EXPECT_EQ(digest(DataKind::mqar), "a246060868b65150840165e0b18d1b54");
  EXPECT_EQ(digest(DataKind::backcopy), "a433a9632919aadb25629ba1749f17fa");
}

TEST(DataWithoutATask, has_no_best_loss_and_no_accuracy) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_FALSE(metrics_lines(project / "run").back().contains("val/accuracy"));
  const auto data = system::parse_json(contents(project / "run/env.json"))["data"];
  EXPECT_FALSE(data.contains("best_loss"));
}

TEST(DataOfText, is_announced_with_its_sizes_and_the_times_it_is_read) {
  TinyProject project;
  project.config.train.steps = 10;
  const auto expect = [&](const std::string& run, const std::vector<std::string>& val_path,
                          double part_for_training) {
    const double tokens = 10.0 * 16 * static_cast<double>(project.config.data.batch_size);
    project.console.str("");
    project.config.data.val_path = val_path;
    ASSERT_EQ(project.train(run), system::Exit::ok);
    const auto data = system::parse_json(contents(project / (run + "/env.json")))["data"];
    const Index all = data["bytes"], held_out = data["val_bytes"];
    const Index training = val_path.empty() ? all - held_out : all;
    EXPECT_NEAR(static_cast<double>(training) / static_cast<double>(all), part_for_training, 0.02);
    const double times = tokens / static_cast<double>(training);
    const std::string read = times < 1 ? fmt::format("of which {:.3g} % are read", 100 * times)
                                       : fmt::format("read {:.3g} times", times);
    EXPECT_EQ(times < 1, run == "split");
    EXPECT_THAT(project.console.str(),
                HasSubstr(fmt::format("\n{} bytes for training, {}; {} for validation\n",
                                      system::grouped(training), read, system::grouped(held_out))));
  };
  expect("split", {}, 1 - project.config.data.val_fraction);
  project.config.data.batch_size = 64;
  expect("separate", project.config.data.path, 1);
}

}  // namespace
}  // namespace difftape::run
