#include "train/run/loop/run_writer.h"

#include <cmath>
#include <iostream>

#include "core/build_info.h"
#include "core/gemm.h"
#include "core/peak.h"
#include "core/profile.h"
#include "layers/cost.h"
#include "train/run/config/writer.h"
#include "train/run/loop/dump.h"
#include "train/run/loop/restore.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics_h5.h"
#include "train/run/records/profile_files.h"
#include "train/system/files.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Long enough for the best of some 500 windows, short beside the first step, which waits for it.
constexpr double kPeakSeconds = 0.01;

Json describe_build() {
  const BuildInfo build = build_info();
  return {{"version", build.version},       {"commit", build.commit},
          {"compiler", build.compiler},     {"build_type", build.build_type},
          {"precision", build.precision},   {"vectors", build.vectors},
          {"matrix_engine", gemm_engine()}, {"bfloat16_engine", bf16_engine_name()}};
}

/// Facts about the data, and what any model can hope for where that is known.
Json describe_data(const Dataset& data) {
  Json info = data.info();
  if (is_task(data)) {
    info["best_loss"] = data.best_loss();
    info["best_accuracy"] = data.best_accuracy();
  }
  return info;
}

/// Makes or checks the directory; from then on no other process trains there.
system::DirectoryLock take_directory(const TrainRequest& request) {
  if (request.resume) {
    require_run_dir(request.out);
  } else {
    create_run_dir(request.out);
  }
  return system::DirectoryLock(request.out);
}

void open_directory(Session& session, const TrainRequest& request) {
  const fs::path& dir = request.out;
  if (request.resume) {
    restore(session, dir);
    return;
  }
  system::replace_text(dir / "config.yaml", to_yaml(session.config));
  write_env(dir, request.command,
            {{"build", describe_build()}, {"data", describe_data(*session.data)}},
            flat_config(session.config));
}

/// Nowhere, for runs without a console.
std::ostream& silence() {
  static std::ostream stream(nullptr);
  return stream;
}

}  // namespace

RunWriter::RunWriter(Session& session, const TrainRequest& request)
    : dir_(request.out), lock_(take_directory(request)) {
  open_directory(session, request);
  if (request.resume) maps_ = maps_before(dir_, session.step);
  const Config& config = session.config;
  flops_per_token_ = model_cost(config.model, config.data.seq_len).train_flops_per_token;
  peak_ = measure_fma_peak(kPeakSeconds);
  metrics_ = std::make_unique<MetricsWriter>(dir_ / "metrics.jsonl");
  progress_ = std::make_unique<Progress>(
      request.console ? *request.console : silence(),
      request.console_descriptor >= 0 ? console_style(request.console_descriptor) : ConsoleStyle{},
      dir_ / "stdout.log", config.train.steps, session.step);
  if (is_task(*session.data)) {
    progress_->note(fmt::format("best achievable: loss {:.4f}, accuracy {:.1f} %",
                                session.data->best_loss(), 100 * session.data->best_accuracy()));
  }
  if (request.resume) status_.started = read_status(dir_).started;
  status_.steps = config.train.steps;
  status_.parameters = session.model.parameters().count();
  status_.tokens_per_step = tokens_per_step(config);
  write_state(session, RunState::running);
}

Metrics RunWriter::metrics_of(const Session& session, const Step& step,
                              const StepReport& report) const {
  const LogConfig& log = session.config.log;
  const bool validated = !std::isnan(step.val_loss) ||
                         (step.diverged && step.diverged->quantity == metric("val/loss"));
  Metrics metrics{{metric("train/loss"), step.loss},
                  {metric("optim/lr"), step.lr},
                  {metric("optim/grad_norm"), step.norms.global},
                  {metric("spike/score_loss"), session.loss_spikes.score()},
                  {metric("spike/score_grad"), session.grad_spikes.score()},
                  {metric("throughput/tokens_per_sec"), report.tokens_per_sec},
                  {metric("throughput/mfu"), report.peak_share}};
  if (validated) metrics.emplace_back(metric("val/loss"), step.val_loss);
  metrics.insert(metrics.end(), step.val_metrics.begin(), step.val_metrics.end());
  const bool each = due(step.number, log.parameters_every, session.config.train.steps);
  size_t i = 0;
  for (const Parameter& parameter : session.model.parameters()) {
    if (step.diverged || each) {
      metrics.emplace_back(metric_of(metric("optim/grad_norm"), parameter.name),
                           step.norms.per_parameter[i]);
    }
    if (step.update) {
      metrics.emplace_back(metric_of(metric("optim/update_ratio"), parameter.name),
                           step.update->update[i] / step.update->weight[i]);
    }
    ++i;
  }
  if (step.diagnostics) {
    const Metrics& more = step.diagnostics->metrics;
    metrics.insert(metrics.end(), more.begin(), more.end());
  }
  return metrics;
}

void RunWriter::step(const Session& session, const Step& step) {
  const profile::Span span(profile::Category::phase, "log");
  status_.step = step.number;  // what failed() would record
  StepReport report{step.number, step.loss, step.norms.global, step.lr};
  report.tokens_per_sec = static_cast<double>(tokens_per_step(session.config)) / step.seconds;
  report.peak_share = report.tokens_per_sec * flops_per_token_ / peak_;
  report.val_loss = step.val_loss;
  report.spikes = session.loss_spikes.spikes();
  metrics_->write(step.number, metrics_of(session, step, report));
  if (step.diagnostics) maps_ = step.diagnostics->maps;
  progress_->step(report);
}

void RunWriter::checkpoint(const Session& session) {
  const profile::Span span(profile::Category::phase, "checkpoint");
  session.save(dir_ / "checkpoints");
  write_tables(session);
  write_state(session, RunState::running);
}

void RunWriter::profile(const Session& session, const ProfiledSteps& steps) {
  const std::span<const profile::Event> events = steps.events();
  const double tokens = static_cast<double>(tokens_per_step(session.config));
  const std::string text =
      profile_text(profile::table_of(events), tokens, tokens * flops_per_token_);
  system::replace_text(dir_ / "trace.json", trace_json(events));
  system::replace_text(dir_ / "profile.txt", text);
  progress_->note(std::string_view(text).substr(0, text.size() - 1));  // it ends the line itself
}

void RunWriter::end(const Session& session, RunState state, Exit exit, const std::string& line) {
  const std::string spikes = spike_summary(write_tables(session));
  status_.exit_code = static_cast<int>(exit);
  write_state(session, state);
  if (!spikes.empty()) progress_->note(spikes);
  progress_->note(line);
}

void RunWriter::end_diverged(const Session& session, const Step& step) {
  const Divergence& where = step.diverged.value();
  status_.diverged = where;
  const std::string first =
      where.parameter.empty() ? "" : fmt::format(", first in {}", where.parameter);
  const std::string op = where.op.empty() ? "" : fmt::format("; first op: {}", where.op);
  end(session, RunState::diverged, Exit::diverged,
      fmt::format("diverged at step {}: {} is not finite{}{}", where.step, where.quantity, first,
                  op));
  try {
    progress_->note(fmt::format("repeat it with: difftape replay {}",
                                write_dump(dir_, session, step).string()));
  } catch (const OutputError& error) {
    progress_->note(fmt::format("the step was not kept: {}", error.what()));  // the result stands
  }
}

void RunWriter::failed() noexcept {
  try {
    status_.state = RunState::failed;
    write_status(dir_, status_);
  } catch (const std::exception&) {
    // The disk may be what failed; the error that led here is the one to report.
  }
}

/// What follows from metrics.jsonl.
std::vector<SpikeRecord> RunWriter::write_tables(const Session& session) {
  const MetricsTable metrics = read_metrics(dir_ / "metrics.jsonl");
  write_metrics_h5(dir_ / "metrics.h5", metrics, maps_);
  const std::vector<SpikeRecord> spikes = spike_records(metrics, rule_of(session.config.log));
  write_spikes_csv(dir_ / "spikes.csv", spikes);
  return spikes;
}

void RunWriter::write_state(const Session& session, RunState state) {
  status_.state = state;
  status_.step = session.step;
  write_status(dir_, status_);
}

}  // namespace difftape::run
