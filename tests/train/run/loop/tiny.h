#pragma once
// Fast runs for tests: a learnable text, a tiny model and a project directory.

#include "core/random.h"
#include "layers/language_model.h"
#include "tests/support/threads.h"
#include "tests/train/app/program.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/writer.h"
#include "train/run/loop/trainer.h"
#include "train/system/json.h"

namespace difftape::test {

/// Returns 10 KB of words in random order, in which most bytes determine the next one.
inline std::string tiny_text() {
  constexpr std::array kWords{"the ",   "quick ", "brown ", "fox ",
                              "jumps ", "over ",  "lazy ",  "dog.\n"};
  const RandomStream stream(1, "tiny text");
  std::string text;
  for (std::uint64_t i = 0; text.size() < 10000; ++i)
    text += kWords[stream.below(i, kWords.size())];
  return text;
}

/// A directory with text.txt, tiny.yaml and runs. Runs use one thread by default, because threads
/// with so little work mostly wait for each other.
class TinyProject {
 public:
  explicit TinyProject(const std::string& kind = "softmax") {
    put(dir_ / "text.txt", tiny_text());
    config.run.name = "tiny";
    config.model = {.d_model = 16, .num_layers = 2, .num_heads = 2, .d_ff = 24, .max_seq_len = 16};
    config.model.attention.kind = kind;
    config.data.path = {(dir_ / "text.txt").string()};
    config.data.seq_len = 16;
    config.data.batch_size = 2;
    config.model.init.preset = InitPreset::gpt2;  // the loss at initialization is log(vocab_size)
    config.optim.lr = 1e-2;
    config.optim.min_lr = 1e-3;
    config.optim.schedule = ScheduleKind::cosine;
    config.optim.warmup_steps = 5;
    config.optim.weight_decay = 0.1;
    config.optim.independent_weight_decay = false;
    config.train.steps = 12;
    config.train.eval_interval = 5;
    config.train.eval_batches = 2;
    save();
  }

  /// Writes `config` to tiny.yaml.
  void save() const { put(dir_ / "tiny.yaml", run::to_yaml(config)); }
  fs::path operator/(const std::string& name) const { return dir_ / name; }
  const fs::path& path() const { return dir_.path(); }

  /// Trains in this process.
  system::Exit train(const std::string& out, bool resume = false) {
    run::TrainRequest request;
    request.out = dir_ / out;
    request.resume = resume;
    request.command = {"difftape", "train", "tiny.yaml"};
    request.console = &console;
    request.checkpoint_after = checkpoint_after;
    return run::train(config, request);
  }

  /// Runs the program in the directory.
  Outcome difftape(const std::vector<std::string>& arguments, Conditions conditions = {}) const {
    return run(arguments, here(std::move(conditions)));
  }
  Conditions here(Conditions conditions = {}) const {
    conditions.directory = dir_.path();
    conditions.environment.emplace_back("OMP_NUM_THREADS", "1");
    return conditions;
  }

  run::Config config;
  std::ostringstream console;
  std::chrono::duration<double> checkpoint_after = std::chrono::minutes(5);

 private:
  ScratchDir dir_;
  Threads one_{1};
};

/// Returns a mixture of experts with every option.
inline MoeConfig every_part_of_moe() {
  return {.num_experts = 4,
          .num_experts_per_tok = 2,
          .num_shared_experts = 1,
          .moe_intermediate_size = 12,
          .scoring_func = RouterScore::sigmoid,
          .router_aux_loss_coef = 0.01,
          .router_z_loss_coef = 0.001,
          .router_bias_update_rate = 0.01};
}

/// Returns a configuration wide enough for every kernel to use several blocks.
inline run::Config wider(run::Config config) {
  config.model.d_model = 64;
  config.model.num_heads = config.model.num_kv_heads = 4;
  config.model.d_ff = 160;
  config.model.max_seq_len = config.data.seq_len = 64;
  config.data.batch_size = 8;
  return config;
}

/// Returns a configuration whose first step overflows every parameter.
inline run::Config explosive(run::Config config) {
  config.optim.lr = 1e30;
  config.optim.max_grad_norm = 0;
  config.optim.warmup_steps = 0;
  config.train.eval_interval = 0;
  return config;
}

/// Returns one JSON object per logged step.
inline std::vector<nlohmann::ordered_json> metrics_lines(const fs::path& run) {
  std::vector<nlohmann::ordered_json> lines;
  std::istringstream file(contents(run / "metrics.jsonl"));
  for (std::string line; std::getline(file, line);) lines.push_back(system::parse_json(line));
  return lines;
}

/// Returns the steps that logged a metric.
inline std::vector<Index> steps_with(const fs::path& run, const std::string& metric) {
  std::vector<Index> steps;
  for (const auto& line : metrics_lines(run))
    if (line.contains(metric)) steps.push_back(line["step"]);
  return steps;
}

inline std::vector<double> losses(const fs::path& run) {
  std::vector<double> found;
  for (const auto& line : metrics_lines(run)) found.push_back(line["train/loss"]);
  return found;
}

/// Returns all metrics of a run except its speed as text that keeps every bit.
inline std::string measured(const fs::path& run) {
  std::string text;
  for (nlohmann::ordered_json line : metrics_lines(run)) {
    line.erase("throughput/tokens_per_sec");
    line.erase("throughput/mfu");
    text += line.dump() + "\n";
  }
  return text;
}

inline std::string last_checkpoint(const fs::path& run) {
  return contents(run::find_checkpoint(run));
}

/// Leaves a run as if it was killed some steps after its checkpoint at `step`.
inline void remove_checkpoints_after(Index step, const fs::path& run) {
  for (const auto& [at, file] : run::checkpoints_in(run / "checkpoints"))
    if (at > step) fs::remove(file);
}

/// Copies `whole` to `cut` as if the run was killed some steps after its checkpoint at `step`.
inline void cut_after(Index step, const fs::path& whole, const fs::path& cut) {
  fs::copy(whole, cut, fs::copy_options::recursive);
  remove_checkpoints_after(step, cut);
}

inline void expect_the_same_run(const fs::path& a, const fs::path& b) {
  EXPECT_EQ(measured(a), measured(b));
  EXPECT_EQ(last_checkpoint(a), last_checkpoint(b));
}

/// Expects equal runs with 1, 2 and 4 threads, with several blocks of work in every kernel.
inline void expect_the_same_bits_with_threads(TinyProject& project) {
  project.config = wider(project.config);
  for (const int threads : {1, 2, 4}) {
    const Threads use(threads);
    ASSERT_EQ(project.train(std::to_string(threads)), system::Exit::ok);
  }
  expect_the_same_run(project / "1", project / "2");
  expect_the_same_run(project / "1", project / "4");
}

}  // namespace difftape::test

namespace difftape {

using test::measured;
using test::metrics_lines;
using test::TinyProject;

}  // namespace difftape
