#pragma once
// Processes that take training steps in turns, A B C A B C, so that all of them meet the same
// weather. bench/README.md has the lines in which they are spoken to.

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/real.h"

namespace difftape::bench {

struct Contestant {
  std::string name;  ///< "PyTorch f32 compiled"
  std::string team;  ///< "PyTorch f32": of one team the best counts
  std::vector<std::string> command;
  double flops_per_step = 0;  ///< 0: not counted
  /// The line of its output that ends its first step: the `line`-th that begins with `begins`.
  std::string begins = "{";
  int line = 2;
};

struct Result {
  Contestant who{};
  std::string version{};              ///< what it says about itself
  std::optional<Index> parameters{};  ///< if it has any
  std::vector<double> seconds{};      ///< of every measured step
  std::vector<double> turns{};        ///< median of the steps of each turn, in seconds
  std::vector<double> peak_share{};   ///< of each turn, of the FMA peak measured before it
  double idle_bytes = 0;              ///< resident before it built anything
  double peak_bytes = 0;              ///< the most that was resident
};

struct RaceResult {
  std::vector<Result> finished;       ///< in the order of the contestants
  std::vector<std::string> left_out;  ///< "name: why"
};

/// One turn is `steps` steps of a contestant. Each takes `warmup` steps first, which do not count.
struct RaceRules {
  int rounds = 10, steps = 3, warmup = 2;
};

/// A contestant that cannot start, dies or answers nonsense is left out; the others go on.
RaceResult race(const std::vector<Contestant>& contestants, const RaceRules& rules);

/// Seconds from the start of each process to the end of its first step, `rounds` times after one
/// that does not count. `scratch` is removed before every start.
RaceResult race_to_first_step(const std::vector<Contestant>& contestants, int rounds,
                              const std::filesystem::path& scratch);

}  // namespace difftape::bench
