#pragma once
// metrics.jsonl: what a run measured, one JSON object a logged step, never rewritten. A value is a
// number or a list of numbers. Numbers are JSON numbers that read back bit for bit; JSON has none
// for NaN and the infinities, so those are the strings "NaN", "Infinity" and "-Infinity".
// metrics.jsonl is the truth; metrics.h5 is a copy.

#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/real.h"
#include "train/system/files.h"

namespace difftape::run {

/// A number, or a list of them such as one a head.
struct MetricValue : std::variant<double, std::vector<double>> {
  MetricValue(double number) : variant(number) {}
  MetricValue(std::vector<double> list) : variant(std::move(list)) {}
};
/// The metrics of one step by name, for example {"train/loss", 2.3}, in the order of the file.
using Metrics = std::vector<std::pair<std::string, MetricValue>>;

/// A number that reads back bit for bit, "NaN", "Infinity" or "-Infinity".
std::string number_text(double value);

/// Appends to metrics.jsonl. A crash loses at most the line being written.
class MetricsWriter {
 public:
  /// Continues the file if it exists. Throws OutputError.
  explicit MetricsWriter(const std::filesystem::path& path) : file_(path) {}
  /// Appends one line; steps must increase. Throws OutputError, for example when the disk is full.
  void write(Index step, const Metrics& metrics);

 private:
  system::AppendFile file_;
};

/// Columns by metric name, each as long as `step`: numbers, NaN where a step did not log the
/// metric, and lists, empty where it did not. No name is in both.
struct MetricsTable {
  std::vector<double> step;
  std::map<std::string, std::vector<double>> columns;
  std::map<std::string, std::vector<std::vector<double>>> lists{};
};

/// Reads metrics.jsonl. A last line without a newline is a write that a crash cut off, and is
/// ignored. Throws MissingInput if the file cannot be read and DataError with file:line for
/// anything that MetricsWriter does not write.
MetricsTable read_metrics(const std::filesystem::path& path);

/// Drops every step after `last_step`, and a line that a crash cut off: what a resumed run does
/// before it appends. Throws as read_metrics does, and OutputError.
void truncate_metrics(const std::filesystem::path& path, Index last_step);

}  // namespace difftape::run
