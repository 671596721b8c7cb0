#include "train/run/records/metrics_h5.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "train/run/records/h5.h"

namespace difftape::run {

namespace {

constexpr const char* kMaps = "attention_maps";

std::set<std::string> names_of(const MetricsTable& table) {
  std::set<std::string> names;
  for (const auto& column : table.columns) names.insert(column.first);
  for (const auto& column : table.lists) names.insert(column.first);
  return names;
}

/// The dataset of a metric among others.
std::string dataset_of(const std::string& name, const std::set<std::string>& names) {
  const auto extended = names.lower_bound(name + "/");
  const bool is_group = extended != names.end() && extended->starts_with(name + "/");
  return is_group ? name + "/value" : name;
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
