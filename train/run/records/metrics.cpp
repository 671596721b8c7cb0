#include "train/run/records/metrics.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"

namespace difftape::run {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Json to_json(double value) {
  if (std::isfinite(value)) return value;
  return number_text(value);
}

Json to_json(const MetricValue& value) {
  if (const double* number = std::get_if<double>(&value)) return to_json(*number);
  Json list = Json::array();
  for (const double number : std::get<std::vector<double>>(value)) list.push_back(to_json(number));
  return list;
}

std::optional<double> to_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return kNaN;
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  return std::nullopt;
}

std::optional<MetricValue> to_value(const Json& value) {
  if (!value.is_array()) return to_number(value);
  std::vector<double> list;
  for (const Json& element : value) {
    const std::optional<double> number = to_number(element);
    if (!number) return std::nullopt;
    list.push_back(*number);
  }
  return list;
}

/// Puts the value of the last step into its column; false if the column is of the other type.
bool add(MetricsTable& table, const std::string& name, MetricValue&& value) {
  const std::size_t steps = table.step.size();
  if (const double* number = std::get_if<double>(&value)) {
    if (table.lists.contains(name)) return false;
    std::vector<double>& column = table.columns[name];
    column.resize(steps, kNaN);
    column.back() = *number;
  } else {
    if (table.columns.contains(name)) return false;
    std::vector<std::vector<double>>& column = table.lists[name];
    column.resize(steps);
    column.back() = std::get<std::vector<double>>(std::move(value));
  }
  return true;
}

Index step_of(const Json& row, Index previous, const std::string& place) {
  const auto found = row.is_object() ? row.find("step") : row.end();
  if (!row.is_object() || found == row.end() || !found->is_number_integer()) {
    throw DataError(place + ": not a line of metrics; need a JSON object with an integer \"step\"");
  }
  const Index step = found->get<Index>();
  if (step <= previous) {
    throw DataError(
        fmt::format("{}: step {} follows step {}; steps must increase", place, step, previous));
  }
  return step;
}

/// Calls f(step, row, place, end) for every complete line; `end` is the offset behind it and
/// `place` is file:line.
template <class F>
void for_each_line(const std::filesystem::path& path, F&& f) {
  const std::string text = system::read_text(path);
  Index previous = std::numeric_limits<Index>::min();
  std::size_t begin = 0;
  for (int line = 1;; ++line) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) return;
    const std::string place = fmt::format("{}:{}", path.string(), line);
    const Json row = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(begin),
                                 text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    previous = step_of(row, previous, place);
    f(previous, row, place, end + 1);
    begin = end + 1;
  }
}

}  // namespace

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return fmt::format("{}", value);
}

void MetricsWriter::write(Index step, const Metrics& metrics) {
  Json row = {{"step", step}};
  for (const auto& [name, value] : metrics) row[name] = to_json(value);
  file_.append(row.dump() + "\n");
}

MetricsTable read_metrics(const std::filesystem::path& path) {
  MetricsTable table;
  for_each_line(path, [&](Index step, const Json& row, const std::string& place, std::size_t) {
    table.step.push_back(static_cast<double>(step));
    for (const auto& [name, value] : row.items()) {
      if (name == "step") continue;
      std::optional<MetricValue> found = to_value(value);
      if (!found) {
        throw DataError(
            fmt::format("{}: {} is {}; need a number, \"NaN\", \"Infinity\" or "
                        "\"-Infinity\", or a list of them",
                        place, name, value.dump()));
      }
      if (!add(table, name, std::move(*found))) {
        throw DataError(
            fmt::format("{}: {} is {}; a metric is a number in every line or a list in "
                        "every line",
                        place, name, value.dump()));
      }
    }
  });
  for (auto& [name, column] : table.columns) column.resize(table.step.size(), kNaN);
  for (auto& [name, column] : table.lists) column.resize(table.step.size());
  return table;
}

void truncate_metrics(const std::filesystem::path& path, Index last_step) {
  std::size_t keep = 0;
  for_each_line(path, [&](Index step, const Json&, const std::string&, std::size_t end) {
    if (step <= last_step) keep = end;
  });
  std::error_code error;
  std::filesystem::resize_file(path, keep, error);
  if (error) {
    throw OutputError(fmt::format("cannot write {}: {}", path.string(), error.message()));
  }
}

}  // namespace difftape::run
