#pragma once
// The runs of a sweep, made of its arms, its seeds and what it varies besides: lists of values
// whose combinations are all trained (axes.cpp).

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "train/run/config/sweep_settings.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

/// One value of a key of the configuration.
struct SweptValue {
  std::string key;     ///< "model.d_ff"
  run::YamlNode node;  ///< where it was written
  std::string text;    ///< the value as names of runs and errors show it: "512"
};

/// Values that hold at the same time: one of a `grid` key, one of each key of `zip`.
using SweptPoint = std::vector<SweptValue>;
/// The points of which a run takes one; at least one.
using Axis = std::vector<SweptPoint>;

struct Axes {
  Axis lr;                           ///< of sweep.lr; a point without values if there is none
  std::optional<OwnRates> own;       ///< if it is there, the values of `lr` are factors of these
  run::SourceLocation own_named_at;  ///< where the sweep names its file
  std::vector<Axis> others;          ///< each key of sweep.grid, then sweep.zip
};

/// Returns a path that a sweep names, relative to the file that does or, on the command line, to
/// the working directory.
std::filesystem::path named_path(const std::string& path, const run::SourceLocation& named_at);

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

/// One arm as the file names it, with the values in which it differs.
struct ArmSource {
  std::string name;
  run::YamlNode values;
  run::SourceLocation location;
};

/// What a sweep file and the command line say.
struct RunListSource {
  const run::Assignments& file;  ///< the file and its bases
  const run::Assignments& all;   ///< and the overrides
  const std::vector<std::string>& overrides;
  run::SourceLocation top;  ///< of the file as a whole
  std::vector<ArmSource> arms;
  std::vector<Index> seeds;  ///< at least one
  Axes axes;
  std::string out;
  std::string claims;  ///< digest of its claims; empty: none
};

/// The runs in the order of SweepConfig::runs, all selected. Adds to `errors` what is wrong with
/// any of them, values that an arm or an override fixes although they are swept, runs of one name,
/// and more than 10000 runs.
std::vector<SweepRun> make_runs(const RunListSource& source, run::ConfigErrors& errors);

/// Names, folders and seeds of the runs follow from the sweep: an error if it, or an arm of it,
/// sets them. Its bases may, as they also serve `train`.
void refuse_decided(const run::Assignment& given, bool in_arm, bool has_seeds,
                    run::ConfigErrors& errors);

}  // namespace difftape::study
