#include "train/study/compare/collection.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "core/error.h"
#include "train/run/records/run_files.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/runs_csv.h"
#include "train/study/compare/tables.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

std::map<std::string, std::size_t> order_in_file(const fs::path& sweep) {
  std::map<std::string, std::size_t> order;
  if (!system::is_there(sweep / kRunsFile)) return order;
  for (const std::vector<std::string>& line :
       system::read_csv(system::read_text(sweep / kRunsFile))) {
    order.emplace(line.front(), order.size());
  }
  return order;
}

/// Adds the runs below a folder, without the runs within runs. A linked folder is a run, but is not
/// searched. A folder with metrics.jsonl is a run whose status.json is lost. Throws MissingInput if
/// a folder cannot be read, because its runs would be missing.
void find_runs(const fs::path& dir, std::vector<fs::path>& found) {
  for (const fs::path& path : system::all_paths_in(dir)) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    const bool leads_nowhere = error == std::errc::too_many_symbolic_link_levels;
    if (leads_nowhere || (fs::status_known(status) && !is_directory(status))) continue;
    throw_if<MissingInput>(!is_directory(status), "cannot read {}: {}", dir.string(),
                           error.message());
    if (system::is_there(path / "status.json") || system::is_there(path / "metrics.jsonl"))
      found.push_back(path);
    else if (!fs::is_symlink(path, error))
      find_runs(path, found);
  }
}

/// Returns the baseline that a sweep stored in runs.csv; empty without.
std::string stored_baseline(const fs::path& folder) {
  if (system::is_there(folder / "status.json") || !is_runs_csv(folder / kRunsFile)) return "";
  const std::vector<Row> rows = read_runs_csv(folder / kRunsFile);
  return rows.empty() ? "" : rows.front().fact("baseline");
}

std::vector<fs::path> runs_below(const fs::path& dir) {
  std::vector<fs::path> found;
  find_runs(dir, found);
  const std::map<std::string, std::size_t> order = order_in_file(dir);
  const auto place = [&](const fs::path& run) {
    const auto row = order.find(run.filename().string());
    return std::pair(row == order.end() ? order.size() : row->second, run);
  };
  std::sort(found.begin(), found.end(),
            [&](const fs::path& a, const fs::path& b) { return place(a) < place(b); });
  return found;
}

/// Notes a torn last line and an incomplete state of a run that was read.
void note_state(const Row& run, std::vector<std::string>& notes) {
  const fs::path file = run.dir / "metrics.jsonl";
  const std::string metrics = system::read_text(file);
  if (!metrics.empty() && metrics.back() != '\n') {
    notes.push_back(fmt::format("{}: the last line is incomplete and is ignored", file.string()));
  }
  if (!run.complete()) {
    const std::string at = fmt::format("after step {} of {}", run.status.step, run.status.steps);
    std::string how = "interrupted " + at;
    if (run.status.state == run::RunState::running) how = "not finished " + at;
    if (run.status.state == run::RunState::killed) {
      how = fmt::format(
          "killed {}: no process is training it; `difftape train {} --resume` resumes it", at,
          run.dir.string());
    }
    notes.push_back(fmt::format("{}: {}; not in the statistics", run.dir.string(), how));
  }
}

void name_apart(std::vector<Row>& runs) {
  std::map<std::string, int> uses;
  for (const Row& run : runs) uses[run.name] += 1;
  for (Row& run : runs) {
    if (uses[run.name] > 1) run.name = run.dir.string();
  }
}

/// Returns why a folder cannot be read, or nothing.
std::error_code why_closed(const fs::path& dir) {
  std::error_code error;
  if (!fs::exists(dir / "status.json", error) && !error) fs::directory_iterator(dir, error);
  return error;
}

/// Returns the file of lines of an input; empty if the input is a run directory or contains some.
fs::path file_of(const fs::path& input) {
  std::error_code ignored;
  if (fs::is_regular_file(input, ignored)) return input.extension() == ".csv" ? input : "";
  const fs::path file = input / kRunsFile;
  const bool run = system::is_there(input / "status.json");
  return !run && is_runs_csv(file) && runs_below(input).empty() ? file : "";
}

/// Removes rows of the runs: those with the same arm, learning rate, seed and training time.
void remove_rows_of(std::span<const Row> runs, std::vector<Row>& rows) {
  const auto key = [](const Row& run) {
    return std::tuple(run.arm, run.lr, run.seed, fmt::to_string(run.number("train_seconds")));
  };
  std::set<decltype(key(rows.front()))> keys;
  for (const Row& run : runs) {
    if (!std::isnan(run.number("train_seconds"))) keys.insert(key(run));
  }
  std::erase_if(rows, [&](const Row& row) { return keys.contains(key(row)); });
}

/// Notes the commits, or else the builds, of the runs in the order of their first runs; empty if
/// all are equal.
std::string builds_note(std::span<const Row> runs) {
  std::vector<const char*> keys;
  for (const char* key : {"commit", "compiler", "build_type", "precision", "gemm", "bf16"}) {
    std::set<std::string> values;
    for (const Row& run : runs) values.insert(run.fact(key));
    values.erase("");
    if (values.size() > 1) keys.push_back(key);
  }
  if (keys.empty()) return "";
  std::vector<std::string> builds;
  std::vector<int> counts;  // runs per build
  for (const Row& run : runs) {
    const auto values = mapped(keys, [&](const char* key) {
      const std::string value = run.fact(key);
      return value.empty() ? fmt::format("unknown {}", key) : value;
    });
    const std::size_t at = add_once(builds, fmt::to_string(fmt::join(values, " ")));
    counts.resize(builds.size());
    counts[at] += 1;
  }
  for (std::size_t i = 0; i < builds.size(); ++i)
    builds[i] += fmt::format(" ({} {})", counts[i], counts[i] == 1 ? "run" : "runs");
  const bool commits = keys.size() == 1 && std::string_view(keys.front()) == "commit";
  return fmt::format("runs of {} {}: {}; their results may differ", builds.size(),
                     commits ? "commits" : "builds", fmt::join(builds, ", "));
}

}  // namespace

std::vector<fs::path> run_directories(std::span<const fs::path> dirs) {
  std::vector<fs::path> paths;
  std::set<fs::path> seen;
  for (const fs::path& dir : dirs) {
    std::error_code ignored;
    const bool holds_runs =
        fs::is_directory(dir, ignored) && !system::is_there(dir / "status.json");
    const std::vector<fs::path> runs = holds_runs ? runs_below(dir) : std::vector{dir};
    if (runs.empty()) {
      if (const std::error_code error = why_closed(dir))
        throw MissingInput(fmt::format("cannot read {}: {}", dir.string(), error.message()));
      throw MissingInput(fmt::format(
          "{} neither is a run directory, which has status.json, nor contains any; give the "
          "directory of a run or of a sweep",
          dir.string()));
    }
    for (const fs::path& run : runs) {
      if (!holds_runs) run::require_run_dir(run);
      if (seen.insert(fs::weakly_canonical(run, ignored)).second) paths.push_back(run);
    }
  }
  return paths;
}

fs::path folder_of(const fs::path& input) {
  std::error_code ignored;
  return fs::is_regular_file(input, ignored) ? input.parent_path() : input;
}

Collection collect_runs(std::span<const fs::path> inputs) {
  Collection collection;
  std::vector<fs::path> dirs, files;
  for (const fs::path& input : inputs) {
    const fs::path file = file_of(input);
    (file.empty() ? dirs : files).push_back(file.empty() ? input : file);
    if (collection.baseline.empty()) collection.baseline = stored_baseline(folder_of(input));
  }
  std::vector<std::string> notes, left_out;
  std::vector<Row> more = pooled_runs(files, notes);
  for (const fs::path& path : run_directories(dirs)) {
    try {
      collection.runs.push_back(load_run(path));
      note_state(collection.runs.back(), collection.notes);
    } catch (const Error& error) {
      left_out.push_back(error.what());
    }
  }
  remove_rows_of(collection.runs, more);
  std::ranges::move(more, std::back_inserter(collection.runs));
  if (collection.runs.empty() && !left_out.empty())
    throw DataError(fmt::to_string(fmt::join(left_out, "\n")));
  for (const std::string& what : left_out) collection.notes.push_back("left out: " + what);
  const auto rows =
      std::ranges::count_if(collection.runs, [](const Row& run) { return !run.file.empty(); });
  if (rows > 0)
    collection.notes.push_back(
        fmt::format("{} of {} runs come from runs.csv, which has no curves, so charts over steps "
                    "omit them",
                    rows, collection.runs.size()));
  if (const std::string builds = builds_note(collection.runs); !builds.empty())
    collection.notes.push_back(builds);
  std::ranges::move(notes, std::back_inserter(collection.notes));
  name_apart(collection.runs);
  return collection;
}

namespace {

constexpr const char* kListed[] = {"train_loss", "val_loss", "loss_spikes", "grad_spikes"};

}  // namespace

ListedRun listed(const Row& run) {
  const run::RunStatus& status = run.status;
  const std::string state(to_string(status.state));
  ListedRun row{{run.dir.string(), state, fmt::format("{}/{}", status.step, status.steps)},
                {{"dir", run.dir.string()},
                 {"name", run.name},
                 {"arm", run.arm},
                 {"state", state},
                 {"step", status.step},
                 {"steps", status.steps},
                 {"diverged_in", nullptr},
                 {"updated", status.updated}}};
  if (status.diverged) row.object["diverged_in"] = status.diverged->quantity;
  for (const char* each : kListed) {
    const double number = run.number(each);
    row.cells.push_back(written(number, quantity(each).column.format));
    row.object[each] = number;
    if (std::isnan(number)) row.object[each] = nullptr;
  }
  row.cells.push_back(status.updated);
  return row;
}

system::Table table_of(std::span<const ListedRun> runs) {
  system::Table table{{{"", "run", true}, {"", "state", true}, {"", "step"}}, {}};
  for (const char* name : kListed) {
    const Column& column = quantity(name).column;
    table.columns.push_back({column.group, column.head});
  }
  table.columns.push_back({"", "updated", true});
  for (const ListedRun& run : runs) table.rows.push_back(run.cells);
  return table;
}

RunList list_runs(std::span<const fs::path> dirs) {
  RunList list;
  for (const fs::path& dir : run_directories(dirs)) {
    try {
      list.runs.push_back(listed(load_run(dir)));
    } catch (const Error& error) {
      list.left_out.emplace_back(error.what());
    }
  }
  return list;
}

}  // namespace difftape::study
