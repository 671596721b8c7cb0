#pragma once
// The registry of what runs are compared by: each quantity once, how it is computed of a run or of
// the runs of one seed, and where it appears. Run table, study table and index.csv are loops over
// it; claims name any of them. What a run logs is in train/run/records/metric_registry.h.

#include <span>
#include <string_view>

#include "train/study/compare/scale.h"

namespace difftape::study {

struct RunRecord;

/// How a number is written in a table: 2.3311; 6.5; 0.424 and 1.57e+04; 41,018.
enum class Format { loss, count, norm, whole };

/// The tables with a column of a quantity; flags.
enum Tables : unsigned {
  kNoTable = 0,
  kRunTable = 1,   ///< one row a run
  kStudyTable = 2  ///< one row an arm and learning rate: the mean over its seeds
};
struct Column {
  const char *group = "", *head = "";  ///< labels; neighbours share a group
  Format format = Format::loss;
  unsigned tables = kNoTable;
  bool against_baseline = false;  ///< followed by the difference to the baseline
};

struct Quantity {
  const char* name;
  const char* label;  ///< in words, in verdicts
  const char* unit;
  const char* what;    ///< one statement: how a run, or the runs of a seed, become one number
  const char* metric;  ///< the logged metric it is made of, for "no run logged ..."
  /// One of the two. NaN: there is no such number.
  double (*of_run)(const RunRecord& run) = nullptr;
  /// Of complete runs of one seed, ascending lr, at least two.
  double (*of_seed)(std::span<const RunRecord* const> runs) = nullptr;
  Scale scale = Scale::difference;
  int digits = 3;  ///< in verdicts: after the decimal point, or significant ones of a ratio
  /// Whether a diverged run has a number that compares with that of a finished one.
  bool of_diverged = false;
  Column column = {};
};

/// In the order of the columns.
std::span<const Quantity> quantities();
/// By name; null if there is none.
const Quantity* find_quantity(std::string_view name);
/// By name; any other is a programming error and throws std::logic_error.
const Quantity& quantity(std::string_view name);

}  // namespace difftape::study
