#include "train/study/sweep/sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <filesystem>
#include <map>
#include <memory>
#include <ostream>
#include <set>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/config/writer.h"
#include "train/run/data/dataset.h"
#include "train/run/loop/trainer.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"
#include "train/study/sweep/worker.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

/// Creates the directory of a sweep unless it exists, and returns it.
const std::string& created(const std::string& dir) {
  system::make_folder(dir);
  return dir;
}

std::vector<RunProgress> inspect_all(const SweepConfig& sweep) {
  std::vector<RunProgress> all;
  for (const SweepRun& run : sweep.runs) {
    all.push_back(inspect(run));
    const bool broke_off = all.back().on_disk && !all.back().complete();
    // Throws if any process is training the run now.
    if (broke_off && run.selected) static_cast<void>(system::DirectoryLock(run.config().run.out));
  }
  return all;
}

/// Returns the values of all keys data.*, one per line.
std::string keys_of_data(const run::Config& config) {
  std::string text;
  for (const auto& [key, value] : flat_config(config)) {
    if (key.starts_with("data.")) text += fmt::format("{}: {}\n", key, value);
  }
  return text;
}

/// Prints tables and verdicts, and writes them to files of the sweep.
void compare(const SweepConfig& sweep, const Collection& collection, std::ostream& console) {
  const std::vector<Study> studies =
      make_studies(collection.runs, known_arm(collection.runs, sweep.baseline));
  const std::unique_ptr<const JudgedClaims> claims =
      sweep.claims ? std::make_unique<JudgedClaims>(*sweep.claims, collection.pointers()) : nullptr;
  console << "\n" << study_text(studies, system::kTextWidth, claims.get());
  write_comparison(studies, sweep.name, {collection.notes, claims.get()}, sweep.out);
  console << "\nreport: " << (fs::path(sweep.out) / kPage).string() << "\n";
}

/// Writes the claims and their learning rates next to the runs. Claims of earlier runs are kept
/// under the name of their digest.
void keep_claims(const ClaimsFile& claims, const fs::path& out) {
  const fs::path copy = out / kClaimsCopy;
  throw_if<ConfigError>(claims.learning_rates == kLrOptimumFile,
                        "the claims take learning rates from {}, which a sweep overwrites; copy it "
                        "to another name, such as lr_star.csv",
                        kLrOptimumFile);
  if (claims.own_rates)
    system::replace_text(out / claims.learning_rates, system::read_text(claims.own_rates->file));
  if (system::is_there(copy)) {
    const std::string before = system::read_text(copy);
    if (before == claims.text) return;
    system::replace_text(out / fmt::format("claims-{}.yaml", digest_of(before)), before);
  }
  system::replace_text(copy, claims.text);
}

/// Compares the runs and returns the exit code of a failure to write. Runs that cannot be compared
/// are not a failure.
system::Exit compare_runs(const SweepConfig& sweep, const std::vector<RunProgress>& progress,
                          std::ostream& console) {
  std::vector<fs::path> dirs;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i)
    if (progress[i].on_disk) dirs.emplace_back(sweep.runs[i].config().run.out);
  if (dirs.empty()) return system::Exit::ok;
  try {
    Collection collection = collect_runs(dirs);
    std::stable_partition(collection.runs.begin(), collection.runs.end(),
                          [&](const Row& run) { return run.arm == sweep.baseline; });
    for (const std::string& note : collection.notes) console << note << "\n";
    compare(sweep, collection, console);
  } catch (const Error& error) {  // runs that cannot be compared are results too
    console << "\nno comparison: " << error.what() << "\n";
    return system::exit_of(error) == system::Exit::bad_data ? system::Exit::ok
                                                            : system::exit_of(error);
  }
  return system::Exit::ok;
}

/// Says which runs failed, and returns the exit code of the first.
system::Exit list_failures(const SweepConfig& sweep, const std::vector<RunProgress>& progress,
                           std::ostream& console) {
  system::Exit first = system::Exit::ok;
  for (std::size_t i = 0; i < progress.size(); ++i) {
    if (progress[i].exit == system::Exit::ok) continue;
    if (first == system::Exit::ok) {
      first = progress[i].exit;
      console << "\nnot completed; run the same command to retry:\n";
    }
    console << fmt::format("  {}: {}\n", sweep.runs[i].config().run.name, progress[i].error);
  }
  console << std::flush;
  return first;
}

/// Compares the existing runs. Returns the exit code of the first failed run, or of the comparison.
system::Exit conclude(const SweepConfig& sweep, const std::vector<RunProgress>& progress,
                      std::ostream& console) {
  const system::Exit compared = compare_runs(sweep, progress, console);
  const system::Exit failed = list_failures(sweep, progress, console);
  return failed != system::Exit::ok ? failed : compared;
}

/// The directory of a sweep, with the table of its runs.
class OpenSweep {
 public:
  explicit OpenSweep(const SweepConfig& sweep) : lock_(created(sweep.out)), table(sweep) {
    progress = inspect_all(sweep);
    require_data(sweep, progress);
    if (sweep.claims) keep_claims(*sweep.claims, sweep.out);
    for (std::size_t i = 0; i < progress.size(); ++i) table.update(i, progress[i]);
    table.write();
  }

 private:
  system::DirectoryLock lock_;

 public:
  SweepRuns table;
  std::vector<RunProgress> progress;
};

}  // namespace

void require_data(const SweepConfig& sweep, const std::vector<RunProgress>& progress) {
  std::set<std::string> tried;
  std::exception_ptr first;
  for (std::size_t i = 0; i < progress.size(); ++i) {
    const run::Config& config = sweep.runs[i].config();
    if (!progress[i].waits() ||
        !tried.insert(keys_of_data(config) + fmt::to_string(config.model.vocab_size)).second)
      continue;
    try {
      static_cast<void>(make_dataset(config.data, config.model, config.run.seed));
      return;
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

std::vector<std::string> start_elsewhere(const SweepConfig& sweep) {
  const OpenSweep open(sweep);
  std::vector<std::string> left;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    if (open.progress[i].waits()) left.push_back(sweep.runs[i].config().run.name);
  }
  return left;
}

system::Exit train_one(const SweepConfig& sweep, const std::string& name,
                       const SweepRequest& request) {
  const auto run = std::ranges::find(sweep.runs, name,
                                     [](const SweepRun& one) { return one.config().run.name; });
  if (run == sweep.runs.end()) {
    throw UsageError(fmt::format("--run {}: sweep {} has no such run; it has {} and others", name,
                                 sweep.name, sweep.runs.front().config().run.name));
  }
  const run::Config& config = run->config();
  const RunProgress progress = inspect(*run);
  if (progress.complete()) {
    *request.console << config.run.out << " is " << to_string(progress.state) << "\n";
    return system::Exit::ok;
  }
  run::TrainRequest to_train = train_request(*run, progress, request);
  to_train.console = request.console;
  to_train.console_descriptor = request.console_descriptor;
  return train(config, to_train);
}

system::Exit compare_sweep(const SweepConfig& sweep, const SweepRequest& request) {
  const system::DirectoryLock lock(created(sweep.out));
  SweepRuns table(sweep);
  std::vector<RunProgress> progress;
  for (std::size_t i = 0; i < sweep.runs.size(); ++i) {
    progress.push_back(inspect(sweep.runs[i]));
    table.update(i, progress[i]);
  }
  table.write();
  *request.console << describe_counts(progress, std::nan("")) << "\n";
  return conclude(sweep, progress, *request.console);
}

system::Exit run_sweep(const SweepConfig& sweep, const SweepRequest& request) {
  OpenSweep open(sweep);
  SweepRuns& runs = open.table;
  std::vector<RunProgress>& progress = open.progress;
  StatusTable table(*request.console, run::console_style(request.console_descriptor));
  const auto complete = std::ranges::count_if(progress, &RunProgress::complete);
  table.line(fmt::format("{} of {} runs are already trained", complete, progress.size()));
  std::vector<const run::Config*> left;
  for (std::size_t i = 0; i < progress.size(); ++i) {
    if (progress[i].waits()) left.push_back(&sweep.runs[i].config());
  }
  std::optional<Layout> layout;
  if (!left.empty()) layout = choose_layout(left, request.jobs);
  const system::StopRequest stop;  // the dry runs before it lose nothing if a signal ends them
  if (layout) {
    const auto changed = [&](std::size_t run) {
      runs.update(run, progress[run]);
      try {
        runs.write();
      } catch (const OutputError& error) {  // training continues; the end writes it again
        table.line(error.what());
      }
    };
    train_in_workers(sweep, request, *layout, stop, progress, table, changed);
    runs.write();
  }
  if (stop.received() != system::Exit::ok) {
    table.line(describe_counts(progress, std::nan("")));
    table.line("sweep stopped; run the same command to resume it");
    return stop.received();
  }
  return conclude(sweep, progress, *request.console);
}

}  // namespace difftape::study
