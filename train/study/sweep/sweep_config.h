#pragma once
// A sweep file: an ordinary configuration plus a `sweep:` section that names what is varied.
//
//   base: ../base/text_0.9m.yaml
//   train: {steps: 200}
//   sweep:
//     name: quickstart                 # default: the name of the file
//     baseline: softmax                # default: the first arm
//     claims: ../claims/mine.yaml      # what it is to decide (compare/claims/claims_file.h)
//     results: ../../results/mine      # complete runs of this index.csv are not trained again
//     only: [softmax, diff_v1]         # default: all arms are trained
//     seeds: [1, 2, 3]                 # default: [run.seed]
//     lr: [1.0e-3, 3.0e-3]             # or wortsman: 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1
//                                      # or {own: lr_star.csv, times: [1, 4]}: each arm at its own
//     grid: {model.d_ff: [64, 128], model.num_layers: [2, 4]}    # all combinations
//     zip: {data.seq_len: [64, 128], data.batch_size: [32, 16]}  # first with first, ...
//     arms:                            # default: one arm, called like the sweep
//       softmax: {base: ../variants/softmax.yaml}
//       diff_v1: {model.attention.kind: diff_v1}

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/run/config/reader.h"
#include "train/run/config/sweep_settings.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/run_index.h"

namespace difftape::study {

/// One training run of a sweep. `resolved.config.run` has its name, arm, seed and folder.
struct SweepRun {
  std::string base_arm;  ///< as in sweep.arms; run.arm adds the values swept by grid and zip
  bool selected = true;  ///< by sweep.only or --arms: to be trained now
  const IndexRow* taken = nullptr;  ///< of SweepConfig::results, which has this run complete
  run::ResolvedConfig resolved;

  const run::Config& config() const { return resolved.config; }
};

struct SweepConfig {
  std::string name;
  std::string baseline;  ///< the run.arm the others are compared with
  std::string out;       ///< folder of the sweep
  std::optional<ClaimsFile> claims;
  /// The index of sweep.results, which copies of this share, and the folder as the sweep names it,
  /// or relative to the sweep file where that is absolute.
  std::shared_ptr<const RunIndex> results;
  std::string results_folder;
  std::vector<std::string> swept;  ///< keys set by sweep.lr, grid and zip
  /// All runs with the first seed, then with the next, so that a part of a sweep is balanced.
  /// Within a seed by learning rate, then by arm, then by the values of grid and zip.
  std::vector<SweepRun> runs;
};

/// Reads a sweep. Later wins: bases, the file, the arm and its bases, swept values, `overrides`. A
/// run is called its arm, then "-lr1e-03", "-d_ff64" and "-seed2" where there are several, and
/// writes to <out>/<run.name>; an empty `out` means runs/<sweep.name>, `only` replaces sweep.only.
/// Throws ConfigError with every error of all runs, MissingInput, or UsageError for an arm in
/// `only`.
SweepConfig load_sweep(const std::string& path, const std::vector<std::string>& overrides = {},
                       const std::string& out = "", const std::vector<std::string>& only = {});

/// That `name` is none of the arms of a sweep, with some of them and the one that may be meant.
std::string no_arm(const std::string& name, const std::vector<std::string>& arms);

/// Returns the configuration of a run file, or of a sweep the run or the first run of the arm
/// `name`; an empty name will do for one arm. Throws what load_config and load_sweep throw, and
/// UsageError.
run::ResolvedConfig config_of_arm(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const std::string& name);

/// The ids of claims whose `where` none of the runs matches: they are of other sweeps.
std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs);

/// How many seeds are trained that count for a claim.
Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs);

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

/// Reads sweep.lr, sweep.grid and sweep.zip. Adds to `errors` and leaves out what is wrong.
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

/// Returns the runs in the order of SweepConfig::runs, all selected. Adds to `errors` what is wrong
/// with any of them, values that an arm or an override fixes although they are swept, and runs of
/// one name.
std::vector<SweepRun> make_runs(const RunListSource& source, run::ConfigErrors& errors);

/// Adds an error if a sweep or an arm of it sets what follows from the sweep; its bases may.
void refuse_decided(const run::Assignment& given, bool in_arm, bool has_seeds,
                    run::ConfigErrors& errors);

}  // namespace difftape::study
