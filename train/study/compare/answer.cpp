#include "train/study/compare/answer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "train/stats/interval.h"
#include "train/study/compare/curves.h"

namespace difftape::study {

namespace {

/// An arm at its best learning rate.
struct Best {
  const Arm* arm;
  LrPoint point;
};

/// What an arm reached; nothing if no run of it finished with a validation loss.
std::optional<Best> best_of(const Arm& arm) {
  const std::vector<LrPoint> points = lr_points(arm);
  const LrPoint* point = best_point(points);
  if (point == nullptr) return std::nullopt;
  return Best{&arm, *point};
}

/// Of the losses, over the seeds that both have.
stats::PairedDifference paired(const Best& a, const Best& b) {
  std::vector<double> of_a, of_b;
  for (std::size_t i = 0; i < a.point.seeds.size(); ++i) {
    const auto seed = std::ranges::find(b.point.seeds, a.point.seeds[i]);
    if (seed == b.point.seeds.end()) continue;
    of_a.push_back(a.point.values[i]);
    of_b.push_back(b.point.values[static_cast<std::size_t>(seed - b.point.seeds.begin())]);
  }
  return stats::paired_difference(of_a, of_b);
}

std::string evidence(const stats::PairedDifference& below, bool chosen) {
  if (below.pairs == 0) return "; no seed in common, so no evidence";
  if (below.pairs == 1) return "; one seed, so no evidence";
  const double low = below.difference.low(), high = below.difference.high();
  return fmt::format("; 95 % interval {:.4f} to {:.4f}{}, n {}{}", low, high,
                     chosen ? ", uncorrected for the choice" : "", below.pairs,
                     low <= 0 && high >= 0 ? ", so no difference is shown" : "");
}

std::string at_rate(const Best& best) {
  return fmt::format(" at learning rate {:g}", best.point.lr);
}

/// ", 0.0560 below softmax" and the evidence.
std::string comparison(const Best& lowest, const Best& other, bool chosen, bool swept) {
  const stats::PairedDifference below = paired(other, lowest);
  const double difference =
      below.pairs > 0 ? below.difference.mean : other.point.loss.mean - lowest.point.loss.mean;
  return fmt::format("{}, {:.4f} {} {}{}{}", swept ? at_rate(lowest) : "", std::abs(difference),
                     difference < 0 ? "above" : "below", other.arm->name,
                     swept ? at_rate(other) : "", evidence(below, chosen));
}

std::string nothing_finished(const std::vector<const RunRecord*>& runs) {
  const bool finished = std::ranges::any_of(runs, &RunRecord::finished);
  return finished ? "no run logged a validation loss"
                  : fmt::format("no run finished: {}", describe_states(runs));
}

/// What a task of one baseline says.
std::string answer_of_task(const Study& study, std::size_t task) {
  std::vector<Best> best;
  std::vector<const RunRecord*> runs;
  std::vector<std::string> failed;
  bool swept = false;
  for (const Arm& arm : study.arms) {
    if (arm.task != task) continue;
    const auto own = arm.runs();
    runs.insert(runs.end(), own.begin(), own.end());
    swept = swept || arm.conditions.size() > 1;
    if (auto found = best_of(arm)) {
      best.push_back(*found);
    } else if (std::ranges::all_of(own, &RunRecord::diverged)) {
      failed.push_back(arm.name);
    }
  }
  if (best.empty()) {
    const std::string& words = study.tasks[task];
    return (words.empty() ? "" : words + ": ") + nothing_finished(runs);
  }
  std::ranges::stable_sort(best, {}, [](const Best& each) { return each.point.loss.mean; });
  const Best& lowest = best.front();
  const bool open = !std::ranges::all_of(runs, &RunRecord::complete);
  std::string text = fmt::format("{}{}: {} {:.4f}", open ? "so far, " : "",
                                 runs.size() == 1 ? "validation loss" : "lowest validation loss",
                                 lowest.arm->name, lowest.point.loss.mean);
  if (best.size() > 1) {
    const Arm* base = study.baseline_of(*lowest.arm);
    auto other = std::ranges::find(best, base, &Best::arm);
    if (other == best.begin() || other == best.end()) other = best.begin() + 1;
    text += comparison(lowest, *other, swept || best.size() > 2, swept);
  } else if (swept) {
    text += at_rate(lowest);
  }
  if (!failed.empty()) text += fmt::format("; all runs of {} diverged", fmt::join(failed, ", "));
  return text;
}

}  // namespace

std::string answer(const Study& study) {
  std::string text;
  for (std::size_t task = 0; task < study.tasks.size(); ++task) {
    text += (task > 0 ? ". " : "") + answer_of_task(study, task);
  }
  return text;
}

}  // namespace difftape::study
