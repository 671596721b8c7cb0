#include <fmt/format.h>

#include <algorithm>
#include <concepts>
#include <set>

#include "core/real.h"
#include "train/run/records/h5.h"
#include "train/run/records/metric_registry.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

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

/// A dataset of the shape whose rows are those of the column, NaN where there is none. Most of a
/// long one is NaN if it was not logged in every row.
template <class T>
void write_column(h5::File& file, const std::string& dataset, const Shape& shape,
                  const Column<T>& column) {
  const auto rows = static_cast<std::size_t>(shape[0]);
  const auto size = static_cast<std::size_t>(shape.size());
  std::vector<double> values(size, kNaN);
  for (std::size_t i = 0; i < column.values().size(); ++i) {
    const auto to = values.begin() + static_cast<std::ptrdiff_t>(column.row(i) * (size / rows));
    if constexpr (std::floating_point<T>) {
      *to = column.values()[i];
    } else {
      std::ranges::copy(column.values()[i], to);
    }
  }
  const bool gaps = column.values().size() < rows;
  file.write<double>(dataset, shape, values, gaps ? h5::Storage::compressed : h5::Storage::plain);
}

/// Whether a list is logged once: among NaN for all other steps it would be most of the file.
bool is_of_last_step(std::string_view name) {
  return std::ranges::any_of(kMetrics, [name](const Metric& metric) {
    return metric.name == name && metric.when == When::last;
  });
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
  for (const auto& [name, column] : table.columns)
    write_column(file, dataset_of(name, names), length, column);
  for (const auto& [name, column] : table.lists) {
    if (is_of_last_step(name)) {
      const std::vector<double>& last = column.values().back();
      file.write<double>(dataset_of(name, names), {std::ssize(last)}, last);
      continue;
    }
    std::size_t width = 0;
    for (const auto& list : column.values()) width = std::max(width, list.size());
    write_column(file, dataset_of(name, names), {length[0], static_cast<Index>(width)}, column);
  }
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
