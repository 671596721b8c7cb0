#include "train/study/compare/run_record.h"

#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/real.h"
#include "train/run/config/fields.h"
#include "train/run/records/metric_registry.h"
#include "train/study/compare/measures.h"
#include "train/study/compare/quantities.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

/// Throws DataError if a field of "data" that a study reads is damaged.
void require_data(const nlohmann::ordered_json& env, const std::string& who) {
  const auto data = env.find("data");
  if (data == env.end() || !data->is_object()) return;
  for (const char* key : {"best_loss", "best_accuracy", "xxh3_128", "val_xxh3_128"}) {
    const auto value = data->find(key);
    const bool text = std::string_view(key).ends_with("xxh3_128");
    if (value == data->end() || (text ? value->is_string() : value->is_number())) continue;
    throw DataError(fmt::format(
        "{} is damaged: data.{} is {}, but must be a {}; restore the file or repeat the run", who,
        key, system::json_text(*value), text ? "string" : "number"));
  }
}

/// Returns the keys that a record knows; a row of an index has the ones that determine its numbers.
unsigned known_keys(bool is_row) { return is_row ? run::kOfNumbers : run::kAllKeys; }

}  // namespace

RunRecord make_record(run::RunDir dir, run::MetricsTable metrics) {
  RunRecord run;
  static_cast<run::RunDir&>(run) = std::move(dir);
  run.metrics = std::move(metrics);
  require_data(run.env, (run.dir / "env.json").string());
  const run::Config& config = run.config;
  run.attention = config.model.attention;
  run.lr = config.optim.lr;
  run.seed = config.run.seed;
  run.name = config.run.name.empty() ? run.dir.filename().string() : config.run.name;
  run.arm = config.run.arm.empty() ? run.name : config.run.arm;
  for (const Quantity& each : quantities()) {
    if (has_metric(run.metrics, each.metric)) run.logged_metrics.insert(each.metric);
    run.numbers.push_back(each.of_run == nullptr ? kNaN : each.of_run(run, each.metric));
  }
  return run;
}

RunRecord load_run(const std::filesystem::path& dir) {
  run::RunDir run = run::open_run(dir);
  run::MetricsTable metrics = run::read_metrics(run.metrics_file());
  return make_record(std::move(run), std::move(metrics));
}

bool RunRecord::logged(const Quantity& quantity) const {
  return logged_metrics.contains(quantity.metric);
}

double RunRecord::number(const Quantity& quantity) const {
  return numbers.at(static_cast<std::size_t>(&quantity - quantities().data()));
}

double RunRecord::number(std::string_view quantity_name) const {
  return number(quantity(quantity_name));
}

run::FlatConfig RunRecord::values() const {
  return flat_config(config, known_keys(!index.empty()));
}

std::string RunRecord::value(const std::string& key) const { return run::value_text(config, key); }

std::vector<std::string> differing_keys(const RunRecord& a, const RunRecord& b) {
  const unsigned keys = known_keys(!a.index.empty() || !b.index.empty());
  return mapped(run::differences(a.config, b.config, keys), [](auto& each) { return each.key; });
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
