#include "train/run/records/metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "core/error.h"
#include "train/run/records/h5.h"
#include "train/system/json.h"

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
    const Json row = system::json_or_discarded(std::string_view(text).substr(begin, end - begin));
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
  file_.append(system::json_text(row) + "\n");
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
                        place, name, system::json_text(value)));
      }
      if (!add(table, name, std::move(*found))) {
        throw DataError(
            fmt::format("{}: {} is {}; a metric is a number in every line or a list in "
                        "every line",
                        place, name, system::json_text(value)));
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
  system::truncate_file(path, keep);
}

namespace {

constexpr const char* kMaps = "attention_maps";

std::set<std::string> names_of(const MetricsTable& table) {
  std::set<std::string> names;
  for (const auto& column : table.columns) names.insert(column.first);
  for (const auto& column : table.lists) names.insert(column.first);
  return names;
}

/// The dataset of a metric among others: what extends the name of another one is in a group beside
/// it, because HDF5 has no group that is a dataset too.
std::string dataset_of(const std::string& name, const std::set<std::string>& names) {
  std::string dataset;
  for (std::size_t begin = 0, slash; (slash = name.find('/', begin)) != std::string::npos;
       begin = slash + 1) {
    dataset += name.substr(begin, slash - begin);
    dataset += names.contains(name.substr(0, slash)) ? "_of/" : "/";
  }
  return dataset + name.substr(name.rfind('/') + 1);
}

void write_list(h5::File& file, const std::string& dataset,
                const std::vector<std::vector<double>>& rows) {
  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.size());
  std::vector<double> values(rows.size() * width, std::numeric_limits<double>::quiet_NaN());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    std::ranges::copy(rows[i], values.begin() + static_cast<std::ptrdiff_t>(i * width));
  }
  file.write<double>(dataset, {static_cast<Index>(rows.size()), static_cast<Index>(width)}, values);
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
  const Shape length{static_cast<Index>(table.step.size())};
  file.write<std::int64_t>("step", length,
                           std::vector<std::int64_t>(table.step.begin(), table.step.end()));
  const std::set<std::string> names = names_of(table);
  for (const auto& [name, values] : table.columns) {
    file.write<double>(dataset_of(name, names), length, values);
  }
  for (const auto& [name, rows] : table.lists) write_list(file, dataset_of(name, names), rows);
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
