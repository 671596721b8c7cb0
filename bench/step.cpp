// Compares whole training steps (batch, forward, backward, clipping, AdamW) of several attention
// kinds, interleaved within one run: tokens per second and the fraction of the measured peak.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "bench/measure.h"
#include "core/error.h"
#include "core/platform.h"
#include "core/profile.h"
#include "layers/cost.h"
#include "train/app/analyze/kinds.h"
#include "train/run/config/model_conflicts.h"
#include "train/run/config/reader.h"
#include "train/run/loop/step.h"
#include "train/run/records/profile_files.h"
#include "train/system/text_table.h"

namespace difftape {
namespace {

/// Every kind, the baseline before those that are compared with it.
std::vector<std::string> baseline_first() {
  std::vector<std::string> kinds = attention_kinds();
  std::stable_partition(kinds.begin(), kinds.end(),
                        [](const std::string& kind) { return kind == AttentionKind(); });
  return kinds;
}

struct Arguments {
  std::string config;
  std::vector<std::string> kinds = baseline_first(), overrides;
  int rounds = 10, steps = 3;
  bool by_op = false;
};

/// One kind with all its measured steps.
struct Candidate {
  std::unique_ptr<run::TrainState> state;
  double flops_per_token;
  std::vector<double> tokens_per_sec, peak_share;
};

std::vector<Candidate> make_candidates(const Arguments& arguments) {
  std::vector<Candidate> all;
  for (const std::string& kind : arguments.kinds) {
    run::Config config = run::load_config(arguments.config, arguments.overrides).config;
    config.model = app::with_kind(config.model, kind);
    const std::string unsupported = run::unsupported_reason(config.model);
    if (!unsupported.empty()) throw ConfigError(fmt::format("{}: {}", kind, unsupported));
    const ModelCost cost = model_cost(config.model, config.data.seq_len);
    all.push_back({std::make_unique<run::TrainState>(config), cost.train_flops_per_token, {}, {}});
    for (int warm = 0; warm < 2; ++warm) train_step(*all.back().state);
  }
  return all;
}

void run_interleaved(std::vector<Candidate>& all, const Arguments& arguments) {
  for (int round = 0; round < arguments.rounds; ++round) {
    for (Candidate& each : all) {
      const double peak = measure_fma_peak(0.02);
      for (int i = 0; i < arguments.steps; ++i) {
        const double seconds = train_step(*each.state).seconds;
        const double rate = static_cast<double>(tokens_per_step(each.state->config)) / seconds;
        each.tokens_per_sec.push_back(rate);
        each.peak_share.push_back(rate * each.flops_per_token / peak);
      }
    }
  }
}

/// Profiles one kind in separate steps after the comparison.
void print_by_op(Candidate& each, int steps) {
  profile::Recorder recorder;
  {
    const profile::Recording recording(recorder);
    for (int i = 0; i < steps; ++i) {
      const profile::Span step(profile::Category::step, "step");
      train_step(*each.state);
    }
  }
  const auto tokens = static_cast<double>(tokens_per_step(each.state->config));
  fmt::print("\n{}: {}", each.state->config.model.attention.kind.name(),
             run::profile_text(profile::table_of(recorder.events()), tokens,
                               tokens * each.flops_per_token));
}

void print(const std::vector<Candidate>& all) {
  system::Table table{{{"", "attention", true},
                       {"", "parameters"},
                       {"tokens/s", "median"},
                       {"tokens/s", "10 %"},
                       {"tokens/s", "90 %"},
                       {"", "of peak"},
                       {"", "vs first"}},
                      {}};
  const double first = stats::quantile(all.front().tokens_per_sec, 0.5);
  for (const Candidate& each : all) {
    const auto rate = [&](double q) {
      return system::grouped(static_cast<Index>(stats::quantile(each.tokens_per_sec, q)));
    };
    table.rows.push_back(
        {std::string(each.state->config.model.attention.kind.name()),
         system::grouped(each.state->model.parameters().count()), rate(0.5), rate(0.1), rate(0.9),
         fmt::format("{:.1f} %", 100 * stats::quantile(each.peak_share, 0.5)),
         fmt::format("{:.3f}", stats::quantile(each.tokens_per_sec, 0.5) / first)});
  }
  fmt::print("{}", to_text(table));
}

void compare(const Arguments& arguments) {
  std::vector<Candidate> all = make_candidates(arguments);
  const run::Config& config = all.front().state->config;
  bench::print_environment();
  fmt::print("{}\n\n", bench::describe(config));
  run_interleaved(all, arguments);
  print(all);
  if (!arguments.by_op) return;
  for (Candidate& each : all) print_by_op(each, 10);
}

}  // namespace
}  // namespace difftape

int main(int argc, char** argv) {
  CLI::App app("whole training steps of several attention kinds, interleaved");
  difftape::Arguments arguments;
  app.add_option("CONFIG", arguments.config)->required();
  app.add_option("--kinds", arguments.kinds)->delimiter(',');
  app.add_option("--set", arguments.overrides)->allow_extra_args(false)->take_all();
  app.add_option("--rounds", arguments.rounds)->check(CLI::PositiveNumber);
  app.add_flag("--by-op", arguments.by_op, "then ten steps of each kind, by op");
  app.add_option("--steps", arguments.steps, "steps of one kind in a round")
      ->check(CLI::PositiveNumber);
  return difftape::bench::run_program(app, argc, argv, [&] { difftape::compare(arguments); });
}
