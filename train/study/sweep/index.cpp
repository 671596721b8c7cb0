#include "train/study/sweep/index.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <set>
#include <tuple>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/loop/continuation.h"
#include "train/study/compare/run_record.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

/// What a run contributes, with its losses in groups; nothing if it cannot be read: its state says
/// that it failed.
IndexRow measured(const fs::path& dir, std::vector<double>& groups) {
  try {
    const RunRecord run = load_run(dir);
    groups = run.group_losses().loss;
    return index_row(run);
  } catch (const Error&) {
    return {};
  }
}

fs::path file_of(const SweepConfig& sweep, const char* name) { return fs::path(sweep.out) / name; }

/// The keys in which a row differs from a configuration, with both values.
std::string key_differences(const IndexRow& row, const run::Config& config) {
  std::string text;
  for (const auto& [key, value] : run::result_config(config)) {
    const auto made = row.find(key);
    if (made == row.end() || made->second == value) continue;
    text +=
        fmt::format("{}{} is {} there, not {}", text.empty() ? "" : "; ", key, made->second, value);
  }
  return text;
}

}  // namespace

std::string take_results(SweepConfig& sweep) {
  std::map<std::tuple<std::string, double, std::string>, const IndexRow*> known;
  for (const IndexRow& row : sweep.results->rows) {
    if (!is_complete(row)) continue;
    const std::string& text = row.at("lr");
    double lr = 0;
    std::from_chars(text.data(), text.data() + text.size(), lr);
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
      const std::string keys = key_differences(*found->second, config);
      return fmt::format(
          "{} has {} of seed {} with another configuration: {}; leave sweep.results out, or give "
          "the sweep that configuration",
          sweep.results->file.string(), found->second->at("name"), config.run.seed,
          keys.empty() ? fmt::format("its digest is {}, not {}", made, wanted) : keys);
    }
    run.taken = found->second;
  }
  return "";
}

SweepIndex::SweepIndex(const SweepConfig& sweep) : sweep_(&sweep), rows_(sweep.runs.size()) {
  const fs::path path = file_of(sweep, kIndexFile);
  std::error_code ignored;
  const bool other = fs::exists(path, ignored) &&
                     (!fs::is_regular_file(path, ignored) ||
                      !system::read_text(path).starts_with("name,arm,seed,lr,state,"));
  if (other) {
    throw OutputError(fmt::format(
        "{} exists and is not an index of a sweep; nothing else is replaced: move it, or choose "
        "another directory with --out",
        path.string()));
  }
  find_keys();
}

void SweepIndex::find_keys() {
  std::set<std::string> differ{"model.d_model"};
  std::set<std::string> swept(sweep_->swept.begin(), sweep_->swept.end());
  for (const SweepRun& run : sweep_->runs) {
    const run::FlatConfig flat = run::result_config(run.config());
    if (shared_.empty()) shared_ = flat;
    for (std::size_t i = 0; i < flat.size(); ++i) {
      if (flat[i] != shared_[i]) differ.insert(flat[i].first);
    }
  }
  std::erase_if(swept, [](const auto& key) { return run::has_flag(key, run::kNamesData); });
  differ.insert(swept.begin(), swept.end());
  differ.erase("run.seed");  // a column of every index
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
    const auto groups = sweep_->results->groups.find(row["name"]);
    if (groups != sweep_->results->groups.end()) groups_[config.run.name] = groups->second;
  } else {
    const bool started = progress.on_disk && progress.state != run::RunState::queued;
    if (started) row = measured(config.run.out, groups_[config.run.name]);
    row["config"] = run::result_digest(config);
    row["dir"] = fs::path(config.run.out).filename().string();
  }
  row["name"] = config.run.name;
  row["arm"] = config.run.arm;
  row["seed"] = fmt::to_string(config.run.seed);
  row["lr"] = system::csv_number(config.optim.lr);
  row["state"] = to_string(progress.state);
  const run::FlatConfig all = flat_config(config), deciding = run::result_config(config);
  for (const run::FlatConfig* flat : {&all, &deciding}) {
    for (const auto& [key, value] : *flat) {
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
  std::string index = system::csv_line(columns), shared = "key,value\n", groups;
  for (const IndexRow& row : rows_) {
    std::vector<std::string> fields;
    for (const std::string& column : columns) {
      const auto found = row.find(column);
      fields.push_back(found == row.end() ? "" : found->second);
    }
    index += system::csv_line(fields);
  }
  for (const auto& [key, value] : shared_) shared += system::csv_line(std::vector{key, value});
  for (const IndexRow& row : rows_) {
    const auto found = groups_.find(row.at("name"));
    if (found == groups_.end() || found->second.empty()) continue;
    if (groups.empty()) {
      groups = "name";
      for (std::size_t i = 0; i < found->second.size(); ++i) groups += fmt::format(",{}", i);
      groups += "\n";
    }
    std::vector<std::string> fields{found->first};
    for (const double loss : found->second) fields.push_back(system::csv_number(loss));
    groups += system::csv_line(fields);
  }
  system::replace_text(file_of(*sweep_, kSharedFile), shared);
  if (!groups.empty()) system::replace_text(file_of(*sweep_, kGroupsFile), groups);
  system::replace_text(file_of(*sweep_, kIndexFile), index);
}

}  // namespace difftape::study
