#pragma once
// The runs of a sweep, made of its arms, seeds, learning rates and other swept values.

#include <string>
#include <vector>

#include "train/study/sweep/axes.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

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
