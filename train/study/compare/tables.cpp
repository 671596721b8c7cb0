#include "train/study/compare/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/study/compare/lr_curves.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

using TableRow = std::vector<std::string>;

/// A number in a format of its own, "-" for NaN.
std::string number(double value, fmt::format_string<double&> format) {
  return std::isnan(value) ? "-" : fmt::format(format, value);
}

/// The columns of one quantity: their labels, and for every row of the table its cells.
struct Columns {
  std::vector<system::Column> heads;
  std::vector<TableRow> cells;
};

std::string versus(const Quantity& quantity, const std::string& baseline) {
  return fmt::format("{} vs {}", quantity.column.head, baseline);
}

void append(system::Table& table, const Columns& columns) {
  for (std::size_t column = 0; column < columns.heads.size(); ++column) {
    const auto is_empty = [column](const TableRow& row) { return row[column] == "-"; };
    if (std::ranges::all_of(columns.cells, is_empty)) continue;
    table.columns.push_back(columns.heads[column]);
    for (std::size_t row = 0; row < table.rows.size(); ++row)
      table.rows[row].push_back(columns.cells[row][column]);
  }
}

/// For each run of a study the one that it is compared with, of its seed and, if there is one, of
/// its learning rate; nullptr if there is none.
std::vector<const RunRecord*> compared_runs(const Study& study) {
  std::vector<const RunRecord*> compared;
  for (const Arm& arm : study.arms) {
    const Arm* base = study.baseline_of(arm);
    for (const RunRecord* run : arm.runs()) {
      const RunRecord*& best = compared.emplace_back(nullptr);
      if (base == nullptr || base == &arm) continue;
      for (const RunRecord* other : base->runs()) {
        if (other->seed == run->seed && (best == nullptr || other->lr == run->lr)) best = other;
      }
    }
  }
  return compared;
}

Columns run_columns(const Quantity& quantity, const Study& study) {
  const auto& [group, head, format, tables, against_baseline] = quantity.column;
  Columns columns{{{group, head}}, {}};
  if (against_baseline) columns.heads.push_back({group, versus(quantity, study.baseline_name())});
  const std::vector<const RunRecord*> runs = study.runs(), compared = compared_runs(study);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double value = runs[i]->number(quantity);
    TableRow& row = columns.cells.emplace_back(TableRow{written(value, format)});
    if (!against_baseline) continue;
    row.push_back(
        compared[i] == nullptr ? "-" : number(value - compared[i]->number(quantity), "{:+.4f}"));
  }
  return columns;
}

std::vector<double> values_of(const Condition& condition, const Quantity& quantity) {
  std::vector<double> values;
  for (const RunRecord* run : condition.complete()) {
    if (!std::isnan(run->number(quantity))) values.push_back(run->number(quantity));
  }
  return values;
}

/// Pairs of complete runs with one seed, in an arm and in what it is compared with.
struct SeedPairs {
  stats::PairedDifference difference;  ///< over the pairs in which both runs have a number
  int all = 0, dropped = 0;            ///< dropped: without a number because a run diverged
};

/// No pairs for the baseline itself and where there is none.
SeedPairs pairs_of(const Study& study, const Cell& cell, const Quantity& quantity) {
  SeedPairs pairs;
  const Arm* base = study.baseline_of(cell.arm);
  const Condition* other =
      base == nullptr || base == &cell.arm ? nullptr : base->at(cell.condition.lr);
  if (other == nullptr) return pairs;
  std::vector<double> a, b;
  for (const RunRecord* run : cell.condition.complete()) {
    const RunRecord* match = other->complete(run->seed);
    if (match == nullptr) continue;
    pairs.all += 1;
    const double value = run->number(quantity), against = match->number(quantity);
    if (std::isnan(value - against)) {
      pairs.dropped += run->diverged() || match->diverged() ? 1 : 0;
      continue;
    }
    a.push_back(value);
    b.push_back(against);
  }
  pairs.difference = stats::paired_difference(a, b);
  return pairs;
}

/// Mean and interval, and mean, interval and p of the difference to the baseline.
Columns compared_columns(const Quantity& quantity, const Study& study) {
  const std::string group = fmt::format("{} {}", quantity.column.head, quantity.column.group);
  const std::string against = versus(quantity, study.baseline_name());
  Columns columns{
      {{group, "mean"}, {group, "+-"}, {against, "mean"}, {against, "+-"}, {against, "p (Holm)"}},
      {}};
  std::vector<double> p;
  for (const Cell& cell : study.cells()) {
    const stats::Interval mean = stats::mean_interval(values_of(cell.condition, quantity));
    const stats::PairedDifference paired = pairs_of(study, cell, quantity).difference;
    p.push_back(paired.p);
    columns.cells.push_back({written(mean.mean, quantity.column.format),
                             written(mean.half_width, quantity.column.format),
                             number(paired.difference.mean, "{:+.4f}"),
                             written(paired.difference.half_width, quantity.column.format)});
  }
  const std::vector<double> adjusted = stats::holm(p);
  for (std::size_t row = 0; row < p.size(); ++row) {
    const double own = adjusted[row];
    columns.cells[row].push_back(own < 0.001 ? "<0.001" : number(own, "{:.3f}"));
  }
  return columns;
}

Columns study_columns(const Quantity& quantity, const Study& study) {
  if (quantity.column.against_baseline) return compared_columns(quantity, study);
  const auto& [group, head, format, tables, against_baseline] = quantity.column;
  Columns columns{{{group, head}}, {}};
  for (const Cell& cell : study.cells())
    columns.cells.push_back({written(stats::mean(values_of(cell.condition, quantity)), format)});
  return columns;
}

std::string rate_text(double lr) { return number(lr, "{:.3g}"); }

}  // namespace

std::string written(double value, Format format) {
  if (std::isnan(value)) return "-";
  if (format == Format::loss) return fmt::format("{:.4f}", value);
  if (format == Format::count) return fmt::format("{:.1f}", value);
  if (format == Format::whole) return system::grouped(std::llround(value));
  return value < 1000 ? fmt::format("{:.3f}", value) : fmt::format("{:.2e}", value);
}

system::Table run_table(const Study& study) {
  system::Table table{{{"", "run", true}, {"", "parameters"}}, {}};
  Columns states{{{"", "state", true}}, {}};
  for (const RunRecord* run : study.runs()) {
    table.rows.push_back({run->name, system::grouped(run->status.parameters)});
    states.cells.push_back({describe_state(run->status)});
  }
  for (const Quantity& quantity : quantities()) {
    if (quantity.column.tables & kRunTable) append(table, run_columns(quantity, study));
  }
  append(table, states);
  return table;
}

system::Table study_table(const Study& study) {
  system::Table table{{{"", "arm", true}, {"", "lr"}, {"", "parameters"}, {"", "seeds"}}, {}};
  Columns states{{{"", "state", true}}, {}};
  for (const auto& [arm, condition] : study.cells()) {
    table.rows.push_back({arm.name, fmt::format("{:g}", condition.lr),
                          system::grouped(condition.runs.front()->status.parameters),
                          fmt::to_string(condition.complete().size())});
    states.cells.push_back({describe_states(condition.runs)});
  }
  for (const Quantity& quantity : quantities()) {
    if (quantity.column.tables & kStudyTable) append(table, study_columns(quantity, study));
  }
  append(table, states);
  return table;
}

std::string dropped_note(const Study& study) {
  std::vector<std::string> dropped;
  for (const Quantity& quantity : quantities()) {
    const bool compared = quantity.column.against_baseline;
    if (!compared || !(quantity.column.tables & kStudyTable)) continue;
    for (const Cell& cell : study.cells()) {
      const SeedPairs pairs = pairs_of(study, cell, quantity);
      if (pairs.dropped == 0) continue;
      dropped.push_back(fmt::format("{} of {} pairs of {} at lr {:g}", pairs.dropped, pairs.all,
                                    cell.arm.name, cell.condition.lr));
    }
  }
  return dropped.empty()
             ? ""
             : fmt::format("Differences and their p leave out pairs in which a run diverged: {}.",
                           fmt::join(dropped, ", "));
}

system::Table lr_table(std::span<const LrCurve> curves) {
  system::Table table;
  constexpr std::pair<const char*, const char*> kHeads[] = {
      {"", "arm"},        {"", "parameters"},    {"", "lrs"},          {"", "seeds"},
      {"", "diverged"},   {"lr*", "lr"},         {"lr*", "from"},      {"lr*", "to"},
      {"lr*", "loss"},    {"gap at lr*", "mean"}, {"gap at lr*", "+-"}, {"gap at lr*", "seeds"},
      {"lr sensitivity", "E"}, {"lr sensitivity", "from"}, {"lr sensitivity", "to"}};
  for (const auto& [group, head] : kHeads)
    table.columns.push_back({group, head, table.columns.empty()});
  for (const LrCurve& curve : curves) {
    if (curve.ladder.size() < 2) continue;
    int runs = 0, diverged = 0;
    for (const LrPoint& each : curve.ladder) runs += each.runs, diverged += each.diverged;
    const stats::LrOptimum& found = curve.optimum;
    const stats::PairedDifference& difference = curve.gap.difference;
    table.rows.push_back(
        {curve.arm, system::grouped(curve.parameters), fmt::to_string(curve.ladder.size()),
         fmt::to_string(curve.seeds.size()), fmt::format("{} of {}", diverged, runs),
         rate_text(found.lr), rate_text(found.low), rate_text(found.high),
         written(found.loss, Format::loss), written(difference.difference.mean, Format::loss),
         written(difference.difference.half_width, Format::loss),
         difference.pairs == 0
             ? "-"
             : fmt::format("{}{}", difference.pairs, curve.gap.fresh ? "" : " of the ladder"),
         written(curve.sensitivity.mean, Format::loss),
         written(curve.sensitivity_limits.low, Format::loss),
         written(curve.sensitivity_limits.high, Format::loss)});
  }
  return table;
}

std::vector<std::string> lr_refusals(std::span<const LrCurve> curves) {
  std::vector<std::string> refusals;
  for (const LrCurve& curve : curves) {
    if (curve.ladder.size() < 2 || curve.optimum.reason.empty()) continue;
    refusals.push_back(fmt::format("{} has no lr*: {}.", curve.arm, curve.optimum.reason));
  }
  return refusals;
}

namespace {

constexpr const char* kSingleRunsNote =
    "Each row is one run: one seed gives no interval and decides nothing, however large the "
    "difference.";
constexpr const char* kStudyNote =
    "Means over the seeds that ended; losses of those that finished. +- is half of a 95 % "
    "t-interval, differences are paired by seed, p is corrected by Holm over the table.";
constexpr const char* kLrNote =
    "lr*: vertex of a parabola in log lr through the lowest mean loss over the seeds and its two "
    "neighbors. Gap: final loss at an arm's own lr* less the baseline's at its own, paired by "
    "seed; of the ladder: at the lowest rungs, by the seeds that chose them. lr sensitivity E: "
    "mean "
    "over the learning rates of [final loss - the lowest]. Losses in nats per token; a diverged "
    "run "
    "counts with the loss at init. From, to: 95 %, bootstrap over seeds.";

struct Best {
  const Arm* arm;
  LrPoint point;
};

struct TaskRuns {
  std::vector<const RunRecord*> runs;
  std::vector<Best> best;             ///< of arms with a learning rate at which no run diverged
  std::vector<std::string> left_out;  ///< arms with diverged runs at every learning rate, in words
  bool swept = false;                 ///< an arm has more than one learning rate
};

std::string name_of(const Study& study, const Arm& arm) {
  const std::string task = fmt::format(" ({})", study.tasks[arm.task]);
  return arm.name.ends_with(task) ? arm.name.substr(0, arm.name.size() - task.size()) : arm.name;
}

std::string at_rate(const Best& best) {
  return fmt::format(" at learning rate {:g}", best.point.lr);
}

/// "v1 (3 of 16 runs diverged, some at every learning rate)".
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

/// `brief`: a line of several.
std::string evidence(const stats::PairedDifference& below, bool chosen, bool brief) {
  if (below.pairs == 0) return "no seed in common, so no evidence";
  if (below.pairs == 1) return "one seed, so no evidence";
  const double low = below.difference.low(), high = below.difference.high();
  return fmt::format("{}{:.4f} to {:.4f}{}, n {}{}", brief ? "" : "95 % interval ", low, high,
                     chosen && !brief ? ", uncorrected for the choice" : "", below.pairs,
                     low <= 0 && high >= 0 ? ", so no difference is shown" : "");
}

/// ", 0.0560 below softmax" and the evidence.
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

std::string answer_of_task(const Study& study, std::size_t task) {
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

std::string answer(const Study& study) {
  std::string text;
  for (std::size_t task = 0; task < study.tasks.size(); ++task) {
    text += (task > 0 ? "\n" : "") + answer_of_task(study, task);
  }
  return text;
}

std::string tasks_note(const Study& study) {
  if (study.tasks.size() < 2) return "";
  return fmt::format(
      "Runs of {} tasks ({}): an arm is compared with {} of its own task, since losses of "
      "different data or lengths do not compare. The first lines take each arm at its best "
      "learning rate; in brackets the 95 % interval of the difference paired by seed, uncorrected "
      "for the choice.",
      study.tasks.size(), fmt::join(study.tasks, "; "), study.baseline_name());
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
  std::string text = paragraphs(answer(study)) + '\n';
  if (study.runs().size() == study.arms.size()) {
    return text + to_text(run_table(study)) +
           paragraphs(study.arms.size() > 1 ? kSingleRunsNote : "") + paragraphs(tasks_note(study));
  }
  text += to_text(study_table(study), width, 2) + paragraphs(kStudyNote) +
          paragraphs(dropped_note(study)) + paragraphs(tasks_note(study));
  const std::vector<LrCurve> curves = lr_curves(study);
  const system::Table rates = lr_table(curves);
  if (rates.rows.empty()) return text;
  text += '\n' + to_text(rates, width, 1) + paragraphs(kLrNote);
  for (const std::string& refusal : lr_refusals(curves)) text += paragraphs(refusal);
  return text;
}

}  // namespace difftape::study
