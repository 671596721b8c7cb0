#include "train/run/records/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::run {
namespace {

constexpr double kRedrawSeconds = 0.1;
constexpr Index kPlainLines = 25;

struct LineField {
  std::string label, value;
  bool value_first = false;  ///< the label is a unit
};

std::string rate(double per_second) {
  return per_second < 10000 ? fmt::format("{:.0f}", per_second)
                            : fmt::format("{:.1f}k", per_second / 1000);
}

std::vector<LineField> fields(const StepReport& r, Index steps, double eta) {
  const std::size_t width = fmt::formatted_size("{}", steps);
  std::vector<LineField> all = {{"step", fmt::format("{:>{}}/{}", r.step, width, steps)},
                                {"ETA", system::describe_duration(eta)},
                                {"loss", system::number(r.loss, "{:.4f}")},
                                {"grad_norm", system::number(r.grad_norm, "{:#.4g}")},
                                {"lr", fmt::format("{:.2e}", r.lr)},
                                {"tok/s", rate(r.tokens_per_sec), true}};
  if (std::isfinite(r.peak_fraction))
    all.push_back({"of peak", fmt::format("{:.0f}%", 100 * r.peak_fraction), true});
  if (r.spikes > 0)
    all.push_back({r.spikes == 1 ? "spike" : "spikes", fmt::to_string(r.spikes), true});
  return all;
}

LineField val_field(double loss) { return {"val", system::number(loss, "{:.4f}")}; }

/// Joins the leading fields that fit into `width` columns; dims labels if `color`.
std::string join(const std::vector<LineField>& all, std::size_t width, bool color) {
  std::string line;
  std::size_t used = 0;
  for (const LineField& field : all) {
    const std::size_t needed = (used == 0 ? 0 : 2) + field.label.size() + 1 + field.value.size();
    if (used + needed > width) break;
    const std::string label = color ? "\x1b[2m" + field.label + "\x1b[0m" : field.label;
    if (used > 0) line += "  ";
    line += field.value_first ? field.value + " " + label : label + " " + field.value;
    used += needed;
  }
  return line;
}

}  // namespace

ConsoleStyle console_style(int descriptor) {
  ConsoleStyle style;
  const char* terminal = std::getenv("TERM");
  const char* no_color = std::getenv("NO_COLOR");
  style.tty =
      isatty(descriptor) == 1 && terminal != nullptr && std::string_view(terminal) != "dumb";
  style.color = style.tty && (no_color == nullptr || *no_color == '\0');
  style.width = static_cast<int>(system::terminal_width(descriptor, 80));
  return style;
}

double Progress::steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Progress::Progress(std::ostream& console, const ConsoleStyle& style,
                   const std::filesystem::path& log, Index steps, Index done, Clock clock)
    : console_(console),
      style_(style),
      log_(log),
      steps_(steps),
      done_(done),
      clock_(std::move(clock)),
      started_(clock_()) {}

void Progress::step(const StepReport& report) {
  const bool validated = !std::isnan(report.val_loss);
  const bool last = report.step == steps_;
  if (validated) val_loss_ = report.val_loss;
  const double now = clock_();
  const double eta = (now - started_) / static_cast<double>(report.step - done_) *
                     static_cast<double>(steps_ - report.step);
  std::vector<LineField> all = fields(report, steps_, eta);

  if (validated || last || report.step == done_ + 1 || report.step % plain_interval(steps_) == 0) {
    std::vector<LineField> plain = all;
    if (validated) plain.push_back(val_field(report.val_loss));
    const std::string line = join(plain, std::string::npos, false) + "\n";
    log_.append(line);
    if (!style_.tty) console_ << line << std::flush;
  }
  if (style_.tty && (validated || last || now - drawn_ >= kRedrawSeconds)) {
    if (!std::isnan(val_loss_)) all.insert(all.begin() + 3, val_field(val_loss_));
    rewrite(join(all, static_cast<std::size_t>(style_.width - 1), style_.color));
    drawn_ = now;
    if (validated || last) end_rewritten_line();
  }
}

void Progress::rewrite(std::string_view line) {
  console_ << "\r\x1b[2K" << line << std::flush;
  line_open_ = true;
}

void Progress::note(std::string_view text) {
  end_rewritten_line();
  console_ << text << '\n' << std::flush;
  log_.append(fmt::format("{}\n", text));
}

void Progress::end_rewritten_line() {
  if (line_open_) console_ << '\n' << std::flush;
  line_open_ = false;
}

Index plain_interval(Index steps) {
  for (Index decade = 1;; decade *= 10) {
    for (const Index interval : {decade, 2 * decade, 5 * decade})
      if (steps <= kPlainLines * interval) return interval;
  }
}

}  // namespace difftape::run
