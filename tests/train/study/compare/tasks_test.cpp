
#include <fmt/format.h>
#include <gmock/gmock.h>

#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/study.h"
#include "train/study/compare/tables.h"

namespace difftape::study {
namespace {

using test::records;
using test::Result;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;
using Config = std::map<std::string, std::string>;

std::vector<std::string> words_of(const std::vector<Config>& configs) {
  std::vector<Result> results;
  for (const Config& config : configs) results.push_back({.config = config});
  return find_tasks(records(results)).words;
}

TEST(Tasks, are_said_in_the_fewest_keys_that_tell_them_apart) {
  EXPECT_THAT(words_of({{}, {{"optim.lr", "7"}}}), ElementsAre("")) << "a rate is no task";
  EXPECT_THAT(words_of({{}, {{"train.steps", "40"}}}), ElementsAre("20 steps", "40 steps"));
  EXPECT_THAT(words_of({{}, {{"data.seq_len", "64"}}}),
              ElementsAre("sequences of 256", "sequences of 64"));
  EXPECT_THAT(words_of({{}, {{"model.vocab_size", "300"}}}),
              ElementsAre("model.vocab_size=256", "model.vocab_size=300"));
  EXPECT_THAT(
      words_of({{}, {{"data.type", "needles"}, {"data.seq_len", "64"}, {"train.steps", "40"}}}),
      ElementsAre("text", "needles"));
  const Config four = {{"data.batch_size", "4"}};
  EXPECT_THAT(
      words_of(
          {four, {{"data.batch_size", "4"}, {"train.steps", "40"}}, {{"data.batch_size", "8"}}}),
      ElementsAre("20 steps, batches of 4", "40 steps, batches of 4", "20 steps, batches of 8"));
}

TEST(Tasks, of_equal_keys_differ_by_the_digest_of_the_data) {
  std::vector<RunRecord> runs = records({{}, {}, {}});
  runs[0].env["data"]["xxh3_128"] = "aa1122334455";
  runs[1].env["data"]["xxh3_128"] = "bb";
  runs[2].env["data"]["xxh3_128"] = "aa1122334455";
  for (RunRecord& run : runs) run.config.data.path = {run.dir.string()};
  const Tasks tasks = find_tasks(runs);
  EXPECT_THAT(tasks.words, ElementsAre("data aa112233", "data bb"));
  EXPECT_THAT(tasks.of_run, ElementsAre(0, 1, 0));
}

/// softmax and diff_v2 of two seeds, in 20 and in 40 steps: the long runs reach 1 less.
std::vector<Result> short_and_long() {
  std::vector<Result> results;
  for (const char* steps : {"20", "40"}) {
    for (const char* arm : {"softmax", "diff_v2"}) {
      for (const int seed : {1, 2}) {
        const bool is_long = steps == std::string("40"), v2 = arm == std::string("diff_v2");
        Result result{.arm = arm,
                      .seed = seed,
                      .loss = (is_long ? 1.3 : 2.3) - (v2 ? 0.1 + 0.01 * seed : 0),
                      .config = {{"train.steps", steps}}};
        if (v2) result.attention = {{"kind", "diff_v2"}};
        results.push_back(result);
      }
    }
  }
  return results;
}

TEST(Tasks, are_arms_of_their_own_compared_with_the_baseline_of_the_same_task) {
  const std::vector<RunRecord> runs = records(short_and_long());
  const Study study = make_study(runs);
  std::vector<std::string> names;
  for (const Arm& arm : study.arms) names.push_back(arm.name);
  ASSERT_THAT(names, ElementsAre("softmax (20 steps)", "diff_v2 (20 steps)", "softmax (40 steps)",
                                 "diff_v2 (40 steps)"));
  EXPECT_THAT(study.tasks, ElementsAre("20 steps", "40 steps"));
  EXPECT_EQ(study.baseline_of(study.arms[1]), &study.arms[0]);
  EXPECT_EQ(study.baseline_of(study.arms[2]), &study.arms[2]);
  EXPECT_EQ(study.baseline_of(study.arms[3]), &study.arms[2]);
  EXPECT_EQ(make_study(runs, "diff_v2").baseline, 1u);
  EXPECT_EQ(make_study(runs, "diff_v2 (40 steps)").baseline, 3u);
  const system::Table table = study_table(study), single = run_table(study);
  const auto column = [](const system::Table& of, const std::string& group) {
    return static_cast<std::size_t>(std::ranges::find(of.columns, group, &system::Column::group) -
                                    of.columns.begin());
  };
  const std::size_t versus = column(table, "val vs softmax");
  EXPECT_EQ(table.rows[0][versus], "-");
  EXPECT_EQ(table.rows[1][versus], "-0.1150");
  EXPECT_EQ(table.rows[2][versus], "-") << "a loss after 40 steps says nothing of one after 20";
  EXPECT_EQ(table.rows[3][versus], "-0.1150");
  EXPECT_EQ(single.columns[4].name, "val vs softmax");
  EXPECT_EQ(single.rows[7][4], "-0.1200");
  const std::string text = study_text(study, 100);
  EXPECT_THAT(text, HasSubstr("Runs of 2 tasks (20 steps; 40 steps): an arm is compared with"));
}

TEST(Tasks, without_the_baseline_compare_nothing) {
  std::vector<Result> results = short_and_long();
  results.erase(results.begin() + 4, results.begin() + 6);  // softmax in 40 steps
  const std::vector<RunRecord> runs = records(results);
  const Study study = make_study(runs);
  EXPECT_EQ(study.baseline_of(study.arms[2]), nullptr);
  EXPECT_THAT(study_table(study).rows[2], testing::Contains("-"));
  EXPECT_THAT(tables_text(study, 200), Not(HasSubstr("-1.1")));
}

TEST(Tasks, find_the_baseline_by_its_configuration_and_else_by_its_name) {
  std::vector<Result> results = short_and_long();
  for (Result& result : results) {
    if (result.config["train.steps"] == "40") result.arm += "_long";
  }
  std::vector<RunRecord> runs = records(results);
  EXPECT_EQ(make_study(runs).baseline_of(make_study(runs).arms[3])->name, "softmax_long (40 steps)")
      << "configured as the baseline is";
  results = short_and_long();
  for (Result& result : results) {
    if (result.config["train.steps"] == "40") result.config["optim.warmup_steps"] = "4";
  }
  runs = records(results);
  const Study study = make_study(runs);
  EXPECT_EQ(study.baseline_of(study.arms[3]), &study.arms[2]) << "its name";
}

TEST(Tasks, are_studies_of_their_own) {
  const std::vector<RunRecord> runs = records(short_and_long());
  EXPECT_EQ(make_study(runs).of_task(1).arms[0].name, "softmax (40 steps)");
}

}  // namespace
}  // namespace difftape::study
