#include "train/run/records/metrics.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/error.h"
#include "core/real.h"
#include "train/run/records/metric_registry.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(double value) {
  if (std::isfinite(value)) return value;
  return system::json_number(value);
}

// Lines are parsed with simdjson, a million of them in less than a second.
namespace dom = simdjson::dom;

std::optional<double> to_number(const dom::element& value) {
  if (double number; value.get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  if (text == "NaN") return kNaN;
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  return std::nullopt;
}

Index step_of(const auto& row, const auto& place) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 53;  // steps are stored as doubles
  std::uint64_t found = 0;
  if (row["step"].get(found) != simdjson::SUCCESS || found > kLargest)
    throw DataError(place() +
                    ": is not a line of metrics, but must be a JSON object with an integer "
                    "\"step\"; remove the line");
  return static_cast<Index>(found);
}

void require_order(Index previous, Index step, const auto& place) {
  if (step <= previous) {
    throw DataError(
        fmt::format("{}: step {} follows step {}, but steps must increase; remove the line",
                    place(), step, previous));
  }
}

}  // namespace

void MetricsWriter::write(Index step, const Metrics& metrics) {
  Json row = {{"step", step}};
  for (const auto& [name, value] : metrics) row[name] = to_json(value);
  file_.append(system::json_text(row) + "\n");
}

void append(MetricsTable& table, Index step, const Metrics& metrics) {
  table.step.push_back(static_cast<double>(step));
  for (const auto& [name, value] : metrics) table.columns[name].set(table.step.size() - 1, value);
}

MetricsTable read_metrics(const std::filesystem::path& path,
                          std::initializer_list<std::string_view> only) {
  MetricsTable table;
  dom::parser parser;
  Index previous = std::numeric_limits<Index>::min(), line = 0;
  const auto place = [&] { return fmt::format("{}:{}", path.string(), line); };
  system::for_each_line(path, [&](std::string_view text, std::size_t) {
    line += 1;
    const auto row = parser.parse(text.data(), text.size());
    const Index step = step_of(row, place);
    require_order(previous, step, place);
    previous = step;
    table.step.push_back(static_cast<double>(step));
    for (const auto& [name, value] : dom::object(row)) {
      if (name == "step" || (only.size() > 0 && std::ranges::count(only, name) == 0)) continue;
      const std::optional<double> number = to_number(value);
      throw_if<DataError>(
          !number,
          "{}: {} is {}, but must be a number, \"NaN\", \"Infinity\" or \"-Infinity\"; remove the "
          "line",
          place(), name, simdjson::minify(value));
      auto column = table.columns.find(name);
      if (column == table.columns.end())
        column = table.columns.try_emplace(std::string(name)).first;
      column->second.set(table.step.size() - 1, *number);
    }
  });
  return table;
}

std::optional<LoggedStep> last_logged(const std::filesystem::path& path) {
  if (!system::is_file(path)) return std::nullopt;
  const std::string line = system::last_line_of(path);
  dom::parser parser;
  const auto row = parser.parse(line);
  std::uint64_t step = 0;
  if (row["step"].get(step) != simdjson::SUCCESS) return std::nullopt;
  LoggedStep last{static_cast<Index>(step), kNaN};
  dom::element loss;
  if (row[metric("train/loss")].get(loss) == simdjson::SUCCESS)
    last.loss = to_number(loss).value_or(kNaN);
  return last;
}

void truncate_metrics(const std::filesystem::path& path, Index steps) {
  Index lines = 0, step = 0;
  std::size_t kept = 0;
  dom::parser parser;
  system::for_each_line(path, [&](std::string_view text, std::size_t end) {
    if (++lines != steps) return;
    kept = end;
    const auto row = parser.parse(text.data(), text.size());
    step = step_of(row, [&] { return fmt::format("{}:{}", path.string(), lines); });
  });
  throw_if<DataError>(step != steps,
                      "{}: line {} is not that of step {}, after which the run continues; restore "
                      "the file, or begin a new run with --init-from",
                      path.string(), steps, steps);
  system::truncate_file(path, kept);
}

}  // namespace difftape::run
