#pragma once
// Event files for TensorBoard: protocol buffers (tensorflow/core/util/event.proto and
// framework/summary.proto) in records with checksums. Only tensorboard.cpp includes Boost.CRC.
//
// TensorBoard reads the files of a directory once, in the order of their names. Every start of a
// run therefore writes a new file with the next number. It begins with an event that voids the
// steps that the run repeats, so steps of a killed process do not count twice.

#include <filesystem>
#include <optional>
#include <string>

#include "train/run/records/metrics.h"

namespace difftape::run {

/// Writes the metrics of one start of a run to <dir>/events.out.tfevents.<number>.difftape.
class EventWriter {
 public:
  /// Creates no file yet. The first event shows `config`, YAML, as text.
  EventWriter(std::filesystem::path dir, std::string config)
      : dir_(std::move(dir)), config_(std::move(config)) {}

  /// Appends the numbers of `metrics` in single precision, and for each list of `distributions` a
  /// histogram "<name>/histogram" of its finite values. The first call creates the file. Throws
  /// OutputError, for example if the disk is full.
  void write(Index step, const Metrics& metrics, const Metrics& distributions);

 private:
  std::filesystem::path dir_;
  std::string config_;
  std::optional<system::AppendFile> file_;  ///< absent before the first event
};

}  // namespace difftape::run
