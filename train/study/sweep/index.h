#pragma once
// index.csv: the runs of a sweep and their numbers, one row a run, for spreadsheets and scripts.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "train/study/sweep/run_progress.h"

namespace difftape::study {

/// Keeps `<sweep>/index.csv`: the columns of kIndexColumns and one for every swept key, the rows in
/// the order of the sweep. Numbers read back exactly; an empty cell is a number that is not there.
class SweepIndex {
 public:
  /// Throws OutputError if an index.csv is there that no sweep wrote.
  explicit SweepIndex(const SweepConfig& sweep);

  /// Reads a run again and replaces its row. Its measured numbers stay empty if it cannot be read.
  void update(std::size_t run, const RunProgress& progress);
  /// Replaces the file. Throws OutputError.
  void write() const;

 private:
  const SweepConfig* sweep_;
  std::vector<std::string> rows_;
};

/// Of every sweep. `steps` were asked for, `step` were done; `seconds` is the time of the steps
/// that count (batch, forward, backward, update), added up over all sittings; `dir` is relative to
/// index.csv.
inline constexpr const char* kIndexColumns =
    "name,arm,seed,lr,state,step,steps,diverged_step,parameters,train_loss,val_loss,"
    "spike_score_loss,spike_score_grad,grad_norm_median,grad_norm_p99,grad_norm_max,"
    "grad_norm_late_variance,tokens_per_sec,seconds,dir";

}  // namespace difftape::study
