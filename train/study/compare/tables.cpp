#include "train/study/compare/tables.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "train/stats/descriptive.h"
#include "train/stats/interval.h"
#include "train/study/compare/lr_curves.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

using system::number;
using TableRow = std::vector<std::string>;

/// Columns of one quantity: their labels, and the cells of every row.
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

/// Returns, for each run of a study, the run to compare it with: the same seed and, if possible,
/// the same learning rate; nullptr if there is none.
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
    row.push_back(compared[i] == nullptr
                      ? "-"
                      : number(value - compared[i]->number(quantity), "{:+.4f}", "-"));
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

/// Pairs of complete runs with one seed, in an arm and in its baseline.
struct SeedPairs {
  stats::PairedDifference difference;  ///< over the pairs in which both runs have a value
  int all = 0, dropped = 0;            ///< dropped: no value because a run diverged
};

/// Returns the pairs of a cell; none for the baseline itself and without a baseline.
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

/// Returns columns with mean and interval, and with mean, interval and p of the difference to the
/// baseline.
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
                             number(paired.difference.mean, "{:+.4f}", "-"),
                             written(paired.difference.half_width, quantity.column.format)});
  }
  const std::vector<double> adjusted = stats::holm(p);
  for (std::size_t row = 0; row < p.size(); ++row) {
    const double own = adjusted[row];
    columns.cells[row].push_back(own < 0.001 ? "<0.001" : number(own, "{:.3f}", "-"));
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

/// Notes on the columns whose name or group begins with the key.
constexpr std::pair<std::string_view, const char*> kColumnNotes[] = {
    {"seeds", "Rows are means over complete runs; losses are means over finished ones."},
    {"val", "Losses are in nats per token; val is the loss of the last validation."},
    {"train", "train is the mean over the last 5 % of the steps."},
    {"+-", "+- is half of a 95 % t-interval over seeds."},
    {"val vs", "\"vs\" is the difference from the baseline, paired by seed."},
    {"p (Holm)", "p (Holm) is the p value of this difference, corrected by Holm over the table."},
    {"spikes",
     "Spikes are steps far outside the range of the steps before them, counted after the first "
     "10 % of a run."},
    {"sd/median",
     "sd/median is the standard deviation of grad_norm divided by its median in the second half "
     "of a run, up to where the learning rate falls."},
    {"tokens to 2.5",
     "\"tokens to 2.5\" counts training tokens up to the first validation loss below 2.5."}};

std::string rate_text(double lr) { return number(lr, "{:.3g}", "-"); }

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

std::string columns_note(const system::Table& table) {
  std::vector<const char*> notes;
  for (const auto& [key, text] : kColumnNotes) {
    const auto begins = [&of = key](const system::Column& column) {
      return column.name.starts_with(of) || column.group.starts_with(of);
    };
    if (std::ranges::any_of(table.columns, begins)) notes.push_back(text);
  }
  return fmt::format("{}", fmt::join(notes, " "));
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
             : fmt::format(
                   "Differences and their p values exclude pairs in which a run diverged: {}.",
                   fmt::join(dropped, ", "));
}

system::Table lr_table(std::span<const LrCurve> curves) {
  system::Table table;
  constexpr std::pair<const char*, const char*> kHeads[] = {{"", "arm"},
                                                            {"", "parameters"},
                                                            {"", "lrs"},
                                                            {"", "seeds"},
                                                            {"", "diverged"},
                                                            {"lr*", "lr"},
                                                            {"lr*", "from"},
                                                            {"lr*", "to"},
                                                            {"lr*", "loss"},
                                                            {"gap at lr*", "mean"},
                                                            {"gap at lr*", "+-"},
                                                            {"gap at lr*", "seeds"},
                                                            {"lr sensitivity", "E"},
                                                            {"lr sensitivity", "from"},
                                                            {"lr sensitivity", "to"}};
  for (const auto& [group, head] : kHeads)
    table.columns.push_back({group, head, table.columns.empty()});
  const auto is_swept = [](const LrCurve& curve) { return curve.ladder.size() > 1; };
  const bool some_swept = std::ranges::any_of(curves, is_swept);
  for (const LrCurve& curve : curves) {
    const bool has_gap = some_swept && curve.gap.difference.pairs > 0;
    if (!is_swept(curve) && !has_gap) continue;
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
         difference.pairs == 0 ? "-"
                               : fmt::format("{}{}", difference.pairs,
                                             !is_swept(curve)   ? " at given rates"
                                             : !curve.gap.fresh ? " of the ladder"
                                                                : ""),
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

}  // namespace difftape::study
