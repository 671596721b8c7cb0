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
#include "train/run/records/h5.h"
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

Json to_json(const MetricValue& value) {
  if (const double* number = std::get_if<double>(&value)) return to_json(*number);
  Json list = Json::array();
  for (const double number : std::get<std::vector<double>>(value)) list.push_back(to_json(number));
  return list;
}

// Lines are parsed with simdjson, a million of them in less than a second.
namespace dom = simdjson::dom;

std::optional<double> to_number(auto value) {
  if (double number; value.get(number) == simdjson::SUCCESS) return number;
  std::string_view text;
  if (value.get(text) != simdjson::SUCCESS) return std::nullopt;
  if (text == "NaN") return kNaN;
  if (text == "Infinity") return kInfinity;
  if (text == "-Infinity") return -kInfinity;
  return std::nullopt;
}

std::optional<MetricValue> to_value(const dom::element& value) {
  if (!value.is_array()) return to_number(value);
  std::vector<double> list;
  for (const dom::element element : dom::array(value)) {
    const std::optional<double> number = to_number(element);
    if (!number) return std::nullopt;
    list.push_back(*number);
  }
  return list;
}

/// Adds the value of the last step to its column. Returns false if the column has the other type.
bool add(MetricsTable& table, std::string_view name, MetricValue&& value) {
  const auto put = [&](auto& columns, const auto& others, auto&& what) {
    auto column = columns.find(name);
    if (column == columns.end()) {
      if (others.contains(name)) return false;
      column = columns.try_emplace(std::string(name)).first;
    }
    column->second.set(table.step.size() - 1, std::forward<decltype(what)>(what));
    return true;
  };
  if (const double* number = std::get_if<double>(&value))
    return put(table.columns, table.lists, *number);
  return put(table.lists, table.columns, std::get<std::vector<double>>(std::move(value)));
}

Index step_of(auto& row, const auto& place) {
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

/// Calls f(step, row, place) for every complete line, row being what parse(line) returns, and
/// place() file:line.
template <class Parse, class F>
void for_each_line(const std::filesystem::path& path, Parse&& parse, F&& f) {
  Index previous = std::numeric_limits<Index>::min(), line = 0;
  const auto place = [&] { return fmt::format("{}:{}", path.string(), line); };
  system::for_each_line(path, [&](std::string_view text, std::size_t) {
    line += 1;
    auto row = parse(text);
    const Index step = step_of(row, place);
    require_order(previous, step, place);
    previous = step;
    f(step, row, place);
  });
}

}  // namespace

void MetricsWriter::write(Index step, const Metrics& metrics) {
  Json row = {{"step", step}};
  for (const auto& [name, value] : metrics) row[name] = to_json(value);
  file_.append(system::json_text(row) + "\n");
}

void append(MetricsTable& table, Index step, const Metrics& metrics) {
  table.step.push_back(static_cast<double>(step));
  for (const auto& [name, value] : metrics) add(table, name, MetricValue(value));
}

MetricsTable read_metrics(const std::filesystem::path& path) {
  MetricsTable table;
  dom::parser parser;
  const auto parse = [&](std::string_view line) { return parser.parse(line.data(), line.size()); };
  for_each_line(path, parse, [&](Index step, const auto& row, const auto& place) {
    table.step.push_back(static_cast<double>(step));
    for (const auto& [name, value] : dom::object(row)) {
      if (name == "step") continue;
      std::optional<MetricValue> found = to_value(value);
      if (!found)
        throw DataError(
            fmt::format("{}: {} is {}, but must be a number, \"NaN\", \"Infinity\" or "
                        "\"-Infinity\", or a list of these; remove the line",
                        place(), name, simdjson::minify(value)));
      if (!add(table, name, std::move(*found)))
        throw DataError(
            fmt::format("{}: {} is {}, but must be a number in every line or a list in "
                        "every line; remove the line",
                        place(), name, simdjson::minify(value)));
    }
  });
  return table;
}

std::vector<std::pair<Index, double>> read_metric(const std::filesystem::path& path,
                                                  std::string_view metric) {
  std::vector<std::pair<Index, double>> found;
  simdjson::ondemand::parser parser;  // reads a line only as far as it is asked to
  std::string padded;
  const auto parse = [&](std::string_view line) {
    padded.reserve(line.size() + simdjson::SIMDJSON_PADDING);
    padded = line;
    return parser.iterate(padded);
  };
  for_each_line(path, parse, [&](Index step, auto& row, const auto&) {
    simdjson::ondemand::value value;
    if (row[metric].get(value) != simdjson::SUCCESS) return;
    if (const std::optional<double> number = to_number(value)) found.emplace_back(step, *number);
  });
  return found;
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

namespace {

constexpr const char* kMaps = "attention_maps";

/// Writes a dataset with one row per step, padded with NaN. Compresses it if some rows did not log
/// the list.
void write_list(h5::File& file, const std::string& name, std::size_t rows,
                const Column<std::vector<double>>& column) {
  std::size_t width = 0;
  for (const auto& list : column.values()) width = std::max(width, list.size());
  std::vector<double> values(rows * width, kNaN);
  for (std::size_t i = 0; i < column.values().size(); ++i) {
    const auto to = values.begin() + column.row(i) * width;
    std::ranges::copy(column.values()[i], to);
  }
  const bool gaps = column.values().size() < rows;
  file.write<double>(name, {static_cast<Index>(rows), static_cast<Index>(width)}, values,
                     gaps ? h5::Storage::compressed : h5::Storage::plain);
}

void write_maps(h5::File& file, const AttentionMaps& maps) {
  for (std::size_t layer = 0; layer < maps.layers.size(); ++layer) {
    const Tensor& map = maps.layers[layer];
    const std::vector<float> values(map.values().begin(), map.values().end());
    file.write<float>(fmt::format("{}/{}", kMaps, layer), map.shape(), values);
  }
  file.set_attribute(kMaps, "step", maps.step);
}

}  // namespace

void write_metrics_h5(const std::filesystem::path& path, const MetricsTable& table,
                      const std::optional<AttentionMaps>& maps) {
  h5::File file = h5::File::create(path);
  const Shape length{std::ssize(table.step)};
  file.write<std::int64_t>("step", length,
                           std::vector<std::int64_t>(table.step.begin(), table.step.end()));
  for (const auto& [name, column] : table.lists) write_list(file, name, table.step.size(), column);
  if (maps) write_maps(file, *maps);
  file.save();
}

std::optional<AttentionMaps> read_attention_maps(const std::filesystem::path& metrics_h5) {
  const h5::File file = h5::File::open(metrics_h5);
  if (!file.exists(kMaps)) return std::nullopt;
  AttentionMaps maps{file.int_attribute(kMaps, "step"), {}};
  const std::size_t layers = file.children(kMaps).size();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const std::string dataset = fmt::format("{}/{}", kMaps, layer);
    Tensor map = Tensor::empty(file.shape(dataset));
    file.read<real>(dataset, map.values());
    maps.layers.push_back(std::move(map));
  }
  return maps;
}

}  // namespace difftape::run
