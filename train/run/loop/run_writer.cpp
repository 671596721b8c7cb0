#include "train/run/loop/run_writer.h"

#include <cmath>
#include <ostream>

#include "core/error.h"
#include "core/platform.h"
#include "core/processes.h"
#include "core/profile.h"
#include "layers/cost.h"
#include "train/run/config/writer.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/crash_dump.h"
#include "train/run/loop/logged_step.h"
#include "train/run/loop/run_facts.h"
#include "train/run/loop/state_digest.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics.h"
#include "train/run/records/profile_files.h"
#include "train/system/files.h"
#include "train/system/memory.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// Long enough for the best of some 500 windows; the first step waits so long.
constexpr double kPeakSeconds = 0.01;
/// Tables are made again when they have grown by one part in so many: made at every checkpoint,
/// they would cost a long run the square of its steps.
constexpr Index kTablesGrow = 10;

std::optional<TextSamples> samples_of(const TrainState& state) {
  if (state.config.log.sample_interval == 0) return std::nullopt;
  return TextSamples(state);
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

/// Of a run that goes on with another configuration, which may make it longer, say where its files
/// are, or write other files: what it is now, and since when.
void record_continuation(const TrainState& state, const TrainRequest& request) {
  const Config made = config_of_run(request.out);
  const FlatConfig now = flat_config(state.config);
  if (flat_config(made) == now) return;
  rewrite_env(request.out, now,
              {{"command", request.command},
               {"date", utc_now()},
               {"step", state.step},
               {"steps_before", made.train.steps}});
  system::replace_text(request.out / "config.yaml", to_yaml(state.config));
}

/// What follows once `latest` names a checkpoint. Done again, it changes nothing.
void settle_checkpoints(const TrainState& state, const fs::path& dir) {
  const TrainConfig& config = state.config.train;
  if (state.best.step > 0) name_best_checkpoint(dir / "checkpoints", state.best.step);
  if (config.keep_last > 0)
    prune_checkpoints(dir / "checkpoints", config.keep_last, config.keep_interval);
}

/// Whether the run has ended as it is asked for, and wrote all it had to.
bool has_finished(const TrainState& state, const fs::path& dir) {
  return state.step == state.config.train.steps && read_status(dir).state == RunState::finished &&
         flat_config(config_of_run(dir)) == flat_config(state.config);
}

/// False if there is nothing to do there.
bool open_directory(TrainState& state, const TrainRequest& request) {
  const fs::path& dir = request.out;
  if (request.resume) {
    remove_temporary_files(dir);
    restore(state, dir);
    if (has_finished(state, dir)) return false;
    settle_checkpoints(state, dir);  // the process may have ended before it did
    record_continuation(state, request);
    return true;
  }
  system::replace_text(dir / "config.yaml", to_yaml(state.config));
  Json facts{{"build", describe_build()}, {"data", describe_data(*state.data)}};
  if (const auto& origin = state.origin) {
    facts["init_from"] = {{"checkpoint", origin->checkpoint.string()},
                          {"step", origin->step},
                          {"xxh3_128", origin->digest}};
  }
  write_env(dir, request.command, facts, flat_config(state.config));
  return true;
}

/// Discards what is written to it, for runs without a console.
std::ostream& null_stream() {
  static std::ostream stream(nullptr);
  return stream;
}

}  // namespace

RunWriter::RunWriter(TrainState& state, const TrainRequest& request)
    : samples_(samples_of(state)),
      dir_(request.out),
      lock_(take_directory(request)),
      console_(request.console ? *request.console : null_stream()) {
  had_finished_ = !open_directory(state, request);
  if (had_finished_) return;
  if (request.resume) maps_ = maps_before(dir_, state.step);
  const Config& config = state.config;
  flops_per_token_ = model_cost(config.model, config.data.seq_len).train_flops_per_token;
  peak_ = measure_fma_peak(kPeakSeconds) * static_cast<double>(processes::count());
  metrics_ = std::make_unique<MetricsWriter>(dir_ / "metrics.jsonl");
  if (config.log.digest) digests_ = std::make_unique<DigestWriter>(dir_ / kDigestsFile);
  if (config.log.tensorboard) events_ = std::make_unique<EventWriter>(dir_, to_yaml(config));
  progress_ = std::make_unique<Progress>(
      console_,
      request.console_descriptor >= 0 ? console_style(request.console_descriptor) : ConsoleStyle{},
      dir_ / "stdout.log", config.train.steps, state.step);
  if (request.resume)
    progress_->note(fmt::format("continues after step {} of {}", state.step, config.train.steps));
  if (!request.note.empty()) progress_->note(request.note);
  if (const std::optional<BestAchievable> best = state.data->best()) {
    progress_->note(fmt::format("best achievable: loss {:.4f}, accuracy {:.1f} %", best->loss,
                                100 * best->accuracy));
  }
  const Json env = read_env(dir_);
  if (const auto from = env.find("init_from"); from != env.end() && !request.resume) {
    progress_->note(fmt::format("begins with the weights of {}, after step {}",
                                from->at("checkpoint").get<std::string>(),
                                from->at("step").get<Index>()));
  }
  const Json data = env.value("data", Json::object());  // counted once, when it began
  if (data.contains("dropped_files")) progress_->note(division_note(data));
  if (const auto entropy = data.find("bigram_entropy"); entropy != data.end()) {
    progress_->note(
        fmt::format("bigram entropy of the data: {:.4f} nats; a loss above it is no "
                    "better than a table of pairs",
                    entropy->get<double>()));
  }
  if (request.resume) status_.started = read_status(dir_).started;
  status_.steps = config.train.steps;
  status_.parameters = state.model.parameters().count();
  status_.tokens_per_step = tokens_per_step(config);
  write_state(state, RunState::running);
}

void RunWriter::step(const TrainState& state, const Step& step) {
  const profile::Span span(profile::Category::phase, "log");
  status_.step = step.step;  // what failed() would record
  StepReport report{step.step, step.loss, step.norms.global, step.lr};
  report.tokens_per_sec = static_cast<double>(tokens_per_step(state.config)) / step.seconds;
  report.peak_share = report.tokens_per_sec * flops_per_token_ / peak_;
  report.val_loss = step.val_loss;
  report.spikes = state.loss_spikes.spikes();
  const Metrics metrics = metrics_of(state, step,
                                     {{metric("throughput/tokens_per_sec"), report.tokens_per_sec},
                                      {metric("throughput/mfu"), report.peak_share}});
  if (digests_) digests_->write(step.step, digest_of(state));
  metrics_->write(step.step, metrics);
  if (events_) {
    static const Metrics none;
    events_->write(step.step, metrics, step.diagnostics ? step.diagnostics->distributions : none);
  }
  // An attention kind with a context rule of its own shows none.
  if (step.diagnostics && !step.diagnostics->maps.layers.empty()) maps_ = step.diagnostics->maps;
  progress_->step(report);
  const std::string domains = text_of_domains(step);
  if (step.step == state.config.train.steps && !domains.empty())
    progress_->note("validation loss by domain: " + domains);
}

void RunWriter::sample(TrainState& state) {
  const profile::Span span(profile::Category::phase, "log");
  progress_->note(fmt::format("sample after step {}: {:?}", state.step, samples_->write(state)));
}

void RunWriter::checkpoint(const TrainState& state) {
  const profile::Span span(profile::Category::phase, "checkpoint");
  metrics_->sync();  // a checkpoint without the steps before it could not be resumed
  state.save(dir_ / "checkpoints");
  settle_checkpoints(state, dir_);
  if (kTablesGrow * (state.step - tables_step_) >= state.step) write_tables(state);
  write_state(state, RunState::running);
}

void RunWriter::profile(const TrainState& state, const ProfiledSteps& steps) {
  const std::span<const profile::Event> events = steps.events();
  const double tokens = static_cast<double>(tokens_per_step(state.config));
  const std::string text =
      profile_text(profile::table_of(events), tokens, tokens * flops_per_token_);
  system::replace_text(dir_ / "trace.json", trace_json(events));
  system::replace_text(dir_ / "profile.txt", text);
  progress_->note(std::string_view(text).substr(0, text.size() - 1));  // it ends the line itself
}

void RunWriter::end(const TrainState& state, RunState run_state, system::Exit exit,
                    const std::string& line) {
  const std::string spikes = spike_summary(write_tables(state));
  status_.exit_code = static_cast<int>(exit);
  write_state(state, run_state);
  if (!spikes.empty()) progress_->note(spikes);
  progress_->note(line);
}

void RunWriter::end_finished(const TrainState& state, bool done) {
  const std::string line =
      done ? fmt::format("{} is finished: nothing to do; --set train.steps=N trains longer",
                         dir_.string())
           : fmt::format("finished; results are in {}", dir_.string());
  if (had_finished_) {
    console_ << line << std::endl;
  } else {
    end(state, RunState::finished, system::Exit::ok, line);
  }
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
  try {
    progress_->note(fmt::format("repeat it with: difftape replay {}",
                                write_crash_dump(dir_, state, step).string()));
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

/// Writes the files that follow from metrics.jsonl.
std::vector<SpikeRecord> RunWriter::write_tables(const TrainState& state) {
  std::vector<SpikeRecord> spikes;
  {
    const MetricsTable metrics = read_metrics(dir_ / "metrics.jsonl");
    write_metrics_h5(dir_ / "metrics.h5", metrics, maps_);
    spikes = spike_records(metrics, state.loss_spikes.rule());
  }
  system::return_free_memory();  // all metrics of a long run take more than its model
  write_spikes_csv(dir_ / "spikes.csv", spikes);
  tables_step_ = state.step;
  return spikes;
}

void RunWriter::write_state(const TrainState& state, RunState run_state) {
  status_.state = run_state;
  status_.step = state.step;
  write_status(dir_, status_);
}

}  // namespace difftape::run
