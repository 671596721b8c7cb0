#include "train/study/compare/run_index.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/records/metric_registry.h"
#include "train/study/compare/quantities.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Lines = std::vector<std::vector<std::string>>;

constexpr const char* kRemedy = "restore the file or give the directories of its runs";

/// Columns that every row needs.
constexpr const char* kNeeded[] = {"name", "arm",   "seed",   "lr",         "state",
                                   "step", "steps", "config", "parameters", "tokens_per_step"};

struct Fact {
  const char *column, *section, *key;
};
constexpr Fact kFacts[] = {{"data", "data", "xxh3_128"},
                           {"val_data", "data", "val_xxh3_128"},
                           {"commit", "build", "commit"},
                           {"processor", "machine", "cpu"},
                           {"gemm", "build", "gemm_backend"}};

/// Returns a field as a number; NaN if it is empty.
template <class T>
T number(const RunIndex& index, const IndexRow& row, std::string_view column) {
  const std::string& text = field_of(row, column);
  if constexpr (std::is_floating_point_v<T>) {
    if (text.empty() && column != "lr") return kNaN;
  }
  if (const auto value = system::read_number<T>(text)) return *value;
  throw DataError(fmt::format("{}: run {}: {} is '{}', but must be {}; {}", index.file.string(),
                              field_of(row, "name"), column, text,
                              std::is_integral_v<T> ? "an integer" : "a number", kRemedy));
}

bool is_key(const std::string& column) {
  constexpr std::string_view kSections[] = {"model.", "data.", "optim.", "train.", "log."};
  return std::ranges::any_of(kSections, [&](auto each) { return column.starts_with(each); });
}

/// Sets the keys of the configuration that a row has. Returns false if this version does not know a
/// key or value of the attention. Other unknown keys belong to another version and are skipped.
/// Throws DataError for an invalid value of another key.
bool read_config(const RunIndex& index, const IndexRow& row, run::Config& config) {
  constexpr std::string_view kAttention = "model.attention.";
  bool known = std::ranges::all_of(row, [&](const auto& each) {
    return !each.first.starts_with(kAttention) || run::find_field(each.first);
  });
  for (const run::Field& field : run::fields()) {
    const auto found = row.find(field.key);
    if (found == row.end() || !is_key(field.key)) continue;
    try {
      run::set_value(config, field.key, found->second);
    } catch (const ConfigError& error) {
      if (!field.key.starts_with(kAttention))
        throw DataError(fmt::format("{}: run {}: {}", index.file.string(), field_of(row, "name"),
                                    error.what()));
      known = false;
    }
  }
  config.run.name = field_of(row, "name");
  config.run.arm = field_of(row, "arm");
  config.run.claims = field_of(row, "claims");
  return known;
}

Json env_of(const IndexRow& row) {
  Json env{{"command", Json::array()}};
  for (const auto& [column, section, key] : kFacts) {
    if (const std::string& text = field_of(row, column); !text.empty()) env[section][key] = text;
  }
  return env;
}

run::RunState require_state(const RunIndex& index, const IndexRow& row) {
  const auto state = from_string<run::RunState>(field_of(row, "state"));
  if (state) return *state;
  throw DataError(fmt::format("{}: run {}: state is '{}', but must be one of {}; {}",
                              index.file.string(), field_of(row, "name"), field_of(row, "state"),
                              fmt::join(names<run::RunState>(), ", "), kRemedy));
}

run::RunStatus status_of(const RunIndex& index, const IndexRow& row) {
  run::RunStatus status;
  status.state = require_state(index, row);
  status.step = number<Index>(index, row, "step");
  status.steps = number<Index>(index, row, "steps");
  status.parameters = number<Index>(index, row, "parameters");
  status.tokens_per_step = number<Index>(index, row, "tokens_per_step");
  if (!field_of(row, "diverged_step").empty()) {
    status.diverged = {number<Index>(index, row, "diverged_step"), field_of(row, "diverged_in"), "",
                       field_of(row, "diverged_op")};
  }
  return status;
}

Lines lines_of(const fs::path& file) {
  Lines lines = system::read_csv(system::read_text(file));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].size() == lines[0].size()) continue;
    throw DataError(fmt::format("{}:{}: has {} fields, but must have {}, as the first line; {}",
                                file.string(), i + 1, lines[i].size(), lines[0].size(), kRemedy));
  }
  return lines;
}

void require_same_data(const RunIndex& a, const RunIndex& b) {
  const auto data_of = [](const RunIndex& index) {
    std::set<std::string> digests;
    for (const IndexRow& row : index.rows) {
      if (is_complete(row)) digests.insert(data_digest(row));
    }
    digests.erase("");
    return digests;
  };
  const std::set<std::string> of_a = data_of(a), of_b = data_of(b);
  const bool shared =
      std::ranges::any_of(of_b, [&](const std::string& each) { return of_a.contains(each); });
  if (shared || of_a.empty() || of_b.empty()) return;
  throw DataError(fmt::format(
      "{}: its data has the digest {}, but must have the digest of {}, {}; report them separately",
      b.file.string(), *of_b.begin(), a.file.string(), *of_a.begin()));
}

/// Returns a quantity in which two rows of one run differ; speed may differ, and an index of an
/// earlier version lacks some.
const Quantity* differing_quantity(const IndexRow& a, const IndexRow& b) {
  const auto differs = [&](const Quantity& each) {
    return std::string_view(each.metric) != run::metric("throughput/tokens_per_sec") &&
           a.contains(each.name) && b.contains(each.name) &&
           field_of(a, each.name) != field_of(b, each.name);
  };
  const auto found = std::ranges::find_if(quantities(), differs);
  return found == quantities().end() ? nullptr : &*found;
}

}  // namespace

const std::string& field_of(const IndexRow& row, std::string_view column) {
  static const std::string none;
  const auto found = row.find(column);
  return found == row.end() ? none : found->second;
}

std::string env_text(const RunRecord& run, const char* section, const char* key) {
  const auto found = run.env.find(section);
  if (found == run.env.end() || !found->is_object()) return "";
  const auto value = found->find(key);
  return value != found->end() && value->is_string() ? value->get<std::string>() : "";
}

std::vector<std::string> index_columns() {
  std::vector<std::string> columns{"name",        "arm",         "seed",       "lr",
                                   "state",       "step",        "steps",      "diverged_step",
                                   "diverged_in", "diverged_op", "parameters", "tokens_per_step"};
  for (const Quantity& quantity : quantities()) {
    if (!quantity.is_of_seed()) columns.emplace_back(quantity.name);
  }
  columns.insert(columns.end(), {"baseline", "config", "claims"});
  for (const Fact& each : kFacts) columns.emplace_back(each.column);
  columns.insert(columns.end(), {"dir", "from"});
  return columns;
}

IndexRow index_row(const RunRecord& run) {
  const run::RunStatus& status = run.status;
  IndexRow row{{"step", fmt::to_string(status.step)},
               {"steps", fmt::to_string(status.steps)},
               {"parameters", fmt::to_string(status.parameters)},
               {"tokens_per_step", fmt::to_string(status.tokens_per_step)},
               {"claims", run.config.run.claims}};
  if (status.diverged) {
    row["diverged_step"] = fmt::to_string(status.diverged->step);
    row["diverged_in"] = status.diverged->quantity;
    row["diverged_op"] = status.diverged->op;
  }
  for (const Quantity& quantity : quantities()) {
    if (quantity.is_of_seed()) continue;
    const double number = run.number(quantity);
    if (!run.logged(quantity) && std::isnan(number)) continue;
    row[quantity.name] = std::isnan(number) ? "nan" : fmt::to_string(number);  // never "-nan"
  }
  for (const auto& [name, column] : run.metrics.columns) {
    constexpr std::string_view kOfDomain = "val/loss/";
    if (!name.starts_with(kOfDomain) || run.diverged()) continue;
    row["val_loss/" + name.substr(kOfDomain.size())] = fmt::to_string(column.values().back());
  }
  for (const auto& [column, section, key] : kFacts) row[column] = env_text(run, section, key);
  const std::string vectors = env_text(run, "build", "vectors");
  if (!vectors.empty())
    row["processor"] += fmt::format(" ({})", vectors.substr(0, vectors.find(',')));
  return row;
}

bool is_index(const fs::path& file) {
  if (!system::is_there(file)) return false;
  const Lines lines = system::read_csv(system::read_text(file));
  return !lines.empty() && std::ranges::find(lines[0], "config") != lines[0].end();
}

RunIndex read_index(const fs::path& file) {
  RunIndex index{file, {}};
  const Lines lines = lines_of(file);
  for (const char* column : kNeeded) {
    if (!lines.empty() && std::ranges::find(lines[0], column) != lines[0].end()) continue;
    throw DataError(fmt::format(
        "{} has no column '{}', but must be the index.csv of a sweep; an index of an earlier "
        "version cannot replace its runs, so give their directories",
        file.string(), column));
  }
  IndexRow shared;
  for (const auto& line : lines_of(file.parent_path() / kSharedFile)) {
    if (line.size() == 2 && is_key(line[0])) shared.emplace(line[0], line[1]);
  }
  std::set<std::string> names;
  for (std::size_t i = 1; i < lines.size(); ++i) {
    IndexRow& row = index.rows.emplace_back(shared);
    for (std::size_t column = 0; column < lines[0].size(); ++column)
      row[lines[0][column]] = lines[i][column];
    if (!names.insert(row["name"]).second)
      throw DataError(fmt::format(
          "{}:{}: is a second row of run {}, but each run must have one row; remove one of them",
          file.string(), i + 1, row["name"]));
    require_state(index, row);
  }
  return index;
}

bool is_complete(const IndexRow& row) {
  const auto state = from_string<run::RunState>(field_of(row, "state"));
  return state && run::is_complete(*state);
}

std::string data_digest(const IndexRow& row) {
  const std::string &data = field_of(row, "data"), &val_data = field_of(row, "val_data");
  return val_data.empty() ? data : data + "/" + val_data;
}

RunRecord record_of(const RunIndex& index, const IndexRow& row) {
  const std::string &name = field_of(row, "name"), &dir = field_of(row, "dir");
  run::RunDir found{index.file.parent_path() / (dir.empty() ? name : dir), status_of(index, row),
                    env_of(row)};
  const bool known = read_config(index, row, found.config);
  const double lr = number<double>(index, row, "lr");
  throw_if<DataError>(!(lr > 0) || std::isinf(lr),
                      "{}: run {}: lr is '{}', but must be a number above 0; {}",
                      index.file.string(), name, field_of(row, "lr"), kRemedy);
  found.config.optim.lr = lr;
  found.config.run.seed = number<std::uint64_t>(index, row, "seed");
  RunRecord run = make_record(std::move(found), {});
  if (!known) run.attention.reset();
  run.index = index.file.string();
  for (std::size_t i = 0; i < run.numbers.size(); ++i) {
    const Quantity& quantity = quantities()[i];
    if (quantity.is_of_seed() || field_of(row, quantity.name).empty()) continue;
    run.numbers[i] = number<double>(index, row, quantity.name);
    // A diverged run has values of metrics that it did not log: its final loss is the cap.
    if (!run.diverged() || !quantity.of_diverged) run.logged_metrics.insert(quantity.metric);
  }
  return run;
}

std::vector<RunRecord> pooled_runs(std::span<const fs::path> files,
                                   std::vector<std::string>& notes) {
  std::vector<RunIndex> indexes;
  std::vector<RunRecord> runs;
  std::map<std::vector<std::string>, std::pair<const RunIndex*, const IndexRow*>> known;
  indexes.reserve(files.size());  // `known` points into it
  for (const fs::path& file : files) {
    const RunIndex& index = indexes.emplace_back(read_index(file));
    require_same_data(indexes.front(), index);
    for (const IndexRow& row : index.rows) {
      if (!is_complete(row)) continue;
      std::vector<std::string> key{data_digest(row)};
      for (const char* column : {"arm", "lr", "seed", "config"})
        key.push_back(field_of(row, column));
      const auto [other, added] = known.emplace(key, std::pair(&index, &row));
      if (added) {
        runs.push_back(record_of(index, row));
      } else if (const Quantity* quantity = differing_quantity(*other->second.second, row)) {
        throw DataError(fmt::format(
            "{}: run {} has the {} {}, but the same run in {} has {}; give only one of the two "
            "files",
            file.string(), field_of(row, "name"), quantity->label, field_of(row, quantity->name),
            other->second.first->file.string(), field_of(*other->second.second, quantity->name)));
      }
    }
    const auto open =
        std::ranges::count_if(index.rows, [](auto& row) { return !is_complete(row); });
    if (open > 0)
      notes.push_back(fmt::format("{}: {} of {} runs are not complete; not in the statistics",
                                  file.string(), open, index.rows.size()));
  }
  if (runs.empty() && !files.empty())
    throw MissingInput(fmt::format("{}: no run is complete; give an index with complete runs",
                                   files.front().string()));
  return runs;
}

}  // namespace difftape::study
