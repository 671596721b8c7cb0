#include "train/study/compare/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/study/compare/answer.h"
#include "train/study/compare/curves.h"

namespace difftape::study {

namespace {

/// What the tables leave to explain. The spread of single runs is that of the small runs published
/// with either version of differential attention.
constexpr const char* kSingleRunsNote =
    "Each row is one run. Published runs of this size differ by 0.004 to 0.035 nats either way: a\n"
    "difference as small as that decides nothing.\n";
constexpr const char* kStudyNote =
    "Means over the seeds that ended; losses of those that finished. +- is half of a 95 % "
    "t-interval, differences are paired by seed, p is corrected by Holm over the table.";
constexpr const char* kSensitivityNote =
    "lr sensitivity E: mean over the learning rates of [final validation loss - that of the best "
    "one], nats per token; a diverged run counts with its initial loss. From, to: 95 % bootstrap "
    "over seeds.";

using TableRow = std::vector<std::string>;

/// A number in a format of its own, "-" for NaN.
std::string number(double value, fmt::format_string<double&> format) {
  return std::isnan(value) ? "-" : fmt::format(format, value);
}

/// The columns of one quantity: their labels, and the cells of every row.
struct Columns {
  std::vector<system::Column> heads;
  std::vector<TableRow> cells;  ///< one row of cells a row of the table
};

std::string versus(const Quantity& quantity, const std::string& baseline) {
  return fmt::format("{} vs {}", quantity.column.head, baseline);
}

void append(system::Table& table, const Columns& columns) {
  table.columns.insert(table.columns.end(), columns.heads.begin(), columns.heads.end());
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const TableRow& cells = columns.cells[row];
    table.rows[row].insert(table.rows[row].end(), cells.begin(), cells.end());
  }
}

/// Text at the right end of every row.
void append(system::Table& table, const char* head, const TableRow& texts) {
  Columns columns{{{"", head, true}}, {}};
  for (const std::string& text : texts) columns.cells.push_back({text});
  append(table, columns);
}

/// For each run of a study the one that it is compared with; nullptr if there is none.
std::vector<const RunRecord*> compared_runs(const Study& study) {
  std::vector<const RunRecord*> compared;
  for (const Arm& arm : study.arms) {
    const Arm* base = study.baseline_of(arm);
    compared.insert(compared.end(), arm.runs().size(),
                    base == nullptr ? nullptr : base->runs().front());
  }
  return compared;
}

Columns run_columns(const Quantity& quantity, const Study& study) {
  const auto& [group, head, format, tables, against_baseline] = quantity.column;
  Columns columns{{{group, head}}, {}};
  if (against_baseline) {
    const RunRecord& base = *study.arms[study.baseline].runs().front();
    columns.heads.push_back(
        {group, versus(quantity, study.tasks.size() > 1 ? study.baseline_name() : base.name)});
  }
  const std::vector<const RunRecord*> runs = study.runs(), compared = compared_runs(study);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const double value = runs[i]->number(quantity);
    TableRow& row = columns.cells.emplace_back(TableRow{written(value, format)});
    if (!against_baseline) continue;
    const bool alone = compared[i] == nullptr || compared[i] == runs[i];
    row.push_back(alone ? "-" : number(value - compared[i]->number(quantity), "{:+.4f}"));
  }
  return columns;
}

/// The numbers of the complete runs that have one.
std::vector<double> values_of(const Condition& condition, const Quantity& quantity) {
  std::vector<double> values;
  for (const RunRecord* run : condition.complete()) {
    if (!std::isnan(run->number(quantity))) values.push_back(run->number(quantity));
  }
  return values;
}

/// Over the seeds that have a number in both arms at this learning rate.
stats::PairedDifference difference_to(const Arm& baseline, const Condition& condition,
                                      const Quantity& quantity) {
  std::vector<double> a, b;
  const Condition* other = baseline.at(condition.lr);
  for (const RunRecord* run : condition.complete()) {
    const RunRecord* match = other == nullptr ? nullptr : other->complete(run->seed);
    if (match == nullptr) continue;
    const double value = run->number(quantity), base = match->number(quantity);
    if (std::isnan(value - base)) continue;
    a.push_back(value);
    b.push_back(base);
  }
  return stats::paired_difference(a, b);
}

/// Mean and interval, and mean, interval and p of the difference to the baseline.
Columns compared_columns(const Quantity& quantity, const Study& study) {
  const std::string group = fmt::format("{} {}", quantity.column.head, quantity.column.group);
  const std::string against = versus(quantity, study.baseline_name());
  Columns columns{
      {{group, "mean"}, {group, "+-"}, {against, "mean"}, {against, "+-"}, {against, "p (Holm)"}},
      {}};
  std::vector<double> p;
  for (const Arm& arm : study.arms) {
    const Arm* base = study.baseline_of(arm);
    for (const Condition& condition : arm.conditions) {
      const stats::Interval mean = stats::mean_interval(values_of(condition, quantity));
      const auto paired = base == nullptr || base == &arm
                              ? stats::PairedDifference()
                              : difference_to(*base, condition, quantity);
      p.push_back(paired.p);
      columns.cells.push_back({written(mean.mean, quantity.column.format),
                               written(mean.half_width, quantity.column.format),
                               number(paired.difference.mean, "{:+.4f}"),
                               written(paired.difference.half_width, quantity.column.format)});
    }
  }
  const std::vector<double> adjusted = stats::holm(p);
  for (std::size_t row = 0; row < p.size(); ++row) {
    columns.cells[row].push_back(number(adjusted[row], "{:.3f}"));
  }
  return columns;
}

Columns study_columns(const Quantity& quantity, const Study& study) {
  if (quantity.column.against_baseline) return compared_columns(quantity, study);
  Columns columns{{{quantity.column.group, quantity.column.head}}, {}};
  for (const Arm& arm : study.arms) {
    for (const Condition& condition : arm.conditions) {
      const double mean = stats::mean(values_of(condition, quantity));
      columns.cells.push_back({written(mean, quantity.column.format)});
    }
  }
  return columns;
}

bool is_single_runs(const Study& study) {
  return std::all_of(study.arms.begin(), study.arms.end(),
                     [](const Arm& arm) { return arm.runs().size() == 1; });
}

}  // namespace

std::string written(double value, Format format) {
  if (std::isnan(value)) return "-";
  switch (format) {
    case Format::loss:
      return fmt::format("{:.4f}", value);
    case Format::count:
      return fmt::format("{:.1f}", value);
    case Format::norm:
      return value < 1000 ? fmt::format("{:.3f}", value) : fmt::format("{:.2e}", value);
    case Format::power:
      return fmt::format("{:.2e}", value);
    case Format::whole:
      break;
  }
  return system::grouped(std::llround(value));
}

system::Table run_table(const Study& study) {
  system::Table table{{{"", "run", true}, {"", "parameters"}}, {}};
  TableRow states;
  for (const RunRecord* run : study.runs()) {
    table.rows.push_back({run->name, system::grouped(run->status.parameters)});
    states.push_back(describe_state(run->status));
  }
  for (const Quantity& quantity : quantities()) {
    if (quantity.column.tables & kRunTable) append(table, run_columns(quantity, study));
  }
  append(table, "state", states);
  return table;
}

system::Table study_table(const Study& study) {
  system::Table table{{{"", "arm", true}, {"", "lr"}, {"", "parameters"}, {"", "seeds"}}, {}};
  TableRow states;
  for (const Arm& arm : study.arms) {
    for (const Condition& condition : arm.conditions) {
      table.rows.push_back({arm.name, fmt::format("{:g}", condition.lr),
                            system::grouped(condition.runs.front()->status.parameters),
                            fmt::to_string(condition.complete().size())});
      states.push_back(describe_states(condition.runs));
    }
  }
  for (const Quantity& quantity : quantities()) {
    if (quantity.column.tables & kStudyTable) append(table, study_columns(quantity, study));
  }
  append(table, "state", states);
  return table;
}

system::Table sensitivity_table(const Study& study) {
  const char *sensitivity = "lr sensitivity", *best = "best";
  system::Table table{{{"", "arm", true},
                       {"", "lrs"},
                       {"", "diverged"},
                       {sensitivity, "E"},
                       {sensitivity, "from"},
                       {sensitivity, "to"},
                       {best, "lr"},
                       {best, "val loss"},
                       {best, "+-"}},
                      {}};
  for (const LrCurve& curve : lr_curves(study)) {
    const LrPoint* point = best_point(curve.points);
    int runs = 0, diverged = 0;
    for (const LrPoint& each : curve.points) runs += each.runs, diverged += each.diverged;
    TableRow& row = table.rows.emplace_back(TableRow{curve.arm, fmt::to_string(curve.points.size()),
                                                     fmt::format("{} of {}", diverged, runs)});
    for (const double value :
         {curve.sensitivity.mean, curve.sensitivity_limits.low, curve.sensitivity_limits.high}) {
      row.push_back(written(value, Format::loss));
    }
    row.push_back(point == nullptr ? "-" : fmt::format("{:g}", point->lr));
    row.push_back(point == nullptr ? "-" : written(point->loss.mean, Format::loss));
    row.push_back(point == nullptr ? "-" : written(point->loss.half_width, Format::loss));
  }
  return table;
}

std::string tasks_note(const Study& study) {
  if (study.tasks.size() < 2) return "";
  return fmt::format(
      "Runs of {} tasks ({}): an arm is compared with {} of its own task, since losses of "
      "different data or lengths do not compare.",
      study.tasks.size(), fmt::join(study.tasks, "; "), study.baseline_name());
}

std::string tables_text(const Study& study, std::size_t width) {
  const std::string tasks = tasks_note(study);
  const std::string apart = tasks.empty() ? "" : system::wrapped(tasks, width, "");
  const std::string first = system::wrapped(answer(study), width, "") + '\n';
  if (is_single_runs(study)) {
    return first + to_text(run_table(study)) + (study.arms.size() > 1 ? kSingleRunsNote : "") +
           apart;
  }
  std::string text = first + to_text(study_table(study), width, 2) +
                     system::wrapped(kStudyNote, width, "") + apart;
  if (!study.is_swept()) return text;
  return text + '\n' + to_text(sensitivity_table(study), width, 1) +
         system::wrapped(kSensitivityNote, width, "");
}

}  // namespace difftape::study
