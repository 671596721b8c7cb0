#pragma once
// A sweep file: an ordinary configuration plus a `sweep:` section that names its arms.
//
//   base: base/tiny.yaml
//   train: {steps: 200}
//   sweep:
//     name: quickstart                 # default: the name of the file
//     baseline: softmax                # default: the first arm
//     seeds: [1, 2, 3]                 # default: [run.seed]
//     arms:
//       softmax: {base: variants/softmax.yaml}
//       diff_v1: {model.attention.kind: diff_v1}

#include <cstdint>
#include <string>
#include <vector>

#include "train/config/reader.h"

namespace difftape {

/// One training run of a sweep. `resolved.config.run` has its name, seed and folder.
struct SweepArm {
  std::string name;  ///< as in the file; arms of several seeds share it
  std::uint64_t seed = 1;
  ResolvedConfig resolved;
};

struct SweepConfig {
  std::string name;
  std::string baseline;  ///< the arm the others are compared with
  std::string out;       ///< folder of the sweep
  /// All arms with the first seed in the order of the file, then with the next seed.
  std::vector<SweepArm> arms;
};

/// Reads a sweep. Later wins: bases, the file, the arm and its bases, `overrides`; overrides of
/// `sweep.*` change the sweep itself. An arm is called run.name = its name, followed by
/// "-seed<N>" if there are several seeds, and writes to <out>/<run.name>. An empty `out` means
/// runs/<sweep.name>. Throws ConfigError with every error of all arms, or MissingInput.
SweepConfig load_sweep(const std::string& path, const std::vector<std::string>& overrides = {},
                       const std::string& out = "");

}  // namespace difftape
