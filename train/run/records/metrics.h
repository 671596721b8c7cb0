#pragma once
// What a run measured. metrics.jsonl is the original: one JSON object a logged step, never
// rewritten. A value is a number or a list of numbers. Numbers are JSON numbers that read back bit
// for bit; JSON has none for NaN and the infinities, so those are the strings "NaN", "Infinity" and
// "-Infinity". metrics.h5 has its lists as arrays for tools that read HDF5, with the attention maps
// that diagnostics saw last.

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/real.h"
#include "core/tensor.h"
#include "train/system/files.h"

namespace difftape::run {

/// What each row logged of a metric. Memory follows from the rows that logged it: in a million
/// steps most metrics are measured seldom.
template <class T>
class Column {
 public:
  Column() = default;
  /// Of the rows from the first on.
  Column(std::vector<T> values) : values_(std::move(values)) {}
  Column(std::initializer_list<T> values) : values_(values) {}

  /// Fast for a row behind all others.
  void set(std::size_t row, T value) {
    const std::size_t at = position(row);
    if (is_at(at, row)) {
      values_[at] = std::move(value);
      return;
    }
    const bool gaps = !rows_.empty() || row != values_.size();
    if (gaps && rows_.empty()) {
      rows_.resize(values_.size());
      std::iota(rows_.begin(), rows_.end(), 0U);
    }
    const auto offset = static_cast<std::ptrdiff_t>(at);
    if (gaps) rows_.insert(rows_.begin() + offset, static_cast<std::uint32_t>(row));
    values_.insert(values_.begin() + offset, std::move(value));
  }

  /// NaN or an empty list where a row logged nothing.
  const T& operator[](std::size_t row) const {
    static const T nothing = [] {
      if constexpr (std::floating_point<T>) return std::numeric_limits<T>::quiet_NaN();
      return T();
    }();
    const std::size_t at = position(row);
    return is_at(at, row) ? values_[at] : nothing;
  }

  /// What was logged, by row, and the row of each.
  const std::vector<T>& values() const { return values_; }
  std::size_t row(std::size_t i) const { return rows_.empty() ? i : rows_[i]; }

 private:
  /// Of the first value whose row is not before this one.
  std::size_t position(std::size_t row) const {
    if (rows_.empty()) return std::min(row, values_.size());
    return static_cast<std::size_t>(std::ranges::lower_bound(rows_, row) - rows_.begin());
  }
  bool is_at(std::size_t at, std::size_t row) const {
    return at < values_.size() && this->row(at) == row;
  }

  std::vector<T> values_;
  std::vector<std::uint32_t> rows_;  ///< of the values; empty: they are of the rows from 0 on
};

/// A number, or a list of them such as one a head.
struct MetricValue : std::variant<double, std::vector<double>> {
  MetricValue(double number) : variant(number) {}
  MetricValue(std::vector<double> list) : variant(std::move(list)) {}
};
/// The metrics of one step by name, for example {"train/loss", 2.3}, in the order of the file.
using Metrics = std::vector<std::pair<std::string, MetricValue>>;

/// The validation loss in each of kLossGroups groups of held-out documents (val/group_loss,
/// val/group_tokens). Empty lists: it was not measured.
struct GroupLosses {
  std::vector<double> loss;    ///< nats per scored token; NaN where none is scored
  std::vector<double> tokens;  ///< scored
};

/// Appends to metrics.jsonl. A crash loses at most the line being written.
class MetricsWriter {
 public:
  /// Continues the file if it exists. Throws OutputError.
  explicit MetricsWriter(const std::filesystem::path& path) : file_(path) {}
  /// Appends one line; steps must increase. Throws OutputError, for example when the disk is full.
  void write(Index step, const Metrics& metrics);
  /// Brings what was written to the disk. Throws OutputError.
  void sync() { file_.sync(); }

 private:
  system::AppendFile file_;
};

/// Columns by metric name: of numbers and of lists. No name is in both.
struct MetricsTable {
  std::vector<double> step;  ///< of each row
  std::map<std::string, Column<double>, std::less<>> columns;
  std::map<std::string, Column<std::vector<double>>, std::less<>> lists{};
};

/// Adds a row. Its step must be the largest.
void append(MetricsTable& table, Index step, const Metrics& metrics);

/// Reads metrics.jsonl. A last line without a newline is a write that a crash cut off, and is
/// ignored. Throws MissingInput if the file cannot be read and DataError with file:line for
/// anything that MetricsWriter does not write.
MetricsTable read_metrics(const std::filesystem::path& path);

/// What each step logged of the number `metric`, by step: one column, faster than the table. Every
/// line is checked to be one of metrics. Throws as read_metrics does.
std::vector<std::pair<Index, double>> read_metric(const std::filesystem::path& path,
                                                  std::string_view metric);

/// The last step of metrics.jsonl and its training loss, nats per token; NaN if it is not a number.
struct LoggedStep {
  Index step = 0;
  double loss = kNaN;
};
/// Reads the last complete line alone. Nothing if there is none that can be read.
std::optional<LoggedStep> last_logged(const std::filesystem::path& path);

/// Drops every step after `last_step`, and a line that a crash cut off: what a resumed run does
/// before it appends, to any file of one JSON object with a "step" a line. It looks at what it
/// drops and at the last line that stays, not at those before. Throws as read_metrics does, and
/// OutputError.
void truncate_metrics(const std::filesystem::path& path, Index last_step);

/// The maps of the first measured sequence, one tensor a layer: (output heads, S, T, T), rows
/// queries and columns keys, 0 where a query is masked. S is 1, or 3 with two maps: A1, A2, and
/// |A1 - lambda A2| with rows that add up to 1. T is at most 64.
struct AttentionMaps {
  Index step = 0;  ///< after which they were seen
  std::vector<Tensor> layers;
};

/// Replaces the file at `path`: /step (int64) and one double dataset per list metric under its
/// name, (length of /step, n), n its longest list, NaN beyond the end of a shorter one and where a
/// step logged none; of a long run that is compressed. A list of the last step alone is (n). Maps
/// are float datasets /attention_maps/<layer>; the group has the attribute `step`. Throws
/// OutputError.
void write_metrics_h5(const std::filesystem::path& path, const MetricsTable& table,
                      const std::optional<AttentionMaps>& maps = std::nullopt);

/// The maps of a metrics.h5, nothing if it has none. Throws MissingInput or DataError.
std::optional<AttentionMaps> read_attention_maps(const std::filesystem::path& metrics_h5);

}  // namespace difftape::run
