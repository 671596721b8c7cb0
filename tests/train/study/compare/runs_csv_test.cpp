// Runs written to runs.csv and read without their directories.
#include "train/study/compare/runs_csv.h"

#include "tests/train/study/compare/synthetic_run.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/quantities.h"
#include "train/system/text_table.h"

namespace difftape::study {
namespace {

using test::write_run;

struct RunsFile : testing::Test {
  /// Writes the file of these runs; their data have the digests `data_` and `val_data_`.
  fs::path write(const std::string& folder, std::vector<Row> runs) {
    for (Row& run : runs) {
      run.name = fmt::format("{}-{:g}-{}", run.arm, run.lr, run.seed);
      run.dir = dir / folder / run.name;
      run.facts["data"] = data_;
      run.facts["val_data"] = val_data_;
    }
    fs::create_directories(dir / folder);
    put(dir / folder / "runs.csv", runs_csv(runs, dir / folder));
    return dir / folder / "runs.csv";
  }
  /// Returns the message of a DataError.
  static std::string error(const std::vector<fs::path>& files) {
    return message_of<DataError>([&] { collect_runs(files); });
  }
  /// Replaces a string that occurs once in the file.
  static void change(const fs::path& file, const std::string& from, const std::string& to) {
    std::string text = contents(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    put(file, text.replace(at, from.size(), to));
  }

  ScratchDir dir;
  std::string data_ = "d1", val_data_;
};

TEST_F(RunsFile, restores_every_number_bitwise_and_missing_metrics) {
  Row run = record({.arm = "v2",
                    .attention = {{"kind", "diff_v2"}},
                    .lr = 1.0 / 3,
                    .seed = 7,
                    .last = {{"val/loss/code.c", 1.0 / 7}, {"act/max/0", kInfinity}},
                    .config = {{"optim.lr", fmt::to_string(1.0 / 3)}}});
  run.status.diverged = run::Divergence{12, "train/loss", "", "matmul in block 0, forward"};
  const fs::path file = write("a", {run, record({.arm = "softmax", .seed = 7})});
  EXPECT_THAT(contents(file), HasSubstr(",0.14285714285714285,")) << "the loss of a domain";
  const std::vector<Row> read = collect_runs(std::vector{file}).runs;
  ASSERT_EQ(read.size(), 2u);
  const Row& again = read[0];
  EXPECT_EQ(again.lr, 1.0 / 3);
  EXPECT_EQ(again.seed, 7u);
  EXPECT_EQ(again.arm, "v2");
  EXPECT_EQ(again.dir, dir / "a/v2-0.333333-7");
  EXPECT_EQ(again.status.state, run::RunState::finished);
  EXPECT_EQ(again.status.diverged->quantity, "train/loss");
  EXPECT_EQ(again.status.diverged->op, "matmul in block 0, forward");
  EXPECT_EQ(again.status.parameters, run.status.parameters);
  EXPECT_TRUE(again.curves().metrics.columns.empty()) << "no curves";
  EXPECT_EQ(again.value("model.attention.kind"), "diff_v2");
  EXPECT_EQ(again.value("train.steps"), "20");
  EXPECT_THAT(differing_keys(run, again), IsEmpty());
  EXPECT_EQ(again.domains, run.domains);
  std::size_t numbers = 0, logged = 0;
  for (const Quantity& each : quantities()) {
    const double a = again.number(each), b = run.number(each);
    EXPECT_TRUE(a == b || (std::isnan(a) && std::isnan(b))) << each.name;
    EXPECT_EQ(again.logged(each), run.logged(each)) << each.name;
    numbers += std::isnan(b) ? 0 : 1;
    logged += run.logged(each) ? 1 : 0;
  }
  EXPECT_GT(numbers, 5u);
  EXPECT_GT(logged, numbers) << "a quantity that was logged without a number";
  EXPECT_EQ(again.number("hidden_state"), kInfinity);
}

TEST_F(RunsFile, of_several_sweeps_is_one_study_with_each_run_once) {
  const Row shared = record({.seed = 2, .loss = 2.1});
  const fs::path a = write("a", {record({.seed = 1}), shared});
  const fs::path b = write(
      "b", {shared, record({.seed = 3, .state = run::RunState::stopped}), record({.seed = 4})});
  const Collection pooled = collect_runs(std::vector{a, b.parent_path()});
  std::vector<std::uint64_t> seeds;
  for (const Row& run : pooled.runs) seeds.push_back(run.seed);
  EXPECT_EQ(seeds, (std::vector<std::uint64_t>{1, 2, 4}));
  EXPECT_THAT(
      pooled.notes,
      testing::Contains(b.string() + ": 1 of 3 runs are not complete; not in the statistics"));
  EXPECT_THAT(pooled.notes, testing::Contains(HasSubstr("3 of 3 runs come from runs.csv")));
}

TEST_F(RunsFile, omits_rows_of_runs_whose_directories_are_given) {
  const fs::path a = write_run(dir / "runs/a", {.name = "a", .seed = 1});
  const fs::path b = write_run(dir / "runs/b", {.name = "b", .seed = 2});
  const fs::path index = write("lines", {load_run(a), load_run(b)});
  EXPECT_EQ(collect_runs(std::vector{index}).runs.size(), 2u);
  const std::vector<Row> runs = collect_runs(std::vector{a, index}).runs;
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[0].dir, a);
  EXPECT_EQ(runs[1].seed, 2u);
  change(index, fmt::to_string(runs[0].number("train_seconds")), "77");
  EXPECT_EQ(collect_runs(std::vector{a, index}).runs.size(), 3u) << "another training";
}

TEST_F(RunsFile, rejects_two_results_of_one_run_unless_only_speed_or_columns_differ) {
  const Row run = record({.seed = 2, .loss = 2.125});
  const fs::path a = write("a", {run}), b = write("b", {run});
  change(b, "40000", "30000");
  EXPECT_EQ(collect_runs(std::vector{a, b}).runs.size(), 1u);
  change(b, ",hidden_state,", ",of_another_version,");
  EXPECT_EQ(collect_runs(std::vector{a, b}).runs.size(), 1u);
  change(b, "2.125", "2.25");
  EXPECT_EQ(error({a, b}),
            b.string() +
                ": run softmax-0.001-2 has the validation loss 2.25, but the same run in " +
                a.string() + " has 2.125; give only one of the two files");
}

TEST_F(RunsFile, of_other_data_is_not_pooled) {
  const fs::path a = write("a", {record({})});
  data_ = "d2";
  const fs::path b = write("b", {record({.seed = 2})});
  EXPECT_EQ(error({a, b}), b.string() +
                               ": its data has the digest d2, but must have the digest of " +
                               a.string() + ", d1; report them separately");
  data_ = "d1";
  val_data_ = "v1";
  EXPECT_THAT(error({a, write("c", {record({.seed = 2})})}),
              HasSubstr("its data has the digest d1/v1, but must have the digest of "));
}

TEST_F(RunsFile, that_a_spreadsheet_saved_is_read_or_named) {
  const fs::path file = write("a", {record({.arm = "softmax"}), record({.arm = "v2"})});
  const std::string text = contents(file);
  const auto with = [&](std::string from, const std::string& to) {
    std::string changed = text;
    for (std::size_t at = 0; (at = changed.find(from, at)) != changed.npos; at += to.size())
      changed.replace(at, from.size(), to);
    return changed;
  };
  for (const std::string& saved : {"\xEF\xBB\xBF" + text, text + "\n", with("\n", "\r"),
                                   "\xEF\xBB\xBF" + with("\n", "\r\n") + "\r\n"}) {
    put(file, saved);
    EXPECT_EQ(collect_runs(std::vector{file}).runs.size(), 2u);
    EXPECT_TRUE(is_runs_csv(file));
  }
  put(file, with(",", ";"));
  EXPECT_TRUE(is_runs_csv(file));
  EXPECT_THAT(error({file}), HasSubstr(":1: its fields are separated by semicolons"));
}

TEST_F(RunsFile, that_is_damaged_is_rejected_with_its_location) {
  const fs::path file = write("a", {record({.seed = 1}), record({.seed = 2})});
  const std::string sound = contents(file);
  const auto damaged = [&](const std::string& from, const std::string& to) {
    put(file, sound);
    change(file, from, to);
    return error({file});
  };
  EXPECT_THAT(damaged(",finished,", ",finish,"),
              HasSubstr("run softmax-0.001-1: state is 'finish', but must be one of queued, "));
  EXPECT_THAT(damaged(",finished,20,", ",finished,2x0,"),
              HasSubstr("run softmax-0.001-1: step is '2x0', but must be an integer"));
  EXPECT_THAT(damaged("softmax,1,0.001", "softmax,-1,0.001"), HasSubstr("seed is '-1', but must"));
  EXPECT_THAT(damaged("softmax,1,0.001", "softmax,1,"),
              HasSubstr("lr is '', but must be a number"));
  EXPECT_THAT(damaged("softmax,1,0.001", "softmax,1,nan"),
              HasSubstr("lr is 'nan', but must be a number above 0"));
  put(file, sound + sound.substr(sound.find("\nsoftmax-0.001-2,") + 1));
  EXPECT_THAT(error({file}), HasSubstr("runs.csv:4: is a second line of run softmax-0.001-2"));
  EXPECT_THAT(damaged("0.001-1,softmax", "0.001-1,soft,max"),
              AllOf(HasSubstr("runs.csv:2: has "), HasSubstr(" fields, but must have ")));
  EXPECT_THAT(damaged(",tokens_per_step,", ",tokens,"),
              HasSubstr("has no column 'tokens_per_step', but must be the runs.csv of a sweep"));
  put(file, "");
  EXPECT_THAT(error({file}), HasSubstr("has no column 'name'"));
}

TEST_F(RunsFile, without_a_complete_run_is_an_error) {
  const fs::path file = write("a", {record({.state = run::RunState::stopped})});
  EXPECT_THROW(collect_runs(std::vector{file}), MissingInput);
}

}  // namespace
}  // namespace difftape::study
