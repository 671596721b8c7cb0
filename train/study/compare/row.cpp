#include "train/study/compare/row.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/real.h"
#include "train/run/config/fields.h"
#include "train/run/config/writer.h"
#include "train/run/records/metric_registry.h"
#include "train/study/compare/measures.h"
#include "train/study/compare/quantities.h"
#include "train/system/json.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

using Json = nlohmann::ordered_json;

/// A column of runs.csv with a value of env.json.
struct Fact {
  const char *column, *section, *key;
  bool is_number = false;
};
constexpr Fact kFacts[] = {{"data", "data", "xxh3_128"},
                           {"val_data", "data", "val_xxh3_128"},
                           {"best_loss", "data", "best_loss", true},
                           {"best_accuracy", "data", "best_accuracy", true},
                           {"commit", "build", "commit"},
                           {"compiler", "build", "compiler"},
                           {"build_type", "build", "build_type"},
                           {"precision", "build", "precision"},
                           {"gemm", "build", "gemm_backend"},
                           {"bf16", "build", "bf16_backend"},
                           {"processor", "machine", "cpu"}};

/// Returns a value of a section of env.json; null if it is missing.
const Json* find_value(const Json& env, const char* section, const char* key) {
  const auto found = env.find(section);
  if (found == env.end() || !found->is_object()) return nullptr;
  const auto value = found->find(key);
  return value == found->end() ? nullptr : &*value;
}

/// Returns the facts of a run. Throws DataError if a field of "data" is damaged.
Strings facts_of(const LoadedRun& run) {
  Strings facts;
  for (const auto& [column, section, key, is_number] : kFacts) {
    const Json* value = find_value(run.env, section, key);
    if (value == nullptr) continue;
    if (is_number && value->is_number()) {
      facts[column] = system::csv_number(value->get<double>());
    } else if (!is_number && value->is_string()) {
      facts[column] = value->get<std::string>();
    } else if (section == std::string_view("data")) {
      throw DataError(fmt::format(
          "{} is damaged: data.{} is {}, but must be a {}; restore the file or repeat the run",
          (run.dir / "env.json").string(), key, system::json_text(*value),
          is_number ? "number" : "string"));
    }
  }
  const Json* vectors = find_value(run.env, "build", "vectors");
  if (vectors != nullptr && vectors->is_string()) {
    const auto text = vectors->get<std::string>();
    facts["processor"] += fmt::format(" ({})", text.substr(0, text.find(',')));
  }
  if (!run.config.run.claims.empty()) facts["claims"] = run.config.run.claims;
  return facts;
}

}  // namespace

std::vector<std::string> fact_columns() {
  std::vector<std::string> columns{"baseline", "claims"};
  for (const Fact& fact : kFacts) columns.emplace_back(fact.column);
  return columns;
}

Row planned_row(const run::Config& config, const std::filesystem::path& dir) {
  Row row{.dir = dir,
          .name = config.run.name.empty() ? dir.filename().string() : config.run.name,
          .arm = config.run.arm,
          .lr = config.optim.lr,
          .seed = config.run.seed};
  if (row.arm.empty()) row.arm = row.name;
  row.status.state = run::RunState::queued;
  row.status.steps = config.train.steps;
  row.numbers.assign(quantities().size(), kNaN);
  for (const run::Field& field : run::fields()) {
    const bool is_path = (field.flags & (run::kNamesRun | run::kNamesData)) != 0;
    if (!is_path && !field.key.starts_with("run."))
      row.config[field.key] = run::value_text(config, field.key);
  }
  return row;
}

Row reduced(const LoadedRun& run) {
  Row row = planned_row(run.config, run.dir);
  row.status = run.status;
  row.facts = facts_of(run);
  for (std::size_t i = 0; i < row.numbers.size(); ++i) {
    const Quantity& each = quantities()[i];
    if (has_metric(run.metrics, each.metric)) row.logged_metrics.insert(each.metric);
    if (!each.is_of_seed()) row.numbers[i] = each.of_run(run, each.metric);
  }
  constexpr std::string_view kOfDomain = "val/loss/";
  for (const auto& [name, column] : run.metrics.columns)
    if (name.starts_with(kOfDomain) && !run.diverged())
      row.domains[name.substr(kOfDomain.size())] = column.values().back();
  return row;
}

LoadedRun load_directory(const std::filesystem::path& dir) {
  LoadedRun run{run::open_run(dir)};
  run.metrics = run::read_metrics(run.metrics_file());
  return run;
}

Row load_run(const std::filesystem::path& dir) {
  const LoadedRun run = load_directory(dir);
  const std::vector<double>& steps = run.metrics.step;
  const auto last = static_cast<Index>(steps.empty() ? 0 : steps.back());
  const Index missing = run.status.step - std::ssize(steps);
  throw_if<DataError>(
      run.status.state == run::RunState::finished && (last != run.status.step || missing > 0),
      "{}: has {} lines up to step {}, but must have one for each of the {} steps "
      "in status.json; restore the file or repeat the run",
      run.metrics_file().string(), steps.size(), last, run.status.step);
  return reduced(run);
}

bool Row::logged(const Quantity& quantity) const {
  return logged_metrics.contains(quantity.metric);
}

double Row::number(const Quantity& quantity) const {
  return numbers.at(static_cast<std::size_t>(&quantity - quantities().data()));
}

double Row::number(std::string_view quantity_name) const { return number(quantity(quantity_name)); }

std::string Row::value(const std::string& key) const {
  const auto found = config.find(key);
  if (found != config.end()) return found->second;
  static const Strings defaults = planned_row({}, "").config;
  const auto initial = defaults.find(key);
  return initial == defaults.end() ? "" : initial->second;
}

std::string Row::fact(std::string_view column) const {
  const auto found = facts.find(column);
  return found == facts.end() ? "" : found->second;
}

const LoadedRun& Row::curves() const {
  if (!loaded)
    loaded = std::make_shared<const LoadedRun>(file.empty() ? load_directory(dir) : LoadedRun{});
  return *loaded;
}

std::vector<std::string> differing_keys(const Row& a, const Row& b) {
  std::set<std::string> keys;
  for (const Row* each : {&a, &b})
    for (const auto& [key, value] : each->config) keys.insert(key);
  std::erase_if(keys, [&](const std::string& key) {
    const bool both = a.config.contains(key) && b.config.contains(key);
    if (!both && !run::find_field(key)) return true;
    const std::string mine = a.value(key), theirs = b.value(key);
    const auto x = system::read_number<double>(mine), y = system::read_number<double>(theirs);
    return mine == theirs || (x && y && *x == *y);
  });
  return {keys.begin(), keys.end()};
}

std::string describe_state(const run::RunStatus& status) {
  const std::string_view word = to_string(status.state);
  using enum run::RunState;
  if (status.state == running) return fmt::format("running {}/{}", status.step, status.steps);
  if (status.state == queued || status.state == finished) return std::string(word);
  if (status.state != diverged || !status.diverged)
    return fmt::format("{} {} step {}", word, status.state == killed ? "after" : "at", status.step);
  const run::Divergence& where = *status.diverged;
  return fmt::format("diverged at step {} ({}){}{}", where.step, where.quantity,
                     where.op.empty() ? "" : ", first op: ", where.op);
}

}  // namespace difftape::study
