#pragma once
// The registry of quantities that runs are compared by: how each is computed and where it appears.
// Tables and index.csv are loops over it, claims name its rows. What a run logs is in
// train/run/records/metric_registry.h.

#include <span>
#include <string_view>

#include "core/names.h"

namespace difftape::study {

struct RunRecord;

/// How two runs are compared: by their difference; by their ratio, of positive numbers spread over
/// decades; by the difference of square roots, of counts, whose variance grows with their mean.
enum class Scale { difference, ratio, root };

/// Returns a number on the axis on which it is compared (itself, its logarithm or its square root),
/// and back from there.
double on_scale(double value, Scale scale);
double from_scale(double value, Scale scale);
/// Returns the mean of numbers on the axis as it is read: of ratios the geometric mean; of counts
/// the mean of the counts, not of their roots.
double mean_from_scale(std::span<const double> values, Scale scale);
const char* what_differs(Scale scale);

/// How a number is written in a table: 2.3311; 6.5; 0.424 and 1.57e+04; 41,018.
enum class Format { loss, count, norm, whole };

/// The tables with a column of a quantity; flags.
enum Tables : unsigned {
  kNoTable = 0,
  kRunTable = 1,   ///< one row a run
  kStudyTable = 2  ///< one row an arm and learning rate: the mean over its seeds
};
struct Column {
  const char *group = "", *head = "";  ///< labels; neighbors share a group
  Format format = Format::loss;
  unsigned tables = kNoTable;
  bool against_baseline = false;  ///< followed by the difference to the baseline
};

/// How one run, or complete runs of one seed at two or more ascending learning rates, become a
/// number (measures.h); NaN: there is none.
using OfRun = double (*)(const RunRecord& run, const char* metric);
using OfSeed = double (*)(std::span<const RunRecord* const> runs);

struct Quantity {
  const char* name;
  const char* label;  ///< in words, in verdicts
  const char* unit;
  const char* metric;  ///< the logged metric it is made of, for "no run logged ..."
  OfRun of_run;        ///< null of a quantity of a seed
  const char* what;    ///< one statement: how a run, or the runs of a seed, become one number
  Scale scale = Scale::difference;
  int digits = 3;  ///< in verdicts: after the decimal point, or significant ones of a ratio
  /// Whether a diverged run has a number that compares with that of a finished one.
  bool of_diverged = false;
  Column column = {};
  OfSeed of_seed = nullptr;

  bool is_of_seed() const { return of_seed != nullptr; }
};

/// In the order of the columns.
std::span<const Quantity> quantities();
const Quantity* find_quantity(std::string_view name);
/// By name; any other is a programming error and throws std::logic_error.
const Quantity& quantity(std::string_view name);

}  // namespace difftape::study

namespace difftape {

/// The axis, as verdicts.csv calls it.
template <>
inline constexpr auto kNames<study::Scale> =
    std::to_array<Named<study::Scale>>({{"linear", study::Scale::difference},
                                        {"log", study::Scale::ratio},
                                        {"root", study::Scale::root}});

}  // namespace difftape
