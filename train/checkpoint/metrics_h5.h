#pragma once
// metrics.h5: the columns of metrics.jsonl for tools that read HDF5.

#include <filesystem>

#include "train/log/metrics.h"

namespace difftape {

/// Replaces the file at `path`: /step (int64) and one double dataset a metric, as long as /step,
/// NaN where a step did not log it. A `/` in a metric's name makes a group, so `attn/lambda/3` is
/// dataset 3 of group /attn/lambda. A metric whose name others extend, as `optim/grad_norm` and
/// `optim/grad_norm/<parameter>`, is dataset `value` of that group. Throws OutputError.
void write_metrics_h5(const std::filesystem::path& path, const MetricsTable& table);

}  // namespace difftape
