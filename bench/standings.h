#pragma once
// The result of a race as a table.

#include <string>
#include <utility>
#include <vector>

#include "bench/race.h"

namespace difftape::bench {

/// One race, and the tokens of a step there.
struct Heat {
  std::string label;  ///< what is different in it, "512"; empty if there is one heat
  double tokens = 0;
  RaceResult result;
};

/// Milliseconds a step (median, 10 %, 90 %), microseconds a token, tokens per second, share of the
/// FMA peak, memory of the process in MB (at most, and before it built anything), and speed
/// relative to the first contestant of the heat, turn by turn (median, 10 %, 90 %). Below: how many
/// times as fast the first is as the best of every other team, the versions, who was left out and
/// why. `label` heads the column of heats.
std::string standings(const std::vector<Heat>& heats, const std::string& label);

/// The same for races to the first step: seconds only.
std::string start_standings(const RaceResult& result);

}  // namespace difftape::bench
