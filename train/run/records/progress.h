#pragma once
// Progress output of a training run: one rewritten line on a terminal, otherwise about 25 plain
// lines per run. The plain lines also go to stdout.log.

#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <string_view>

#include "core/real.h"
#include "train/system/files.h"

namespace difftape::run {

struct ConsoleStyle {
  bool tty = false;    ///< rewrites one line
  bool color = false;  ///< only on a terminal, and unless NO_COLOR is set
  int width = 80;      ///< columns; fields that do not fit are left out
};
/// Returns the style for the terminal, file or pipe behind a file descriptor.
ConsoleStyle console_style(int descriptor);

/// The displayed values of a finished step. NaN in `val_loss` and `peak_fraction` means unknown.
struct StepReport {
  Index step = 0;
  double loss = 0;       ///< nats per token
  double grad_norm = 0;  ///< before clipping
  double lr = 0;
  double tokens_per_sec = 0;
  double peak_fraction = kNaN;  ///< fraction of the FMA peak, 0 to 1
  double val_loss = kNaN;       ///< nats per token, if this step was validated
  Index spikes = 0;             ///< loss spikes so far
};

class Progress {
 public:
  /// Returns seconds since a fixed moment.
  using Clock = std::function<double()>;
  static double steady_seconds();

  /// Starts the output of a run of `steps` steps, of which `done` are done. Throws OutputError if
  /// `log` cannot be opened.
  Progress(std::ostream& console, const ConsoleStyle& style, const std::filesystem::path& log,
           Index steps, Index done = 0, Clock clock = steady_seconds);
  ~Progress() { end_rewritten_line(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// Shows a step. Writes a plain line for the first, the last and every validated step, and about
  /// 25 times per run. Throws OutputError if the log cannot be written.
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

/// Returns the smallest of 1, 2, 5, 10, 20, 50, ... that gives at most 25 plain lines.
Index plain_interval(Index steps);

}  // namespace difftape::run
