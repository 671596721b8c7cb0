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

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "train/run/config/reader.h"
#include "train/study/compare/claims/claims_file.h"
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

/// Reads a sweep. Later wins: bases, the file, the arm and its bases, swept values, `overrides`;
/// overrides of `sweep.*` change the sweep itself. A run is called run.name = its arm, then
/// "-lr1e-03", "-d_ff64" and "-seed2" where there are several learning rates, values or seeds, and
/// writes to <out>/<run.name>. An empty `out` means runs/<sweep.name>; `only` replaces sweep.only.
/// Throws ConfigError with every error of all runs, MissingInput, or UsageError for an unknown arm
/// in `only`.
SweepConfig load_sweep(const std::string& path, const std::vector<std::string>& overrides = {},
                       const std::string& out = "", const std::vector<std::string>& only = {});

/// That `name` is none of the arms of a sweep, with some of them and the one that may be meant.
std::string no_arm(const std::string& name, const std::vector<std::string>& arms);

/// The configuration of a file that is a run or a sweep. Of a sweep the run of that name, or the
/// first of the arm `name`; an empty name will do for one arm. Throws what load_config and
/// load_sweep throw, and UsageError for a name that is not there, is missing, or is not needed.
run::ResolvedConfig config_of_arm(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const std::string& name);

/// The ids of claims whose `where` none of the runs matches: they are of other sweeps.
std::vector<std::string> claims_elsewhere(const ClaimsFile& claims,
                                          const std::vector<SweepRun>& runs);

/// How many seeds are trained that count for a claim.
Index seeds_that_count(const ClaimsFile& claims, const std::vector<SweepRun>& runs);

}  // namespace difftape::study
