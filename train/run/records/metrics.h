#pragma once
// Metrics of a run. metrics.jsonl is the append-only original, one JSON object per logged step. A
// value is a number or a list of numbers, and reads back bit for bit. JSON has no NaN and no
// infinities, so they are the strings "NaN", "Infinity" and "-Infinity". metrics.h5 repeats the
// lists as arrays for HDF5 tools and adds the attention maps of the last diagnostics.

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

/// The values of one metric by row. Memory is proportional to the rows that logged it, because most
/// metrics are logged rarely.
template <class T>
class Column {
 public:
  Column() = default;
  /// Makes a column of the values of rows 0, 1, ...
  Column(std::vector<T> values) : values_(std::move(values)) {}
  Column(std::initializer_list<T> values) : values_(values) {}

  /// Sets the value of a row; constant time if the row follows all others.
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

  /// Returns the value of a row; NaN or an empty list if the row logged nothing.
  const T& operator[](std::size_t row) const {
    static const T nothing = [] {
      if constexpr (std::floating_point<T>) return std::numeric_limits<T>::quiet_NaN();
      return T();
    }();
    const std::size_t at = position(row);
    return is_at(at, row) ? values_[at] : nothing;
  }

  /// Return the logged values in the order of their rows, and the row of value i.
  const std::vector<T>& values() const { return values_; }
  std::size_t row(std::size_t i) const { return rows_.empty() ? i : rows_[i]; }

 private:
  /// Returns the index of the first value at this row or a later one.
  std::size_t position(std::size_t row) const {
    if (rows_.empty()) return std::min(row, values_.size());
    return static_cast<std::size_t>(std::ranges::lower_bound(rows_, row) - rows_.begin());
  }
  bool is_at(std::size_t at, std::size_t row) const {
    return at < values_.size() && this->row(at) == row;
  }

  std::vector<T> values_;
  std::vector<std::uint32_t> rows_;  ///< of the values; empty: rows 0, 1, ...
};

/// A number, or a list such as one number per head.
struct MetricValue : std::variant<double, std::vector<double>> {
  MetricValue(double number) : variant(number) {}
  MetricValue(std::vector<double> list) : variant(std::move(list)) {}
};
/// The metrics of one step by name, for example {"train/loss", 2.3}, in the order of the file.
using Metrics = std::vector<std::pair<std::string, MetricValue>>;

/// Appends to metrics.jsonl. A crash loses at most the line being written.
class MetricsWriter {
 public:
  /// Opens the file and appends to it if it exists. Throws OutputError.
  explicit MetricsWriter(const std::filesystem::path& path) : file_(path) {}
  /// Appends one line; steps must increase. Throws OutputError, for example when the disk is full.
  void write(Index step, const Metrics& metrics);
  /// Syncs the written lines to the disk. Throws OutputError.
  void sync() { file_.sync(); }

 private:
  system::AppendFile file_;
};

/// Columns of numbers and of lists by metric name. A name is in one of the two only.
struct MetricsTable {
  std::vector<double> step;  ///< step of each row
  std::map<std::string, Column<double>, std::less<>> columns;
  std::map<std::string, Column<std::vector<double>>, std::less<>> lists{};
};

/// Appends a row, whose step must be larger than all others.
void append(MetricsTable& table, Index step, const Metrics& metrics);

/// Reads metrics.jsonl. Ignores a last line without a newline, which a crash cut off. Throws
/// MissingInput if the file cannot be read, and DataError with file:line for lines that
/// MetricsWriter does not write.
MetricsTable read_metrics(const std::filesystem::path& path);

/// Returns the logged values of one number metric with their steps, faster than read_metrics, since
/// it parses a line only as far as the metric. Checks the step of every line. Throws as
/// read_metrics does, except for what follows the metric in its line.
std::vector<std::pair<Index, double>> read_metric(const std::filesystem::path& path,
                                                  std::string_view metric);

/// The last step of metrics.jsonl and its training loss in nats per token, NaN if not finite.
struct LoggedStep {
  Index step = 0;
  double loss = kNaN;
};
/// Reads the last complete line only. Returns nothing if there is none. Throws MissingInput if the
/// file cannot be opened.
std::optional<LoggedStep> last_logged(const std::filesystem::path& path);

/// Keeps the first `steps` lines, since a run writes one for each step, and drops the others, as a
/// resumed run does before it appends. Throws MissingInput if the file cannot be read, DataError if
/// the last kept line is not that of step `steps`, and OutputError.
void truncate_metrics(const std::filesystem::path& path, Index steps);

/// Attention maps of the first measured sequence, one tensor per layer: (output heads, S, T, T)
/// with queries as rows, keys as columns, and 0 for masked pairs. S is 1, or 3 with two maps: A1,
/// A2 and |A1 - lambda A2| with rows normalized to sum to 1. T is at most 64.
struct AttentionMaps {
  Index step = 0;  ///< step after which they were computed
  std::vector<Tensor> layers;
};

/// Replaces the file at `path` by these datasets. Throws OutputError.
///   /step                     int64
///   /<list metric>            double (length of /step, n), n the length of its longest list;
///                             padded with NaN; compressed if some steps did not log it
///   /<last-step list metric>  double (n)
///   /attention_maps/<layer>   float; the group has the attribute `step`
void write_metrics_h5(const std::filesystem::path& path, const MetricsTable& table,
                      const std::optional<AttentionMaps>& maps = std::nullopt);

/// Returns the maps of a metrics.h5, nothing if it has none. Throws MissingInput or DataError.
std::optional<AttentionMaps> read_attention_maps(const std::filesystem::path& metrics_h5);

}  // namespace difftape::run
