#pragma once
// The crash dump of a run that diverged: a checkpoint of the weights and moments as they were when
// loss or gradients were computed, with the tokens and the results, enough to repeat it without the
// data. Beside what a checkpoint holds (its `step` is that of the steps done; the spike windows are
// those after the step):
//
//   /diverged                          attributes step, quantity, parameter, op
//   /diverged/tokens                   int32 (n, B, T + 1): the micro-batches of the step, or the
//                                      validation batches if the validation loss diverged
//   /diverged/scored                   int32 (n, B, T): 1 where the target counts; absent: all do
//   /diverged/loss                     float64: the mean loss, whichever of the two it is of
//   /diverged/grad_norm                float64, not of a validation
//   /diverged/grad_norms/<parameter>   float64, not of a validation

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "train/run/loop/step.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

/// The quantity of a divergence found in validation.
inline constexpr const char* kValLoss = metric("val/loss");

struct CrashDump {
  Config config;
  nlohmann::json data;  ///< Dataset::info() of the run
  Divergence diverged;
  std::vector<Batch> batches;
  double loss = 0;
  double grad_norm = 0;                        ///< global, before clipping; of a step
  std::map<std::string, double> grad_norms{};  ///< by parameter; of a step
  bool of_validation() const { return diverged.quantity == kValLoss; }
};

/// Writes <run>/diverged/<step_file_name(step)> for a step that has just diverged, and returns its
/// path. Throws OutputError.
std::filesystem::path write_crash_dump(const std::filesystem::path& run, const TrainState& state,
                                       const Step& step);

/// Throws MissingInput; DataError if the file is damaged or no such dump. The weights stay in the
/// file: it is a checkpoint.
CrashDump read_crash_dump(const std::filesystem::path& path);

}  // namespace difftape::run
