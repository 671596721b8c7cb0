#pragma once
// Metrics of a run. metrics.jsonl has one JSON object per logged step, whose numbers read back bit
// for bit. JSON has no NaN and no infinities, so they are the strings "NaN", "Infinity" and
// "-Infinity".

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/real.h"
#include "train/system/files.h"

namespace difftape::run {

/// The values of one metric by row. Memory is proportional to the rows that logged it, because most
/// metrics are logged rarely.
class Column {
 public:
  Column() = default;
  /// Makes a column of the values of rows 0, 1, ...
  Column(std::vector<double> values) : values_(std::move(values)) {}
  Column(std::initializer_list<double> values) : values_(values) {}

  /// Sets the value of a row; constant time if the row follows all others.
  void set(std::size_t row, double value) {
    const std::size_t at = position(row);
    if (is_at(at, row)) {
      values_[at] = value;
      return;
    }
    const bool gaps = !rows_.empty() || row != values_.size();
    if (gaps && rows_.empty()) {
      rows_.resize(values_.size());
      std::iota(rows_.begin(), rows_.end(), 0U);
    }
    const auto offset = static_cast<std::ptrdiff_t>(at);
    if (gaps) rows_.insert(rows_.begin() + offset, static_cast<std::uint32_t>(row));
    values_.insert(values_.begin() + offset, value);
  }

  /// Returns the value of a row; NaN if the row logged nothing.
  double operator[](std::size_t row) const {
    const std::size_t at = position(row);
    return is_at(at, row) ? values_[at] : kNaN;
  }

  /// Return the logged values in the order of their rows, and the row of value i.
  const std::vector<double>& values() const { return values_; }
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

  std::vector<double> values_;
  std::vector<std::uint32_t> rows_;  ///< of the values; empty: rows 0, 1, ...
};

/// The metrics of one step by name, for example {"train/loss", 2.3}, in the order of the file.
using Metrics = std::vector<std::pair<std::string, double>>;

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

/// Columns by metric name.
struct MetricsTable {
  std::vector<double> step;  ///< step of each row
  std::map<std::string, Column, std::less<>> columns;
};

/// Appends a row, whose step must be larger than all others.
void append(MetricsTable& table, Index step, const Metrics& metrics);

/// Reads metrics.jsonl, or some metrics of it. Ignores a last line without a newline, which a crash
/// cut off. Throws MissingInput if the file cannot be read, and DataError with file:line for lines
/// that MetricsWriter does not write.
MetricsTable read_metrics(const std::filesystem::path& path,
                          std::initializer_list<std::string_view> only = {});

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

}  // namespace difftape::run
