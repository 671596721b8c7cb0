#pragma once
// metrics.h5: the columns of metrics.jsonl for tools that read HDF5, and the attention maps that
// diagnostics saw last.

#include <filesystem>
#include <optional>

#include "core/tensor.h"
#include "train/run/records/metrics.h"

namespace difftape::run {

/// The maps of the first measured sequence, one tensor a layer: (output heads, S, T, T), rows
/// queries and columns keys, 0 where a query is masked. S is 1, or 3 with two maps: A1, A2, and
/// |A1 - lambda A2| with rows that add up to 1. T is at most 64.
struct AttentionMaps {
  Index step = 0;  ///< after which they were seen
  std::vector<Tensor> layers;
};

/// Replaces the file at `path`: /step (int64) and one double dataset a metric, as long as /step,
/// NaN where a step did not log it. A list metric is (length of /step, n), n its longest list,
/// NaN beyond the end of a shorter one. A `/` in a metric's name makes a group, so `attn/lambda/3`
/// is dataset 3 of group /attn/lambda. A metric whose name others extend, as `optim/grad_norm` and
/// `optim/grad_norm/<parameter>`, is dataset `value` of that group. Maps are float datasets
/// /attention_maps/<layer>; the group has the attribute `step`. Throws OutputError.
void write_metrics_h5(const std::filesystem::path& path, const MetricsTable& table,
                      const std::optional<AttentionMaps>& maps = std::nullopt);

/// The maps of a metrics.h5, nothing if it has none. Throws MissingInput or DataError.
std::optional<AttentionMaps> read_attention_maps(const std::filesystem::path& metrics_h5);

}  // namespace difftape::run
