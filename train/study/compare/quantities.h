#pragma once
// The registry of quantities that compare runs: how each is computed and where it appears. Tables
// and runs.csv are loops over it, and claims refer to its rows. Logged metrics are in
// train/run/records/metric_registry.h.

#include <span>
#include <string>
#include <string_view>

#include "core/names.h"
#include "train/run/config/config.h"

namespace difftape::study {

struct LoadedRun;

/// Comparison of two runs: by difference; by ratio, for positive values spread over decades; by the
/// difference of square roots, for counts, whose variance grows with their mean.
enum class Scale { difference, ratio, root };

/// Convert a value to the axis of comparison (itself, its logarithm or its square root), and back.
double on_scale(double value, Scale scale);
double from_scale(double value, Scale scale);
/// Returns the mean of values on the axis, converted for readers: the geometric mean for ratios,
/// and the mean of the counts themselves, not of their roots.
double mean_from_scale(std::span<const double> values, Scale scale);
const char* what_differs(Scale scale);

/// Format of a number in a table: 2.3311; 6.5; 0.424 and 1.57e+04; 41,018.
enum class Format { loss, count, norm, whole };

/// The tables with a column of a quantity; flags.
enum Tables : unsigned {
  kNoTable = 0,
  kRunTable = 1,   ///< one row per run
  kStudyTable = 2  ///< one row per arm: the mean over its seeds
};
struct Column {
  const char *group = "", *head = "";  ///< labels; neighbors share a group
  Format format = Format::loss;
  unsigned tables = kNoTable;
  bool against_baseline = false;  ///< followed by the difference to the baseline
};

/// Reduces one run to a number (measures.h); NaN without one.
using OfRun = double (*)(const LoadedRun& run, const char* metric);

/// Reduction of the runs of one seed at ascending learning rates: the mean; the highest rate minus
/// the lowest; the sensitivity of Wortsman et al. (2023). The last two are of final_loss.
enum class OverRates { mean, penalty, sensitivity };

struct Quantity {
  const char* name;
  const char* label;  ///< name in verdicts
  const char* unit;
  const char* metric;  ///< the logged metric that it needs, for "no run logged ..."
  OfRun of_run;        ///< null for a quantity of a seed
  const char* what;    ///< one sentence on the reduction of a run, or of the runs of a seed
  Scale scale = Scale::difference;
  int digits = 3;  ///< in verdicts: decimals, or significant digits of a ratio
  /// True if the value of a diverged run is comparable with the value of a finished one.
  bool of_diverged = false;
  Column column = {};
  OverRates over_rates = OverRates::mean;

  bool is_of_seed() const { return over_rates != OverRates::mean; }
  const Quantity& of_one_run() const;  ///< what it reduces: itself, or final_loss
};

/// Returns all quantities in the order of the columns.
std::span<const Quantity> quantities();
/// Returns a quantity by name; nullptr if there is none.
const Quantity* find_quantity(std::string_view name);
/// Returns a quantity by name. Throws std::logic_error, a bug, for an unknown name.
const Quantity& quantity(std::string_view name);

/// Returns its unit; "nats per byte" in place of "nats per token" for text.
std::string unit_of(const Quantity& quantity, run::DataKind data);

/// Names of the axis.
constexpr auto names_of(Scale) {
  return std::to_array<Named<Scale>>(
      {{"linear", Scale::difference}, {"log", Scale::ratio}, {"root", Scale::root}});
}

}  // namespace difftape::study
