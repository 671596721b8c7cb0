#include "train/study/compare/row.h"
#include "tests/support/test.h"
#include "train/study/compare/collection.h"

#include "tests/train/study/compare/synthetic_run.h"
#include "train/study/compare/measures.h"
#include "train/study/compare/quantities.h"
#include "train/system/json.h"

namespace difftape::study {
namespace {

using test::SyntheticRun;
using test::write_run;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A run of `steps` steps with loss = step, grad_norm = 2 step and a validation every 10.
fs::path counting_run(const fs::path& dir, Index steps) {
  write_run(dir, {});
  fs::remove(dir / "metrics.jsonl");
  run::MetricsWriter writer(dir / "metrics.jsonl");
  for (Index step = 1; step <= steps; ++step) {
    const double value = static_cast<double>(step);
    run::Metrics metrics = {{"train/loss", value},
                            {"optim/grad_norm", 2 * value},
                            {"throughput/tokens_per_sec", 100 * value}};
    if (step % 10 == 0) metrics.emplace_back("val/loss", value / 100);
    writer.write(step, metrics);
  }
  run::RunStatus status = run::read_status(dir);
  status.step = status.steps = steps;
  run::write_status(dir, status);
  return dir;
}

TEST(Quantities, match_their_documentation) {
  const ScratchDir dir;
  const Row run = load_run(counting_run(dir / "a", 400));
  EXPECT_EQ(run.name, "softmax");
  EXPECT_EQ(run.status.parameters, 820224);
  EXPECT_DOUBLE_EQ(run.number("train_loss"), (381 + 400) / 2.0)
      << "mean of the last 5 %, here 20 steps";
  EXPECT_DOUBLE_EQ(run.number("val_loss"), 4);
  EXPECT_DOUBLE_EQ(run.number("grad_norm_median"), 401);
  EXPECT_DOUBLE_EQ(run.number("grad_norm_p99"), 2 * (1 + 0.99 * 399));
  EXPECT_DOUBLE_EQ(run.number("grad_norm_max"), 800);
  EXPECT_DOUBLE_EQ(run.number("tokens_per_sec"), 20050);
}

TEST(Quantities, of_a_short_run_average_the_last_ten_steps_or_all) {
  const ScratchDir dir;
  EXPECT_DOUBLE_EQ(load_run(counting_run(dir / "a", 100)).number("train_loss"), (91 + 100) / 2.0);
  EXPECT_DOUBLE_EQ(load_run(counting_run(dir / "b", 4)).number("train_loss"), 2.5);
}

TEST(Quantities, are_nan_for_metrics_that_were_not_logged) {
  const ScratchDir dir;
  const Row run = load_run(counting_run(dir / "a", 0));
  for (const Quantity& each : quantities()) {
    EXPECT_TRUE(std::isnan(run.number(each))) << each.name;
  }
}

TEST(Quantities, of_a_diverged_run_have_no_final_loss) {
  const ScratchDir dir;
  const Row run = load_run(write_run(dir / "a", {.name = "diff_v1", .diverge_at = 400}));
  EXPECT_TRUE(std::isnan(run.number("train_loss")));
  EXPECT_TRUE(std::isnan(run.number("val_loss")));
  EXPECT_EQ(run.status.diverged->step, 400);
}

TEST(DifferingKeys, compares_numbers_and_defaults_and_ignores_keys_of_other_versions) {
  const ScratchDir dir;
  const Row run = load_run(write_run(dir / "a", {.steps = 20}));
  Row other = run;
  other.config["optim.lr"] = "1e-3";
  other.config.erase("optim.max_grad_norm");
  other.config["data.of_another_version"] = "7";
  EXPECT_THAT(differing_keys(run, other), IsEmpty()) << "0.001 is 1e-3, a default is missing";
  Row third = other;
  third.config["data.of_another_version"] = "8";
  EXPECT_THAT(differing_keys(third, other), ElementsAre("data.of_another_version"));
  other.config["optim.max_grad_norm"] = "7";
  other.config["model.d_model"] = "64";
  EXPECT_THAT(differing_keys(run, other), ElementsAre("model.d_model", "optim.max_grad_norm"));
}

TEST(LoadRun, rejects_other_directories) {
  const ScratchDir dir;
  EXPECT_THAT([&] { load_run(dir.path()); },
              ThrowsMessage<MissingInput>(HasSubstr("is not a run directory")));
}

TEST(CollectRuns, names_runs_with_equal_names_by_their_directory) {
  const ScratchDir dir;
  const std::vector<fs::path> dirs = {write_run(dir / "a", {.name = "twin"}),
                                      write_run(dir / "b", {.name = "twin"}),
                                      write_run(dir / "c", {.name = "single"})};
  const std::vector<Row> runs = collect_runs(dirs).runs;
  EXPECT_EQ(runs[0].name, dirs[0].string());
  EXPECT_EQ(runs[1].name, dirs[1].string());
  EXPECT_EQ(runs[2].name, "single");
}

/// Returns a copy of the build in env.json with other values of some keys.
void set_build(const fs::path& run, const std::map<std::string, std::string>& keys) {
  auto env = system::parse_json(contents(run / "env.json"));
  for (const auto& [key, value] : keys) {
    if (value.empty()) {
      env["build"].erase(key);
    } else {
      env["build"][key] = value;
    }
  }
  put(run / "env.json", env.dump());
}

TEST(CollectRuns, notes_runs_of_several_commits_or_builds_in_one_line) {
  const ScratchDir dir;
  std::vector<fs::path> dirs;
  for (const char* name : {"a", "b", "c"}) {
    dirs.push_back(write_run(dir / name, {.name = name, .steps = 20}));
  }
  EXPECT_TRUE(collect_runs(dirs).notes.empty());
  set_build(dirs[1], {{"version", "0.2.0"}, {"compiler", ""}});
  EXPECT_TRUE(collect_runs(dirs).notes.empty()) << "an older run that does not say";
  set_build(dirs[2], {{"commit", "4567cdef"}});
  EXPECT_THAT(
      collect_runs(dirs).notes,
      ElementsAre(
          "runs of 2 commits: 0123abcd (2 runs), 4567cdef (1 run); their results may differ"));
  set_build(dirs[0], {{"compiler", "Clang 19"}});
  EXPECT_THAT(
      collect_runs(dirs).notes,
      ElementsAre("runs of 3 builds: 0123abcd Clang 19 (1 run), 0123abcd unknown "
                  "compiler (1 run), 4567cdef GCC 12.2.0 (1 run); their results may differ"));
}

TEST(Curve, holds_the_finite_points_of_a_metric) {
  const run::MetricsTable table{{1, 2, 3, 4}, {{"a", {5, kNaN, kInfinity, 6}}}};
  EXPECT_EQ(curve(table, "a").step, (std::vector<double>{1, 4}));
  EXPECT_EQ(curve(table, "a").value, (std::vector<double>{5, 6}));
  EXPECT_TRUE(curve(table, "b").step.empty());
}

TEST(Spikes, are_found_in_the_logged_metrics) {
  const ScratchDir dir;
  const LoadedRun run = load_directory(write_run(dir / "a", {.spike_at = 300}));
  EXPECT_EQ(measures::counted_spikes(run, "optim/grad_norm").step, std::vector<double>{300});
}

TEST(LoadRun, rejects_impossible_seeds) {
  const ScratchDir dir;
  const auto yaml = write_run(dir / "a", {.steps = 20}) / "config.yaml";
  const std::string sound = contents(yaml);
  const auto refused = [&](const std::string& more) {
    put(yaml, sound + more);
    return message_of<ConfigError>([&] { load_run(dir / "a"); });
  };
  EXPECT_EQ(refused(""), "");
  for (const char* seed : {"-1", "1.5", "many"})
    EXPECT_THAT(refused(fmt::format("run.seed: {}\n", seed)), HasSubstr("run.seed"));
}

}  // namespace
}  // namespace difftape::study
