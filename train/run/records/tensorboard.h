#pragma once
// Event files for TensorBoard and for W&B, which finds them by their names: protocol buffers
// (tensorflow/core/util/event.proto, framework/summary.proto) in records with checksums.
//
// TensorBoard reads the files of a directory once, in the order of their names. Every start of a
// run therefore writes a new file. It begins with an event that voids the steps that the run
// repeats, so steps of a killed process do not count twice.

#include <filesystem>
#include <optional>

#include "train/run/records/metrics.h"

namespace difftape::run {

/// Writes the metrics of one start of a run to <dir>/events.out.tfevents.<seconds>.<host>.<n>, with
/// the seconds since 1970 and the smallest number whose file does not exist.
class EventWriter {
 public:
  /// Creates no file yet.
  explicit EventWriter(std::filesystem::path dir) : dir_(std::move(dir)) {}

  /// Appends the numbers in single precision. The first call creates the file. Throws OutputError,
  /// for example if the disk is full.
  void write(Index step, const Metrics& metrics);

 private:
  std::filesystem::path dir_;
  std::optional<system::AppendFile> file_;  ///< absent before the first event
};

}  // namespace difftape::run
