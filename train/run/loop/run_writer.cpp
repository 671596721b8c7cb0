#include "train/run/loop/run_writer.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <ostream>
#include <tuple>

#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/platform.h"
#include "core/profile.h"
#include "layers/cost.h"
#include "train/run/config/writer.h"
#include "train/run/loop/continuation.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::run {
namespace {

using Json = nlohmann::ordered_json;
using profile::Category;

Json arguments_of(const profile::Event& event) {
  if (event.scope.empty()) return Json::object();
  return {{event.category == Category::step ? "step" : "layer", event.scope}};
}

}  // namespace

std::string trace_json(std::span<const profile::Event> events) {
  Json all = Json::array();
  const auto name_thread = [&](const char* what, const char* name) {
    all.push_back(
        {{"name", what}, {"ph", "M"}, {"pid", 1}, {"tid", 1}, {"args", {{"name", name}}}});
  };
  name_thread("process_name", "difftape");
  name_thread("thread_name", "main");
  for (const profile::Event& event : events) {
    all.push_back({{"name", event.name},
                   {"cat", to_string(event.category)},
                   {"ph", "X"},
                   {"ts", static_cast<double>(event.begin) / 1e3},
                   {"dur", static_cast<double>(event.end - event.begin) / 1e3},
                   {"pid", 1},
                   {"tid", 1},
                   {"args", arguments_of(event)}});
  }
  return system::json_text(Json{{"displayTimeUnit", "ms"}, {"traceEvents", std::move(all)}}) + "\n";
}

std::string profile_text(const profile::Table& table, double step_tokens, double step_flops) {
  const double steps = static_cast<double>(table.steps);
  const auto calls = [&](const profile::Cost& cost) {
    return fmt::format("{:.4g}", static_cast<double>(cost.calls) / steps);
  };
  system::Table text{{{"", "op", true},
                      {"forward", "calls"},
                      {"forward", "ms"},
                      {"backward", "calls"},
                      {"backward", "ms"},
                      {"", "ms/step"},
                      {"", "%"}},
                     {}};
  const auto add = [&](const std::string& name, std::vector<std::string> cells, double ms) {
    cells.insert(cells.begin(), name);
    cells.push_back(fmt::format("{:.3f}", ms / steps));
    cells.push_back(fmt::format("{:.1f}", 100 * ms / table.ms));
    text.rows.push_back(std::move(cells));
  };
  for (const profile::Row& op : table.ops) {
    std::vector<std::string> cells;
    for (const profile::Cost& cost : {op.forward, op.backward}) {
      cells.push_back(cost.calls == 0 ? "-" : calls(cost));
      cells.push_back(cost.calls == 0 ? "-" : fmt::format("{:.3f}", cost.ms / steps));
    }
    add(op.name, cells, op.ms());
  }
  for (const profile::Row& phase : table.phases)
    add(phase.name, {calls(phase.forward), "", "", ""}, phase.ms());
  add("rest", {"", "", "", ""}, table.rest_ms);
  add("step", {"", "", "", ""}, table.ms);
  const double seconds = table.ms / 1e3 / steps;
  return fmt::format("profile of {} steps: {} tokens/s, {:.1f} GFLOP/s\n{}", table.steps,
                     system::grouped(static_cast<Index>(step_tokens / seconds)),
                     step_flops / seconds / 1e9, to_text(text));
}

namespace {

namespace fs = std::filesystem;

/// Returns version, compiler and engines of this program.
Json describe_build() {
  const BuildInfo build = build_info();
  return {{"version", build.version},       {"commit", build.commit},
          {"compiler", build.compiler},     {"build_type", build.build_type},
          {"precision", build.precision},   {"vectors", build.vectors},
          {"gemm_backend", gemm_backend()}, {"bf16_backend", bf16_backend_name()}};
}

/// Returns the description of the data, with the best achievable loss if it is known.
Json describe_data(const Dataset& data) {
  Json info = data.info();
  if (const std::optional<BestAchievable> best = data.best()) {
    info["best_loss"] = best->loss;
    info["best_accuracy"] = best->accuracy;
  }
  return info;
}

/// Returns a line with the number and the last of the spikes, and the spike score; empty if a run
/// has no spikes.
std::string spike_line(const fs::path& metrics_file) {
  constexpr const char *kLoss = metric("train/loss"), *kGradNorm = metric("optim/grad_norm");
  const MetricsTable metrics = read_metrics(metrics_file, {kLoss, kGradNorm});
  std::vector<std::string> counts, scores;
  for (const auto& [what, name, series] :
       {std::tuple{"loss", kLoss, stats::SpikeSeries::loss},
        std::tuple{"gradient norm", kGradNorm, stats::SpikeSeries::grad_norm}}) {
    const auto found = metrics.columns.find(name);
    if (found == metrics.columns.end()) continue;
    const std::vector<double>& values = found->second.values();
    const std::vector<std::size_t> spikes = stats::spikes_of(values, series);
    if (!spikes.empty()) {
      counts.push_back(
          fmt::format("{} of the {}, last at step {}", spikes.size(), what,
                      static_cast<Index>(metrics.step[found->second.row(spikes.back())])));
    }
    scores.push_back(fmt::format("{} {:.2f} %", what, stats::spike_score(values)));
  }
  if (counts.empty()) return "";
  return fmt::format("spikes: {}; spike score (OLMo 2): {}", fmt::join(counts, "; "),
                     fmt::join(scores, ", "));
}

/// Returns a stream that discards its input, for runs without a console.
std::ostream& null_stream() {
  static std::ostream stream(nullptr);
  return stream;
}

}  // namespace

RunDir write_start(const TrainState& state, const TrainRequest& request) {
  std::error_code ignored;
  fs::remove(request.out / "stdout.log", ignored);  // of a start that was killed
  system::replace_text(request.out / "config.yaml", to_yaml(state.config));
  Json facts{{"build", describe_build()}, {"data", describe_data(*state.data)}};
  if (const auto& origin = state.origin) {
    facts["init_from"] = {{"checkpoint", origin->checkpoint.string()},
                          {"step", origin->step},
                          {"xxh3_128", origin->digest}};
  }
  return {request.out, {}, write_env(request.out, request.command, facts), state.config};
}

RunWriter::RunWriter(const TrainState& state, const TrainRequest& request, const RunDir& run,
                     double peak)
    : dir_(request.out),
      metrics_(dir_ / "metrics.jsonl"),
      progress_(request.console ? *request.console : null_stream(),
                console_style(request.console_descriptor), dir_ / "stdout.log",
                state.config.train.steps, state.step),
      flops_per_token_(
          model_cost(state.config.model, state.config.data.seq_len).train_flops_per_token),
      peak_(peak) {
  const Config& config = state.config;
  if (config.log.tensorboard) events_.emplace(dir_);
  status_.started = run.status.started;
  status_.steps = config.train.steps;
  status_.parameters = state.model.parameters().count();
  status_.tokens_per_step = tokens_per_step(config);
  const MetricsTable metrics = read_metrics(dir_ / "metrics.jsonl", {metric("train/loss")});
  for (const auto& [name, losses] : metrics.columns)  // of the steps before
    for (const double loss : losses.values()) add_loss(loss);
}

void RunWriter::step(const TrainState& state, const Step& step) {
  const profile::Span span(profile::Category::phase, "log");
  status_.step = step.step;  // failed() records it
  StepReport report{step.step, step.loss, step.norms.global, step.lr};
  report.tokens_per_sec = static_cast<double>(tokens_per_step(state.config)) / step.seconds;
  report.peak_fraction = report.tokens_per_sec * flops_per_token_ / peak_;
  report.val_loss = step.val_loss;
  add_loss(step.loss);
  report.spikes = spikes_;
  const Metrics metrics = metrics_of(state, step,
                                     {{metric("throughput/tokens_per_sec"), report.tokens_per_sec},
                                      {metric("throughput/mfu"), report.peak_fraction}});
  metrics_.write(step.step, metrics);
  if (events_) events_->write(step.step, metrics);
  // An attention kind with a custom context function has no maps.
  if (step.diagnostics && !step.diagnostics->maps.layers.empty()) maps_ = step.diagnostics->maps;
  progress_.step(report);
  const std::string domains = text_of_domains(step);
  if (step.step == state.config.train.steps && !domains.empty())
    progress_.note("validation loss by domain: " + domains);
}

void RunWriter::checkpoint(const TrainState& state) {
  const profile::Span span(profile::Category::phase, "checkpoint");
  metrics_.sync();  // resuming needs the metrics of all steps before the checkpoint
  write_maps();
  state.save(dir_ / "checkpoints");
  prune(state);
  write_state(state, RunState::running);
}

void RunWriter::profile(const TrainState& state, const ProfiledSteps& steps) {
  const std::span<const profile::Event> events = steps.events();
  const double tokens = static_cast<double>(tokens_per_step(state.config));
  const std::string text =
      profile_text(profile::table_of(events), tokens, tokens * flops_per_token_);
  system::replace_text(dir_ / "trace.json", trace_json(events));
  system::replace_text(dir_ / "profile.txt", text);
  progress_.note(std::string_view(text).substr(0, text.size() - 1));  // note() adds the line end
}

void RunWriter::end(const TrainState& state, RunState run_state, system::Exit exit,
                    const std::string& line) {
  prune(state);  // again, because the process before may have ended before it
  write_maps();
  status_.exit_code = static_cast<int>(exit);
  write_state(state, run_state);
  if (const std::string spikes = spike_line(dir_ / "metrics.jsonl"); !spikes.empty())
    progress_.note(spikes);
  progress_.note(line);
}

void RunWriter::end_diverged(const TrainState& state, const Step& step) {
  const Divergence& where = step.diverged.value();
  status_.diverged = where;
  const std::string first =
      where.parameter.empty() ? "" : fmt::format(", first in {}", where.parameter);
  const std::string op = where.op.empty() ? "" : fmt::format("; first op: {}", where.op);
  end(state, RunState::diverged, system::Exit::diverged,
      fmt::format("diverged at step {}: {} is not finite{}{}", where.step, where.quantity, first,
                  op));
}

void RunWriter::failed() noexcept {
  try {
    status_.state = RunState::failed;
    write_status(dir_, status_);
  } catch (const std::exception&) {
    // The disk may be full; the original error is the one to report.
  }
}

/// Writes the attention maps unless the file has them.
void RunWriter::write_maps() {
  if (maps_) write_attention_maps(dir_ / kMapsFile, *maps_);
  maps_.reset();
}

void RunWriter::prune(const TrainState& state) const {
  const TrainConfig& config = state.config.train;
  prune_checkpoints(dir_ / "checkpoints", config.checkpoint_interval, config.keep_last);
}

void RunWriter::write_state(const TrainState& state, RunState run_state) {
  status_.state = run_state;
  status_.step = state.step;
  write_status(dir_, status_);
}

}  // namespace difftape::run
