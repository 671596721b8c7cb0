// The headline of a study, and the text of its tables.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "train/stats/interval.h"
#include "train/study/compare/tables.h"

namespace difftape::study {

namespace {

constexpr const char* kSingleRunsNote =
    "Each row is one run. One seed has no interval and decides nothing, however large the "
    "difference.";
constexpr const char* kLrNote =
    "lr*: vertex of a parabola in log lr through the lowest mean loss over the seeds and its "
    "two neighbors. Gap: final loss at an arm's lr* minus the baseline's at its own lr*, paired "
    "by seed. \"At given rates\": each of the two arms ran "
    "at one rate, which need not be its lr*. \"Of the ladder\": measured at the rates of lowest "
    "loss with the seeds that chose them. lr sensitivity E: mean over the learning rates of "
    "[final loss - the lowest]. Losses are in nats per token; a diverged run counts with the "
    "loss at init. From, to: 95 % limits, bootstrap over seeds.";

struct Best {
  const Arm* arm;
  LrPoint point;
};

struct TaskRuns {
  std::vector<const RunRecord*> runs;
  std::vector<Best> best;             ///< arms with a learning rate at which no run diverged
  std::vector<std::string> left_out;  ///< text per arm with diverged runs at every learning rate
  bool swept = false;                 ///< whether an arm has more than one learning rate
};

std::string name_of(const Study& study, const Arm& arm) {
  const std::string task = fmt::format(" ({})", study.tasks[arm.task]);
  return arm.name.ends_with(task) ? arm.name.substr(0, arm.name.size() - task.size()) : arm.name;
}

std::string at_rate(const Best& best) {
  return fmt::format(" at learning rate {:g}", best.point.lr);
}

/// Returns "v1 (3 of 16 runs diverged, some at every learning rate)".
std::string divergences(const std::string& arm, const std::vector<LrPoint>& points) {
  int runs = 0, diverged = 0;
  for (const LrPoint& point : points) runs += point.runs, diverged += point.diverged;
  return fmt::format("{} ({} of {} runs diverged{})", arm, diverged, runs,
                     diverged < runs && points.size() > 1 ? ", some at every learning rate" : "");
}

TaskRuns runs_of(const Study& study, std::size_t task) {
  TaskRuns found;
  for (const Arm& arm : study.arms) {
    if (arm.task != task) continue;
    const auto own = arm.runs();
    found.runs.insert(found.runs.end(), own.begin(), own.end());
    found.swept = found.swept || arm.conditions.size() > 1;
    const std::vector<LrPoint> points = lr_points(arm);
    const LrPoint* point = best_point(points);
    if (point != nullptr && point->diverged == 0) {
      found.best.push_back({&arm, *point});
    } else if (std::ranges::any_of(points, [](const LrPoint& each) { return each.diverged > 0; })) {
      found.left_out.push_back(divergences(name_of(study, arm), points));
    }
  }
  std::ranges::stable_sort(found.best, {}, [](const Best& each) { return each.point.loss.mean; });
  return found;
}

/// Returns the interval of a difference; `brief` for a headline of several lines.
std::string evidence(const stats::PairedDifference& below, bool chosen, bool brief) {
  if (below.pairs == 0) return "no seed in common, so no evidence";
  if (below.pairs == 1) return "one seed, so no evidence";
  const double low = below.difference.low(), high = below.difference.high();
  return fmt::format("{}{:.4f} to {:.4f}{}, n {}{}", brief ? "" : "95 % interval ", low, high,
                     chosen && !brief ? ", uncorrected for the choice" : "", below.pairs,
                     low <= 0 && high >= 0 ? ", so no difference is shown" : "");
}

/// Returns ", 0.0560 below softmax" and the evidence.
std::string comparison(const Study& study, const TaskRuns& found, const Best& other, bool brief) {
  const Best& lowest = found.best.front();
  const stats::PairedDifference below = paired(other.point.by_seed(), lowest.point.by_seed());
  const double difference =
      below.pairs > 0 ? below.difference.mean : other.point.loss.mean - lowest.point.loss.mean;
  const bool chosen = found.swept || found.best.size() > 2;
  return fmt::format(", {:.4f} {} {}{}{}{}{}", std::abs(difference),
                     difference < 0 ? "above" : "below", name_of(study, *other.arm),
                     found.swept && !brief ? at_rate(other) : "", brief ? " (" : "; ",
                     evidence(below, chosen, brief), brief ? ")" : "");
}

std::string nothing_trained(const TaskRuns& found) {
  if (std::ranges::none_of(found.runs, &RunRecord::finished))
    return fmt::format("no run finished: {}", describe_states(found.runs));
  if (found.left_out.empty()) return "no run logged a validation loss";
  return fmt::format("no arm is ranked, since runs of each diverged: {}",
                     fmt::join(found.left_out, ", "));
}

std::string headline_of_task(const Study& study, std::size_t task) {
  const TaskRuns found = runs_of(study, task);
  const bool brief = study.tasks.size() > 1;
  const std::string start = brief ? study.tasks[task] + ": " : "";
  if (found.best.empty()) return start + nothing_trained(found);
  const Best& lowest = found.best.front();
  const bool open = !std::ranges::all_of(found.runs, &RunRecord::complete);
  std::string text = fmt::format("{}{}{}validation loss{} {} {:.4f}", start, open ? "so far, " : "",
                                 found.runs.size() == 1 ? "" : "lowest ", brief ? "" : ":",
                                 name_of(study, *lowest.arm), lowest.point.loss.mean);
  if (found.swept && !brief) text += at_rate(lowest);
  if (found.best.size() > 1) {
    const Arm* base = study.baseline_of(*lowest.arm);
    auto other = std::ranges::find(found.best, base, &Best::arm);
    if (other == found.best.begin() || other == found.best.end()) other = found.best.begin() + 1;
    text += comparison(study, found, *other, brief);
  }
  if (!found.left_out.empty())
    text += fmt::format("; left out: {}", fmt::join(found.left_out, ", "));
  return text;
}

}  // namespace

std::string headline(const Study& study) {
  std::string text;
  for (std::size_t task = 0; task < study.tasks.size(); ++task) {
    text += (task > 0 ? "\n" : "") + headline_of_task(study, task);
  }
  return text;
}

std::string tasks_note(const Study& study) {
  if (study.tasks.size() < 2) return "";
  return fmt::format(
      "The runs have {} tasks ({}). An arm is compared with {} of its own task, since losses on "
      "different data or lengths are not comparable. The first lines use each arm's best learning "
      "rate; brackets contain the 95 % interval of the difference paired by seed, not corrected "
      "for this choice.",
      study.tasks.size(), fmt::join(study.tasks, "; "), study.baseline_name());
}

std::string with_loss_unit(const Study& study, std::string text) {
  if (!std::ranges::all_of(study.runs(),
                           [](auto* run) { return run->config.data.type == run::DataKind::text; }))
    return text;
  const std::string tokens(run::loss_unit(run::DataKind::tokens)),
      bytes(run::loss_unit(run::DataKind::text));
  for (std::size_t at = 0; (at = text.find(tokens, at)) != text.npos;)
    text.replace(at, tokens.size(), bytes);
  return text;
}

std::string tables_text(const Study& study, std::size_t width) {
  const auto paragraphs = [width](const std::string& lines) {
    std::string text;
    for (std::size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
      end = std::min(lines.find('\n', begin), lines.size());
      text += system::wrapped(lines.substr(begin, end - begin), width, "");
    }
    return text;
  };
  const bool single_runs = study.runs().size() == study.arms.size();
  const system::Table table = single_runs ? run_table(study) : study_table(study);
  std::string text = paragraphs(headline(study)) + '\n' +
                     (single_runs ? to_text(table) : to_text(table, width, 2)) +
                     paragraphs(with_loss_unit(study, columns_note(table)));
  if (single_runs) {
    return text + paragraphs(study.arms.size() > 1 ? kSingleRunsNote : "") +
           paragraphs(tasks_note(study));
  }
  text += paragraphs(dropped_note(study)) + paragraphs(tasks_note(study));
  const std::vector<LrCurve> curves = lr_curves(study);
  const system::Table rates = lr_table(curves);
  if (rates.rows.empty()) return text;
  text += '\n' + to_text(rates, width, 1) + paragraphs(with_loss_unit(study, kLrNote));
  for (const std::string& refusal : lr_refusals(curves)) text += paragraphs(refusal);
  return text;
}

}  // namespace difftape::study
