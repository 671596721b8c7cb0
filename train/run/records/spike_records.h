#pragma once
// Spike events of a run, computed from the logged series only.
//
// An event is a burst of spikes of one quantity. A later spike belongs to the same event if the
// quantity has not recovered and the spike comes at most 20 steps after the one before; otherwise
// it begins a new event. The center and spread of an event are the ones that classified its first
// value (the window of spikes.h) and stay fixed.
//
//   depth       the value furthest from the center, minus the center; a value that is not finite
//               is further than any other
//   recovery    steps from the first spike to the first later finite value within center + r
//               spreads (center - r spreads if the first spike lies below), with r = 2, or the
//               threshold of the rule if that is smaller. Without a window any finite value counts
//   lead        for a loss event, steps by which a gradient event began before it (0: at the same
//               step); of the gradient events whose last spike is at most 10 steps before it,
//               the latest counts

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "train/run/records/metrics.h"
#include "train/stats/spikes.h"

namespace difftape::run {

struct SpikeRecord {
  std::string quantity;           ///< "loss" or "grad_norm"
  Index step = 0;                 ///< step of the first spike
  Index last_step = 0;            ///< step of the last spike
  Index spikes = 0;               ///< number of spikes
  Index peak_step = 0;            ///< step of `value`
  double value = 0;               ///< the value furthest from the center
  double center = 0, spread = 0;  ///< NaN without a window
  double depth = 0;               ///< value - center, negative below; NaN without a window
  double deviations = 0;          ///< depth / spread
  std::optional<Index> recovery;  ///< steps; absent: not before the series ended
  std::optional<Index> lead;      ///< steps; absent: no gradient spike led, or this is one
};

/// Returns the size of an event: |deviations|, infinity if that is not finite.
double size_of(const SpikeRecord& record);

/// Returns the events of both series by step; at the same step gradient events come first. `loss`
/// and `grad` have the length of `steps`, or are empty if not logged.
std::vector<SpikeRecord> spike_records(std::span<const double> steps, std::span<const double> loss,
                                       std::span<const double> grad, const stats::SpikeRule& rule);
/// Returns the events of train/loss and optim/grad_norm.
std::vector<SpikeRecord> spike_records(const MetricsTable& metrics, const stats::SpikeRule& rule);

/// Replaces spikes.csv: a header, then one line per record, with empty fields for an absent
/// recovery or lead. Throws OutputError.
void write_spikes_csv(const std::filesystem::path& path, std::span<const SpikeRecord> records);

/// Returns one line with the number of events of each quantity, the largest event and its recovery.
/// Empty if there are no events.
std::string spike_summary(std::span<const SpikeRecord> records);

}  // namespace difftape::run
