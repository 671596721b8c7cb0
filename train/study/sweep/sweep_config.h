#pragma once
// Reads a sweep file: an ordinary configuration with a `sweep:` section that lists what varies.
//
//   base: ../base/text_0.9m.yaml
//   train: {steps: 200}
//   sweep:
//     name: quickstart                 # default: the name of the file
//     baseline: softmax                # default: the first arm
//     claims: ../claims/mine.yaml      # claims to decide (compare/claims/claims_file.h)
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
#include <optional>
#include <string>
#include <vector>

#include "train/run/config/reader.h"
#include "train/run/config/sweep_settings.h"
#include "train/study/compare/claims/claims_file.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/row.h"

namespace difftape::study {

/// One training run of a sweep. `resolved.config.run` has its name, arm, seed and folder.
struct SweepRun {
  std::string base_arm;  ///< as in sweep.arms; run.arm adds the values swept by grid and zip
  bool selected = true;  ///< selected for training by sweep.only or --arms
  run::ResolvedConfig resolved;

  const run::Config& config() const { return resolved.config; }
};

struct SweepConfig {
  std::string name;
  std::string baseline;  ///< the run.arm that others are compared with
  std::string out;       ///< folder of the sweep
  std::optional<ClaimsFile> claims;
  std::vector<std::string> swept;  ///< keys set by sweep.lr, grid and zip
  /// Ordered by seed, so that a part of a sweep is balanced; then by learning rate, arm, and values
  /// of grid and zip.
  std::vector<SweepRun> runs;
};

/// Reads a sweep. Later sources win: bases, the file, the arm and its bases, swept values,
/// `overrides`. A run is named after its arm, with "-lr1e-03", "-d_ff64" and "-seed2" appended for
/// keys with several values. It writes to <out>/<run.name>; an empty `out` means runs/<sweep.name>.
/// `only` replaces sweep.only. Throws ConfigError with every error of all runs, MissingInput, or
/// UsageError for an unknown arm in `only`.
SweepConfig load_sweep(const std::string& path, const std::vector<std::string>& overrides = {},
                       const std::string& out = "", const std::vector<std::string>& only = {});

/// Returns the error that `name` is not an arm of the sweep; it lists some arms and suggests one.
std::string no_arm(const std::string& name, const std::vector<std::string>& arms);

/// Returns the configuration of a run file, or of a run of a sweep. `name` is the run or an arm,
/// which selects its first run; it may be empty if the sweep has one arm. Throws what load_config
/// and load_sweep throw, and UsageError.
run::ResolvedConfig config_of_arm(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const std::string& name);

/// Returns the ids of claims whose `where` matches none of the runs; they belong to other sweeps.
std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs);

/// Returns the number of trained seeds that count for a claim.
Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs);

/// Returns what is probably a mistake: arms with equal settings, and seeds that claims count but no
/// run trains.
std::vector<std::string> warnings_of(const SweepConfig& sweep);

/// One value of a key of the configuration.
struct SweptValue {
  std::string key;     ///< "model.d_ff"
  run::YamlNode node;  ///< its source
  std::string text;    ///< the value in names of runs and errors: "512"
};

/// Values that are set together: one value of a `grid` key, or one value per key of `zip`.
using SweptPoint = std::vector<SweptValue>;
/// Alternative points, of which a run has one; never empty.
using Axis = std::vector<SweptPoint>;

struct Axes {
  Axis lr;                           ///< sweep.lr; one point without values if absent
  std::optional<OwnRates> own;       ///< if set, the values of `lr` are multiples of these
  run::SourceLocation own_named_at;  ///< where the sweep file names the file of `own`
  std::vector<Axis> others;          ///< each key of sweep.grid, then sweep.zip
};

/// Resolves a path in a sweep relative to the file that contains it, or a path on the command line
/// relative to the working directory.
std::filesystem::path named_path(const std::string& path, const run::SourceLocation& named_at);

/// Reads sweep.lr, sweep.grid and sweep.zip. Invalid values are reported to `errors` and omitted.
Axes read_axes(const run::SweepSettings& settings, run::ConfigErrors& errors);

/// Returns the keys that the axes set, in their order.
std::vector<std::string> swept_keys(const Axes& axes);

/// Returns all combinations, the last axis fastest; one empty point if there are no axes.
std::vector<SweptPoint> combinations(const std::vector<Axis>& axes);

/// Returns the part of a run's name for a value: "-lr1e-03", "-d_ff512", "-pathdata_a.txt".
std::string name_part(const SweptValue& value);

/// An arm of the file, with the values that it sets.
struct ArmSource {
  std::string name;
  run::YamlNode values;
  run::SourceLocation location;
};

/// Contents of a sweep file and of the command line.
struct RunListSource {
  const run::Assignments& file;  ///< the file and its bases
  const run::Assignments& all;   ///< the file, its bases, and the overrides
  const std::vector<std::string>& overrides;
  run::SourceLocation top;  ///< location of the file as a whole
  std::vector<ArmSource> arms;
  std::vector<Index> seeds;  ///< at least one
  Axes axes;
  std::string out;
  std::string claims;  ///< digest of the claims; empty: none
};

/// Returns the runs in the order of SweepConfig::runs, all selected. Reports to `errors` all errors
/// of all runs, swept keys that an arm or an override sets, and duplicate names.
std::vector<SweepRun> make_runs(const RunListSource& source, run::ConfigErrors& errors);

/// Reports an error if a sweep or one of its arms sets a key that the sweep controls; their bases
/// may set it.
void refuse_decided(const run::Assignment& given, bool in_arm, bool has_seeds,
                    run::ConfigErrors& errors);

}  // namespace difftape::study
