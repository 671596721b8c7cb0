#pragma once
// Event files, which TensorBoard draws: records of protocol buffers (tensorflow/core/util/
// event.proto and framework/summary.proto), each between checksums. protozero and Boost.CRC, which
// write them, are included by tensorboard.cpp only.
//
// TensorBoard reads the files of a directory in the order of their names and never looks back.
// So every start of a run makes a file of its own, of the next number, that first takes back the
// steps that it is going to repeat: steps of a process that was killed do not count twice.

#include <filesystem>
#include <optional>
#include <string>

#include "train/run/records/metrics.h"

namespace difftape::run {

/// Writes what one start of a run logs to <dir>/events.out.tfevents.<number>.difftape.
class EventWriter {
 public:
  /// Touches nothing. `config` is YAML, which the first event shows as text.
  EventWriter(std::filesystem::path dir, std::string config)
      : dir_(std::move(dir)), config_(std::move(config)) {}

  /// Appends the numbers among `metrics` under their names, in single precision, and a histogram
  /// of each list of `distributions`, "<name>/histogram", without what is not finite. At first it
  /// makes the file. Throws OutputError, for example when the disk is full.
  void write(Index step, const Metrics& metrics, const Metrics& distributions);

 private:
  std::filesystem::path dir_;
  std::string config_;
  std::optional<system::AppendFile> file_;  ///< nothing before the first event
};

}  // namespace difftape::run
