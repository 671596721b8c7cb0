#pragma once
// Crash dump of a diverged run: a checkpoint of the weights and moments before the update, plus the
// tokens and results of the step. It is enough to repeat the step without the data. `step` of the
// checkpoint counts the completed steps; its spike windows include the diverged one. It adds:
//
//   /diverged                          attributes step, quantity, parameter, op, batch_size
//   /diverged/tokens                   int32 (rows, T + 1): the micro-batches of the step, or the
//                                      validation batches if the validation loss diverged; each
//                                      has batch_size rows, the last one may have fewer
//   /diverged/scored                   int32 (rows, T): 1 if the target counts; absent: all count
//   /diverged/loss                     float64: mean training or validation loss
//   /diverged/grad_norm                float64; absent for a validation
//   /diverged/grad_norms/<parameter>   float64; absent for a validation

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "train/run/loop/step.h"
#include "train/run/records/metric_registry.h"

namespace difftape::run {

/// Metric of a divergence found in validation.
inline constexpr const char* kValLoss = metric("val/loss");

struct CrashDump {
  Config config;
  nlohmann::json data;  ///< Dataset::info() of the run
  Divergence diverged;
  std::vector<Batch> batches;
  double loss = 0;
  double grad_norm = 0;                        ///< global, before clipping; 0 for a validation
  std::map<std::string, double> grad_norms{};  ///< by parameter; empty for a validation
  bool of_validation() const { return diverged.quantity == kValLoss; }
};

/// Writes <run>/diverged/<step_file_name(step)> for a diverged step, and returns its path. Throws
/// OutputError.
std::filesystem::path write_crash_dump(const std::filesystem::path& run, const TrainState& state,
                                       const Step& step);

/// Reads a crash dump without the weights, which Checkpoint loads. Throws MissingInput, and
/// DataError if the file is damaged or is not a crash dump.
CrashDump read_crash_dump(const std::filesystem::path& path);

}  // namespace difftape::run
