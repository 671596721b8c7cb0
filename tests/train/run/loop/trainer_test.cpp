#include "train/run/loop/trainer.h"

#include "core/pool.h"
#include "tests/support/threads.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/config/reader.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/h5.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics_difference.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

using test::steps_with;

std::set<std::string> names_in(const fs::path& dir) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(dir)) names.insert(entry.path().filename());
  return names;
}

TEST(Trainer, leaves_a_complete_run_directory) {
  TinyProject project("diff_v2");
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const fs::path run = project / "run";
  EXPECT_EQ(names_in(run),
            (std::set<std::string>{"attention_maps.h5", "checkpoints", "config.yaml", "env.json",
                                   "lock", "metrics.jsonl", "status.json", "stdout.log"}));
  EXPECT_EQ(contents(run / "config.yaml"), to_yaml(project.config));
  EXPECT_EQ(to_yaml(load_config(run / "config.yaml").config), to_yaml(project.config));
  EXPECT_EQ(contents(run / "stdout.log"), project.console.str());
  EXPECT_THAT(project.console.str(),
              AllOf(HasSubstr("step  1/12  ETA"), HasSubstr("step 12/12  ETA"),
                    HasSubstr("finished; results are in " + run.string())));

  const RunStatus status = read_status(run);
  EXPECT_EQ(status.state, RunState::finished);
  EXPECT_EQ(status.step, 12);
  EXPECT_EQ(status.steps, 12);
  EXPECT_EQ(status.exit_code, 0);
  EXPECT_EQ(status.tokens_per_step, 32);
  EXPECT_EQ(status.parameters, LanguageModel(project.config.model).parameters().count());

  const auto env = read_env(run);
  EXPECT_EQ(env["command"].dump(), R"(["difftape","train","tiny.yaml"])");
  EXPECT_EQ(config_of_run(run).model.attention.kind.name(), "diff_v2");
  EXPECT_EQ(env["data"]["bytes"], fs::file_size(project / "text.txt"));
  EXPECT_EQ(env["build"]["precision"], "f32");

  const CheckpointMeta meta = Checkpoint(find_checkpoint(run)).meta();
  EXPECT_EQ(meta.step, 12);
  EXPECT_EQ(meta.config_yaml, to_yaml(project.config));
}

/// Returns the names under which a text run of `model`, which has two maps, logs one metric.
std::set<std::string> names_of(const Metric& metric, LanguageModel& model) {
  const ModelConfig& config = model.config();
  const bool logged = metric.of == Of::any || metric.of == Of::text || metric.of == Of::two_maps ||
                      (metric.of == Of::z_loss && config.z_loss_weight > 0) ||
                      (metric.of == Of::moe && config.moe.num_experts > 0) ||
                      (metric.of == Of::router_loss && config.moe.router_z_loss_coef > 0) ||
                      (metric.of == Of::qk_clip && config.attention.qk_clip_threshold > 0);
  if (!logged) return {};
  std::set<std::string> names;
  if (!has_parts(metric.per))
    names.insert(metric.name);
  else if (metric.per == Per::parameter)
    for (const Parameter& p : model.parameters()) {
      if (p.role != Role::state) names.insert(metric_of(metric.name, p.name));
    }
  else
    for (const std::string layer : {"0", "1"}) {
      if (metric.per == Per::layer) names.insert(metric_of(metric.name, layer));
      for (Index e = 0; metric.per == Per::expert && e < config.moe.num_experts; ++e)
        names.insert(metric_of(metric.name, fmt::format("{}/{}", layer, e)));
    }
  return names;
}

/// Trains a run with two maps and expects it to log exactly the metrics of the registry.
void expect_the_metrics_of_the_registry(TinyProject& project) {
  project.config.log.param_grad_norms_interval = 6;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  LanguageModel model(project.config.model);
  ASSERT_GT(model.parameters().count(), 20);
  const auto lines = metrics_lines(project / "run");
  ASSERT_EQ(lines.size(), 12u);
  for (size_t i = 0; i < lines.size(); ++i) {
    const Index step = static_cast<Index>(i) + 1;
    const std::map<When, bool> logs{{When::step, true},
                                    {When::validation, step % 5 == 0 || step == 12},
                                    {When::parameters, step % 6 == 0},
                                    {When::diagnostics, step == 1 || step == 12}};
    std::set<std::string> expected{"step"}, found;
    for (const Metric& metric : kMetrics)
      if (logs.at(metric.when)) expected.merge(names_of(metric, model));
    for (const auto& [name, value] : lines[i].items()) found.insert(name);
    EXPECT_EQ(found, expected) << "step " << step;
    EXPECT_EQ(lines[i]["step"], step);
    EXPECT_GT(lines[i]["throughput/mfu"], 0);
  }
}

TEST(Trainer, logs_the_metrics_of_the_registry_and_no_others) {
  TinyProject plain("diff_v1"), with_remedies("diff_v1");
  with_remedies.config.model.z_loss_weight = 1e-4;
  with_remedies.config.model.attention.qk_clip_threshold = 100;
  expect_the_metrics_of_the_registry(plain);
  expect_the_metrics_of_the_registry(with_remedies);
  TinyProject with_experts("diff_v1");
  with_experts.config.model.moe = test::every_part_of_moe();
  expect_the_metrics_of_the_registry(with_experts);
  const auto last = metrics_lines(with_experts / "run").back();
  double load = 0, largest = 0;
  for (int expert = 0; expert < 4; ++expert) {
    const double of_expert = last[fmt::format("moe/load/1/{}", expert)];
    load += of_expert;
    largest = std::max(largest, of_expert);
  }
  EXPECT_NEAR(load, 1, 1e-12);
  EXPECT_EQ(last["moe/load_max/1"], largest);
  EXPECT_GT(last["moe/router_entropy/1"], 0.5);
  EXPECT_LE(last["moe/router_entropy/1"], std::log(4.0));
  EXPECT_GT(last["train/router_loss"], 0.01) << "E sum(f P) is at least about k";
}

TEST(Trainer, squared_parameter_norms_sum_to_the_squared_global_norm) {
  TinyProject project;
  project.config.log.param_grad_norms_interval = 1;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  for (const auto& line : metrics_lines(project / "run")) {
    double sum = 0;
    for (const auto& [name, value] : line.items())
      if (name.starts_with("optim/grad_norm/")) sum += value.get<double>() * value.get<double>();
    EXPECT_NEAR(std::sqrt(sum), line["optim/grad_norm"].get<double>(), 1e-9);
  }
}

TEST(Trainer, every_attention_kind_learns) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    project.config.train.steps = 60;
    ASSERT_EQ(project.train("run"), system::Exit::ok);
    const MetricsTable table = read_metrics(project / "run/metrics.jsonl");
    const auto& loss = table.columns.at("train/loss").values();
    const auto& val = table.columns.at("val/loss").values();
    EXPECT_NEAR(loss.front(), std::log(256), 0.2) << kind;
    EXPECT_LT(loss.back(), 3.2) << kind;
    EXPECT_LT(val.back(), 3.2) << kind << ": validation follows";
    EXPECT_LT(val.back(), val.front()) << kind;
  }
}

TEST(Trainer, validates_at_the_interval_and_at_the_end) {
  TinyProject project;
  ASSERT_EQ(project.train("both"), system::Exit::ok);
  EXPECT_THAT(steps_with(project / "both", "val/loss"), ElementsAre(5, 10, 12));
  project.config.train.eval_interval = 0;
  ASSERT_EQ(project.train("end"), system::Exit::ok);
  EXPECT_THAT(steps_with(project / "end", "val/loss"), ElementsAre(12));
  EXPECT_EQ(metrics_lines(project / "both").back()["val/loss"],
            metrics_lines(project / "end").back()["val/loss"])
      << "validation leaves no trace in the training";
}

TEST(Trainer, keeps_a_checkpoint_at_the_interval_and_at_the_end) {
  TinyProject project;
  project.config.train.checkpoint_interval = 5;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_EQ(names_in(project / "run/checkpoints"),
            (std::set<std::string>{"step-00000005.h5", "step-00000010.h5", "step-00000012.h5"}));
}

TEST(Trainer, validates_on_all_held_out_data_after_the_last_step) {
  TinyProject project;
  project.config.train.eval_batches = 1;
  TrainState state(project.config);
  const Index all = state.data->val_batches();
  ASSERT_GT(all, 3);
  const auto mean_of = [&](Index batches) {
    double sum = 0, weights = 0;
    for (Index i = 0; i < batches; ++i) {
      Tape tape(Tape::Mode::inference);
      const Batch batch = state.data->val_batch(i);
      const double weight = static_cast<double>(batch.batch) / 2;  // the last has one sequence
      sum += weight * static_cast<double>(state.loss(tape, batch).value().item());
      weights += weight;
    }
    return sum / weights;
  };
  EXPECT_DOUBLE_EQ(state.validate().loss, mean_of(1));
  state.step = project.config.train.steps;
  EXPECT_DOUBLE_EQ(state.validate().loss, mean_of(all));
  state.config.train.final_eval_batches = 3;
  EXPECT_DOUBLE_EQ(state.validate().loss, mean_of(3));
}

/// Records the number of system allocations at every console line.
class AllocationsByLine : public std::stringbuf {
 public:
  std::vector<std::uint64_t> seen;

 private:
  int sync() override {
    seen.push_back(pool::stats().system_allocations);
    return 0;
  }
};

TEST(Trainer, a_signal_ends_the_validation_after_the_last_step) {
  TinyProject project;
  project.config.train.steps = 3;
  project.config.train.eval_interval = 1;
  TrainState state(project.config);
  state.stopped = [] { return true; };
  for (int step = 1; step < 3; ++step) EXPECT_GT(take_logged_step(state).val_loss, 0);
  EXPECT_THROW(take_logged_step(state), ValidationStopped);
}

TEST(Trainer, allocates_no_tensor_after_the_second_step_with_1_or_2_threads) {
  for (const std::string& kind : attention_kinds()) {
    for (const int threads : {1, 2}) {
      TinyProject project(kind);
      const test::Threads use(threads);
      Config config = threads == 1 ? test::wider(project.config) : project.config;
      config.train.gradient_accumulation_steps = 2;
      config.train.eval_interval = config.train.checkpoint_interval = 2;
      config.log.diagnostics_interval = 1;  // two exist at a time from step 2 on
      pool::trim();
      const auto before = pool::stats().system_allocations;
      AllocationsByLine lines;
      std::ostream console(&lines);
      ASSERT_EQ(train(config, {.out = project / "run", .console = &console}), system::Exit::ok);
      ASSERT_EQ(lines.seen.size(), 15u) << "two lines for the data, one per step, and a last line";
      EXPECT_GT(lines.seen[3], before + 50) << "the pool was empty before";
      EXPECT_EQ(lines.seen[3], lines.seen.back()) << kind << ", threads " << threads;
    }
  }
}

}  // namespace
}  // namespace difftape::run
