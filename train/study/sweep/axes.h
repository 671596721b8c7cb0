#pragma once
// What a sweep varies besides its arms: lists of values whose combinations are all trained.

#include <string>
#include <vector>

#include "train/run/config/sweep_settings.h"

namespace difftape::study {

/// One value of a key of the configuration.
struct SweptValue {
  std::string key;     ///< "model.d_ff"
  run::YamlNode node;  ///< where it was written
  std::string text;    ///< the value as reports and index.csv show it: "512"
};

/// Values that hold at the same time: one of a `grid` key, one of each key of `zip`.
using SweptPoint = std::vector<SweptValue>;
/// The points of which a run takes one; at least one.
using Axis = std::vector<SweptPoint>;

struct Axes {
  Axis lr;                   ///< of sweep.lr; a point without values if there is none
  std::vector<Axis> others;  ///< each key of sweep.grid, then sweep.zip
};

/// Reads sweep.lr, sweep.grid and sweep.zip. Adds to `errors` keys that are unknown, that belong to
/// the run or the sweep, or that are swept twice; values of the wrong type or range; lists that are
/// empty, of unequal length in a zip, or that repeat a value. What is wrong is left out.
Axes read_axes(const run::SweepSettings& settings, run::ConfigErrors& errors);

/// The keys that the axes set, in their order.
std::vector<std::string> swept_keys(const Axes& axes);

/// All combinations, the last axis fastest; one empty point if there are no axes.
std::vector<SweptPoint> combinations(const std::vector<Axis>& axes);

/// How a value appears in the name of a run: "-lr1e-03", "-d_ff512", "-pathdata_a.txt".
std::string name_part(const SweptValue& value);

}  // namespace difftape::study
