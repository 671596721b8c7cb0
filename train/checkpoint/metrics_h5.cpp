#include "train/checkpoint/metrics_h5.h"

#include "train/checkpoint/h5.h"

namespace difftape {

void write_metrics_h5(const std::filesystem::path& path, const MetricsTable& table) {
  h5::File file = h5::File::create(path);
  const Shape length{static_cast<Index>(table.step.size())};
  file.write<std::int64_t>("step", length,
                           std::vector<std::int64_t>(table.step.begin(), table.step.end()));
  for (const auto& [name, values] : table.columns) {
    const auto extended = table.columns.lower_bound(name + "/");
    const bool is_group =
        extended != table.columns.end() && extended->first.starts_with(name + "/");
    file.write<double>(is_group ? name + "/value" : name, length, values);
  }
  file.save();
}

}  // namespace difftape
