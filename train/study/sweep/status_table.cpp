#include "train/study/sweep/status_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "layers/cost.h"
#include "train/run/loop/step.h"
#include "train/study/compare/run_record.h"

namespace difftape::study {

void StatusTable::line(std::string_view text) {
  erase();
  console_ << text << '\n' << std::flush;
}

void StatusTable::draw(const std::vector<std::string>& lines) {
  if (!style_.tty) return;
  erase();
  const auto width = static_cast<std::size_t>(std::max(style_.width - 1, 1));
  for (const std::string& text : lines) console_ << text.substr(0, width) << '\n';
  console_ << std::flush;
  drawn_ = lines.size();
}

void StatusTable::erase() {
  if (drawn_ > 0) console_ << fmt::format("\x1b[{}A\r\x1b[J", drawn_);
  drawn_ = 0;
}

std::string describe_counts(std::span<const RunProgress> runs, double eta) {
  const auto count = [&](auto... phases) {
    return std::count_if(runs.begin(), runs.end(), [&](const RunProgress& run) {
      return run.selected && ((run.phase == phases) || ...);
    });
  };
  const auto chosen =
      std::count_if(runs.begin(), runs.end(), [](const auto& r) { return r.selected; });
  std::string text = fmt::format("{}/{} done", count(Phase::finished, Phase::diverged), chosen);
  for (const Phase phase :
       {Phase::running, Phase::queued, Phase::diverged, Phase::stopped, Phase::failed}) {
    if (const auto n = count(phase); n > 0) text += fmt::format("  {} {}", n, name_of(phase));
  }
  return text + "  ETA " + run::format_duration(eta);
}

std::string describe_result(const std::filesystem::path& run_dir, const RunProgress& progress) {
  if (!progress.complete()) {
    return progress.phase == Phase::stopped ? progress.error : "failed: " + progress.error;
  }
  try {
    const RunRecord run = load_run(run_dir);
    const double loss = run.number("val_loss");
    return describe_state(run.status) +
           (std::isfinite(loss) ? fmt::format(", val {:.4f}", loss) : "") +
           fmt::format(", {:.0f} tokens/s", run.number("tokens_per_sec"));
  } catch (const Error&) {
    return std::string(name_of(progress.phase));  // damaged since; the report will say so
  }
}

double sweep_eta(std::span<const SweepRun> runs, std::span<const RunProgress> progress,
                 double elapsed) {
  double made = 0, left = 0;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const RunProgress& run = progress[i];
    const double flops = flops_per_step(runs[i].config());
    made += flops * static_cast<double>(run.step - run.done);
    if (run.selected && (run.phase == Phase::queued || run.phase == Phase::running)) {
      left += flops * static_cast<double>(runs[i].config().train.steps - run.step);
    }
  }
  return made > 0 ? elapsed * left / made : std::nan("");
}

double flops_per_step(const run::Config& config) {
  return model_cost(config.model, config.data.seq_len).train_flops_per_token *
         static_cast<double>(tokens_per_step(config));
}

}  // namespace difftape::study
