#pragma once
// What a training run prints while it runs: on a terminal one line that is rewritten, otherwise
// plain lines now and then. The same plain lines go to stdout.log of the run.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "core/real.h"
#include "train/system/files.h"

namespace difftape::run {

struct ConsoleStyle {
  bool tty = false;    ///< rewrite one line
  bool color = false;  ///< only on a terminal and without NO_COLOR
  int width = 80;      ///< columns; fields that do not fit are left out
};
/// The style that fits what the file descriptor is connected to.
ConsoleStyle console_style(int descriptor);

/// What is shown of a finished step. NaN in `val_loss` and `peak_share` means not known.
struct StepReport {
  Index step = 0;
  double loss = 0;       ///< nats per token
  double grad_norm = 0;  ///< before clipping
  double lr = 0;
  double tokens_per_sec = 0;
  double peak_share = kNaN;  ///< of the FMA peak, 0 to 1
  double val_loss = kNaN;    ///< if this step was validated
  Index spikes = 0;          ///< loss spikes so far
};

class Progress {
 public:
  /// Seconds since any fixed moment.
  using Clock = std::function<double()>;
  static double steady_seconds();

  /// For a run of `steps` steps of which `done` were made before. Throws OutputError if `log`
  /// cannot be opened.
  Progress(std::ostream& console, const ConsoleStyle& style, const std::filesystem::path& log,
           Index steps, Index done = 0, Clock clock = steady_seconds);
  ~Progress() { end_rewritten_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows a step. A plain line is written for the first and last step, for a validated one and
  /// about 25 times a run. Throws OutputError if the log cannot be written.
  void step(const StepReport& report);
  /// Writes one line to the console and the log, for example that a checkpoint was saved.
  void note(std::string_view text);

 private:
  void rewrite(std::string_view line);
  void end_rewritten_line();

  std::ostream& console_;
  ConsoleStyle style_;
  system::AppendFile log_;
  Index steps_, done_;
  Clock clock_;
  double started_;
  double drawn_ = -kInfinity;
  double val_loss_ = kNaN;
  bool line_open_ = false;
};

/// The smallest of 1, 2, 5, 10, 20, 50, ... that gives at most 25 plain lines.
Index plain_interval(Index steps);

}  // namespace difftape::run
