#pragma once
// The registry of what runs are compared by: each quantity once, how it is computed of a run or of
// the runs of one seed, and where it appears. Run table, study table, index.csv and claims are
// loops over it. What a run logs is in train/run/records/metric_registry.h.

#include <span>
#include <string_view>

namespace difftape::study {

struct RunRecord;

/// How a number is written in a table: 2.3311; 0.20; 0.424 and 1.57e+04; 3.28e-03; 41,018.
enum class Format { loss, percent, norm, power, whole };

/// How two runs are compared: by their difference, or, for what is positive and spread over
/// decades, by their ratio.
enum class Scale { difference, ratio };

/// At which learning rates a claim compares two arms: at all that both were trained at; at those
/// not below the best one of the arm compared with; or each at its own best one.
enum class Lrs { shared, large, best };

/// The tables with a column of a quantity; flags.
enum Tables : unsigned {
  kNoTable = 0,
  kRunTable = 1,    ///< one row a run
  kStudyTable = 2,  ///< one row an arm and learning rate: the mean over its seeds
  kIndex = 4        ///< index.csv, under the name of the quantity
};
struct Column {
  const char *group = "", *head = "";  ///< labels; neighbours share a group
  Format format = Format::loss;
  unsigned tables = kNoTable;
  bool against_baseline = false;  ///< followed by the difference to the baseline
};

/// What becomes of diverged runs when a claim compares arms.
enum class Diverged {
  left_out,       ///< they have no number: their learning rates drop out
  count,          ///< they have one too
  count_unlogged  ///< and an arm whose runs all diverged need not have logged the metric
};
struct InClaims {
  const char* label = "";  ///< in words and in verdicts.csv; empty: no claim is about it
  Lrs lrs = Lrs::shared;
  int digits = 0;  ///< after the decimal point, or significant ones of a ratio
  Diverged diverged = Diverged::left_out;
};

struct Quantity {
  const char* name;
  const char* unit;
  const char* what;    ///< one sentence: how a run, or the runs of a seed, become one number
  const char* metric;  ///< the logged metric it is made of, for "no run logged ..."
  /// One of the two. NaN: there is no such number.
  double (*of_run)(const RunRecord& run) = nullptr;
  /// Of complete runs of one seed, ascending lr, at least two.
  double (*of_seed)(std::span<const RunRecord* const> runs) = nullptr;
  Scale scale = Scale::difference;
  Column column = {};
  InClaims claims = {};
};

/// In the order of the columns.
std::span<const Quantity> quantities();
/// By name; any other is a programming error and throws std::logic_error.
const Quantity& quantity(std::string_view name);

}  // namespace difftape::study
