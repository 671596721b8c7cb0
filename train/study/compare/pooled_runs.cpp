#include "train/study/compare/pooled_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "train/run/records/metric_registry.h"
#include "train/study/compare/quantities.h"
#include "train/study/compare/run_index.h"

namespace difftape::study {

namespace fs = std::filesystem;

namespace {

/// The data that the rows of an index were trained on.
std::set<std::string> data_of(const RunIndex& index) {
  std::set<std::string> digests;
  for (const IndexRow& row : index.rows) {
    if (is_complete(row)) digests.insert(data_digest(row));
  }
  digests.erase("");
  return digests;
}

void require_same_data(const RunIndex& a, const RunIndex& b) {
  const std::set<std::string> of_a = data_of(a), of_b = data_of(b);
  const bool shared =
      std::ranges::any_of(of_b, [&](const std::string& each) { return of_a.contains(each); });
  if (shared || of_a.empty() || of_b.empty()) return;
  throw DataError(fmt::format(
      "{}: its data have the digest {}, but must have that of {}, {}; report on them separately",
      b.file.string(), *of_b.begin(), a.file.string(), *of_a.begin()));
}

/// A quantity in which two rows of one run differ; how fast it was may.
const Quantity* differing_quantity(const IndexRow& a, const IndexRow& b) {
  const auto differs = [&](const Quantity& each) {
    return std::string_view(each.metric) != run::metric("throughput/tokens_per_sec") &&
           field_of(a, each.name) != field_of(b, each.name);
  };
  const auto found = std::ranges::find_if(quantities(), differs);
  return found == quantities().end() ? nullptr : &*found;
}

}  // namespace

std::vector<RunRecord> pooled_runs(std::span<const fs::path> files,
                                   std::vector<std::string>& notes) {
  std::vector<RunIndex> indexes;
  std::vector<RunRecord> runs;
  std::map<std::vector<std::string>, std::pair<const RunIndex*, const IndexRow*>> known;
  indexes.reserve(files.size());  // `known` points into it
  for (const fs::path& file : files) {
    const RunIndex& index = indexes.emplace_back(read_index(file));
    require_same_data(indexes.front(), index);
    for (const IndexRow& row : index.rows) {
      if (!is_complete(row)) continue;
      std::vector<std::string> key{data_digest(row)};
      for (const char* column : {"arm", "lr", "seed", "config"})
        key.push_back(field_of(row, column));
      const auto [other, added] = known.emplace(key, std::pair(&index, &row));
      if (added) {
        runs.push_back(record_of(index, row));
      } else if (const Quantity* quantity = differing_quantity(*other->second.second, row)) {
        throw DataError(fmt::format(
            "{}: run {} has the {} {}, but must have that of the same run in {}, {}; give one of "
            "the two files",
            file.string(), field_of(row, "name"), quantity->label, field_of(row, quantity->name),
            other->second.first->file.string(), field_of(*other->second.second, quantity->name)));
      }
    }
    const auto open =
        std::ranges::count_if(index.rows, [](auto& row) { return !is_complete(row); });
    if (open > 0)
      notes.push_back(fmt::format("{}: {} of {} runs are not complete; not in the statistics",
                                  file.string(), open, index.rows.size()));
  }
  if (runs.empty() && !files.empty())
    throw MissingInput(fmt::format("{}: no run of it is complete", files.front().string()));
  return runs;
}

}  // namespace difftape::study
