#include "train/log/metrics.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"

namespace difftape {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Json to_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

std::optional<double> to_number(const Json& value) {
  if (value.is_number()) return value.get<double>();
  if (value == "NaN") return kNaN;
  if (value == "Infinity") return kInfinity;
  if (value == "-Infinity") return -kInfinity;
  return std::nullopt;
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
  const std::string text = read_text(path);
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
      const std::optional<double> number = to_number(value);
      if (!number) {
        throw DataError(
            fmt::format("{}: {} is {}; need a number, \"NaN\", \"Infinity\" or "
                        "\"-Infinity\"",
                        place, name, value.dump()));
      }
      std::vector<double>& column = table.columns[name];
      column.resize(table.step.size(), kNaN);
      column.back() = *number;
    }
  });
  for (auto& [name, column] : table.columns) column.resize(table.step.size(), kNaN);
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

}  // namespace difftape
