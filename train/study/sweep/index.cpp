#include "train/study/sweep/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "train/run/config/config.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/run_record.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

using Fields = std::vector<std::string>;

/// What the index of every sweep begins with, and what its runs left behind.
const Fields kAsked{"name", "arm", "seed", "lr", "state"};
const Fields kReached{"step", "steps", "diverged_step", "parameters"};

void append(Fields& to, const Fields& more) { to.insert(to.end(), more.begin(), more.end()); }

Fields measured_columns() {
  Fields columns = kReached;
  for (const Quantity& quantity : quantities()) {
    if (quantity.column.tables & kIndex) columns.emplace_back(quantity.name);
  }
  return columns;
}

/// The fields of measured_columns(); empty if the run cannot be read: its state says that it
/// failed.
Fields measured(const fs::path& dir) {
  try {
    const RunRecord run = load_run(dir);
    Fields fields{fmt::to_string(run.status.step), fmt::to_string(run.status.steps),
                  run.status.diverged ? fmt::to_string(run.status.diverged->step) : "",
                  fmt::to_string(run.status.parameters)};
    for (const Quantity& quantity : quantities()) {
      if (quantity.column.tables & kIndex) {
        fields.push_back(system::csv_number(run.number(quantity)));
      }
    }
    return fields;
  } catch (const Error&) {
    return Fields(measured_columns().size());
  }
}

fs::path path_of(const SweepConfig& sweep) { return fs::path(sweep.out) / "index.csv"; }

}  // namespace

std::vector<std::string> index_columns() {
  Fields columns = kAsked;
  append(columns, measured_columns());
  columns.emplace_back("dir");
  return columns;
}

SweepIndex::SweepIndex(const SweepConfig& sweep) : sweep_(&sweep), rows_(sweep.runs.size()) {
  const fs::path path = path_of(sweep);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  if (fs::is_regular_file(path, ignored)) {
    const auto lines = system::read_csv(system::read_text(path));
    if (!lines.empty() && lines[0].size() > kAsked.size() &&
        std::equal(kAsked.begin(), kAsked.end(), lines[0].begin()) &&
        std::ranges::find(lines[0], "dir") != lines[0].end())
      return;
  }
  throw OutputError(fmt::format(
      "{} exists and is no index of a sweep; nothing else is replaced: move it, or choose another "
      "directory with --out",
      path.string()));
}

void SweepIndex::update(std::size_t i, const RunProgress& progress) {
  const SweepRun& run = sweep_->runs[i];
  const run::Config& config = run.config();
  Fields fields{config.run.name, config.run.arm, fmt::to_string(config.run.seed),
                system::csv_number(config.optim.lr), std::string(to_string(progress.state))};
  const bool started = progress.on_disk && progress.state != run::RunState::queued;
  append(fields, started ? measured(config.run.out) : Fields(measured_columns().size()));
  fields.push_back(fs::path(config.run.out).filename().string());
  append(fields, run.swept);
  rows_[i] = system::csv_line(fields);
}

void SweepIndex::write() const {
  Fields columns = index_columns();
  append(columns, sweep_->swept);
  std::string text = system::csv_line(columns);
  for (const std::string& row : rows_) text += row;
  system::replace_text(path_of(*sweep_), text);
}

}  // namespace difftape::study
