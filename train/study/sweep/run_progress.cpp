#include "train/study/sweep/run_progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "layers/cost.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/fields.h"
#include "train/run/loop/continuation.h"
#include "train/run/loop/step.h"
#include "train/run/loop/train_state.h"
#include "train/run/records/metrics.h"
#include "train/study/compare/run_record.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {
namespace {

namespace fs = std::filesystem;
using run::RunState;

/// Reads the state of a run. A run that cannot be read does not stop the others.
void read_state(const fs::path& dir, RunProgress& progress) {
  try {
    const run::RunStatus status = run::read_status(dir);
    progress.state = run::is_complete(status.state) ? status.state : RunState::queued;
    progress.done = progress.step = progress.complete() ? status.step : run::newest_step(dir);
  } catch (const Error& error) {
    progress.state = RunState::failed;
    if (!progress.selected) return;
    progress.exit = system::exit_of(error);
    progress.error =
        fmt::format("{}; or remove {} to train it from the start", error.what(), dir.string());
  }
}

RunProgress inspect_directory(const SweepRun& run) {
  const fs::path dir = run.config().run.out;
  RunProgress progress;
  progress.selected = run.selected;
  std::error_code ignored;  // creating the run reports an unusable path
  if (run::may_begin_in(dir)) return progress;
  const std::string other = run::why_other_run(dir, run.config());
  if (!other.empty()) {
    if (!run.selected) return progress;
    throw OutputError(
        fmt::format("{} already exists and does not contain this run: {}; remove it, or choose "
                    "another directory with --out, or --out auto",
                    dir.string(), other));
  }
  progress.on_disk = fs::exists(dir / "status.json", ignored);
  read_state(dir, progress);
  return progress;
}

/// Returns the row of a run. It is empty if the run cannot be read; its state is then "failed".
IndexRow measured(const fs::path& dir) {
  try {
    return index_row(load_run(dir));
  } catch (const Error&) {
    return {};
  }
}

}  // namespace

RunProgress inspect(const SweepRun& run) {
  RunProgress here = inspect_directory(run);
  if (run.taken == nullptr || here.complete()) return here;
  RunProgress taken{.taken = true, .selected = run.selected};
  taken.state = *from_string<RunState>(run.taken->at("state"));
  taken.step = taken.done = run.config().train.steps;
  return taken;
}

void read_last_step(const fs::path& run_dir, RunProgress& progress) {
  const auto last = run::last_logged(run_dir / "metrics.jsonl");
  if (!last) return;
  progress.step = last->step;
  progress.loss = last->loss;
}

void finish(const fs::path& run_dir, const system::ExitStatus& exit_status, int sent_signal,
            const std::string& message, RunProgress& progress) {
  std::error_code ignored;
  progress.on_disk = fs::exists(run_dir / "status.json", ignored);
  if (progress.on_disk) read_last_step(run_dir, progress);
  const bool obeyed = exit_status.signal != 0 && exit_status.signal == sent_signal;
  const system::Exit exit =
      obeyed ? (sent_signal == SIGINT ? system::Exit::sigint : system::Exit::sigterm)
      : exit_status.signal != 0 ? system::Exit::stopped_early
                                : static_cast<system::Exit>(exit_status.exit);
  if (exit == system::Exit::ok || exit == system::Exit::diverged) {
    progress.state = exit == system::Exit::ok ? RunState::finished : RunState::diverged;
    return;
  }
  const bool stopped = exit == system::Exit::sigint || exit == system::Exit::sigterm;
  progress.state = stopped ? RunState::stopped : RunState::failed;
  progress.exit = exit;
  progress.error = stopped ? fmt::format("stopped at step {}", progress.step) : message;
}

void StatusTable::line(std::string_view text) {
  erase();
  console_ << text << '\n' << std::flush;
}

void StatusTable::draw(const std::vector<std::string>& lines) {
  if (!style_.tty) return;
  erase();
  const auto width = static_cast<std::size_t>(std::max(style_.width - 1, 1));
  for (const std::string& text : lines) console_ << text.substr(0, width) << '\n';
  console_ << std::flush;
  drawn_ = lines.size();
}

void StatusTable::erase() {
  if (drawn_ > 0) console_ << fmt::format("\x1b[{}A\r\x1b[J", drawn_);
  drawn_ = 0;
}

std::string describe_counts(std::span<const RunProgress> runs, double eta) {
  const auto count = [&](auto... states) {
    return std::count_if(runs.begin(), runs.end(), [&](const RunProgress& run) {
      return run.selected && ((run.state == states) || ...);
    });
  };
  const auto selected =
      std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r.selected; });
  std::string text =
      fmt::format("{}/{} done", count(RunState::finished, RunState::diverged), selected);
  for (const RunState state : {RunState::running, RunState::queued, RunState::diverged,
                               RunState::stopped, RunState::failed}) {
    if (const auto n = count(state); n > 0) text += fmt::format("  {} {}", n, to_string(state));
  }
  return eta > 0 ? text + "  ETA " + system::describe_duration(eta) : text;
}

std::string describe_result(const fs::path& run_dir, const RunProgress& progress) {
  if (!progress.complete()) {
    return progress.state == RunState::stopped ? progress.error : "failed: " + progress.error;
  }
  try {
    const RunRecord run = load_run(run_dir);
    const double loss = run.number("val_loss");
    return describe_state(run.status) +
           (std::isfinite(loss) ? fmt::format(", val {:.4f}", loss) : "") +
           fmt::format(", {:.0f} tokens/s", run.number("tokens_per_sec"));
  } catch (const Error&) {
    return std::string(to_string(progress.state));  // damaged since then; the report lists it
  }
}

double sweep_eta(std::span<const SweepRun> runs, std::span<const RunProgress> progress,
                 double elapsed) {
  double made = 0, left = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunProgress& run = progress[i];
    const double flops = flops_per_step(runs[i].config());
    made += flops * static_cast<double>(run.step - run.done);
    if (run.selected && (run.state == RunState::queued || run.state == RunState::running)) {
      left += flops * static_cast<double>(runs[i].config().train.steps - run.step);
    }
  }
  return made > 0 ? elapsed * left / made : std::nan("");
}

double flops_per_step(const run::Config& config) {
  return model_cost(config.model, config.data.seq_len).train_flops_per_token *
         static_cast<double>(tokens_per_step(config));
}

std::string take_results(SweepConfig& sweep) {
  std::map<std::tuple<std::string, double, std::string>, const IndexRow*> known;
  for (const IndexRow& row : sweep.results->rows) {
    if (!is_complete(row)) continue;
    const double lr = system::read_number<double>(row.at("lr")).value_or(0);
    known[{row.at("arm"), lr, row.at("seed")}] = &row;
  }
  for (SweepRun& run : sweep.runs) {
    const run::Config& config = run.config();
    const auto found =
        known.find({config.run.arm, config.optim.lr, fmt::to_string(config.run.seed)});
    if (found == known.end()) continue;
    const std::string& made = found->second->at("config");
    const std::string wanted = run::result_digest(config);
    if (made != wanted) {
      const run::FlatConfig row(found->second->begin(), found->second->end());
      const std::string keys =
          in_words(run::differences(row, run::result_config(config)), " there");
      return fmt::format(
          "{} contains {} of seed {} with another configuration: {}; remove sweep.results, or use "
          "that configuration in the sweep",
          sweep.results->file.string(), found->second->at("name"), config.run.seed,
          keys.empty() ? fmt::format("its digest is {}, not {}", made, wanted) : keys);
    }
    run.taken = found->second;
  }
  return "";
}

SweepIndex::SweepIndex(const SweepConfig& sweep) : sweep_(&sweep), rows_(sweep.runs.size()) {
  const fs::path path = fs::path(sweep.out) / kIndexFile;
  std::error_code ignored;
  const bool other = fs::exists(path, ignored) &&
                     (!fs::is_regular_file(path, ignored) ||
                      !system::read_text(path).starts_with("name,arm,seed,lr,state,"));
  if (other) {
    throw OutputError(fmt::format(
        "{} already exists and is not the index of a sweep; move it, or choose another directory "
        "with --out",
        path.string()));
  }
  std::set<std::string> differ{"model.d_model"};
  std::set<std::string> swept(sweep.swept.begin(), sweep.swept.end());
  for (const SweepRun& run : sweep.runs) {
    const run::FlatConfig flat = run::result_config(run.config());
    if (shared_.empty()) shared_ = flat;
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (flat[i] != shared_[i]) differ.insert(flat[i].first);
    }
  }
  std::erase_if(swept, [](const auto& key) { return run::has_flag(key, run::kNamesData); });
  differ.insert(swept.begin(), swept.end());
  differ.erase("run.seed");  // every index has this column
  std::erase_if(shared_, [&](const auto& each) {
    return differ.contains(each.first) || each.first == "run.seed";
  });
  keys_.assign(differ.begin(), differ.end());
}

void SweepIndex::update(std::size_t i, const RunProgress& progress) {
  const SweepRun& run = sweep_->runs[i];
  const run::Config& config = run.config();
  IndexRow row;
  if (progress.taken) {
    row = *run.taken;
    row["dir"] = "";
    row["from"] = sweep_->results_folder;
  } else {
    const bool started = progress.on_disk && progress.state != run::RunState::queued;
    if (started) row = measured(config.run.out);
    row["config"] = run::result_digest(config);
    row["dir"] = fs::path(config.run.out).filename().string();
  }
  row["name"] = config.run.name;
  row["arm"] = config.run.arm;
  row["seed"] = fmt::to_string(config.run.seed);
  row["lr"] = system::csv_number(config.optim.lr);
  row["state"] = to_string(progress.state);
  row["baseline"] = sweep_->baseline;
  for (const run::FlatConfig& flat : {flat_config(config), run::result_config(config)}) {
    for (const auto& [key, value] : flat) {
      if (std::ranges::binary_search(keys_, key)) row[key] = value;
    }
  }
  rows_[i] = std::move(row);
}

void SweepIndex::write() const {
  std::set<std::string> domains;
  for (const IndexRow& row : rows_) {
    for (const auto& [column, text] : row) {
      if (column.starts_with("val_loss/")) domains.insert(column);
    }
  }
  std::vector<std::string> columns = index_columns();
  const auto provenance = std::ranges::find(columns, "config");
  columns.insert(provenance, domains.begin(), domains.end());
  columns.insert(columns.end(), keys_.begin(), keys_.end());
  std::string index = system::csv_line(columns), shared = "key,value\n";
  for (const IndexRow& row : rows_) {
    index += system::csv_line(
        mapped(columns, [&](const std::string& column) { return field_of(row, column); }));
  }
  for (const auto& [key, value] : shared_) shared += system::csv_line(std::vector{key, value});
  system::replace_text(fs::path(sweep_->out) / kSharedFile, shared);
  system::replace_text(fs::path(sweep_->out) / kIndexFile, index);
}

}  // namespace difftape::study
