#pragma once
// The spikes of a run, one by one: a function of the logged series alone.
//
// An event is a burst of spiking values of one quantity. It begins with a spike. Later spikes
// belong to it while the quantity has not recovered and none comes more than 20 steps after the one
// before; else they begin the next event. Center and spread are those by which its first value was
// judged (the window of spikes.h) and stay: what comes after does not move the measure.
//
//   depth       the value furthest from that center, minus the center; a value that is not finite
//               is further than any other
//   recovery    steps from the first spike to the first finite value after it that is no longer
//               beyond center + r spreads (center - r spreads if the first spike lay below); r = 2,
//               or the threshold of the rule if that is less. Without a window, any finite value
//               will do
//   lead        of a loss event: steps by which a gradient event began before it (0: at the same
//               step), the latest that began no later and whose last spike is at most 10 steps
//               before

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
  Index step = 0;                 ///< of the first spike
  Index last_step = 0;            ///< of the last one
  Index spikes = 0;               ///< values that are spikes
  Index peak_step = 0;            ///< where the value is
  double value = 0;               ///< the one furthest from the center
  double center = 0, spread = 0;  ///< NaN without a window
  double depth = 0;               ///< value - center, negative below; NaN without a window
  double deviations = 0;          ///< depth / spread
  std::optional<Index> recovery;  ///< in steps; none: not before the series ended
  std::optional<Index> lead;      ///< in steps; none: no gradient spike led, or this is one
};

/// The size of an event: |deviations|, infinite if it is not finite or has no window.
double size_of(const SpikeRecord& record);

/// Events of one quantity as the values come in.
class SpikeEvents {
 public:
  SpikeEvents(std::string quantity, const stats::SpikeRule& rule);
  /// Steps increase.
  void add(Index step, double value);
  /// In the order of their first steps, without leads.
  const std::vector<SpikeRecord>& records() const { return records_; }

 private:
  bool recovered(const SpikeRecord& record, double value) const;
  void extend(SpikeRecord& record, Index step, double value) const;

  std::string quantity_;
  stats::SpikeDetector detector_;
  std::vector<SpikeRecord> records_;
  std::vector<std::size_t> open_;  // records that have not recovered
};

/// All events of both series, ordered by step, of one step the gradient's first. `loss` and `grad`
/// are as long as `steps`, or empty if they were not logged.
std::vector<SpikeRecord> spike_records(std::span<const double> steps, std::span<const double> loss,
                                       std::span<const double> grad, const stats::SpikeRule& rule);
/// Those of train/loss and optim/grad_norm.
std::vector<SpikeRecord> spike_records(const MetricsTable& metrics, const stats::SpikeRule& rule);

/// Replaces spikes.csv: a line of names, then a line a record; an absent recovery or lead is an
/// empty field. Throws OutputError.
void write_spikes_csv(const std::filesystem::path& path, std::span<const SpikeRecord> records);

/// One line: for each quantity the number of events, the largest and its recovery. Empty if there
/// are none.
std::string spike_summary(std::span<const SpikeRecord> records);

}  // namespace difftape::run
