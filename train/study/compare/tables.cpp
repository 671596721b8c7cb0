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
std::vector<const Row*> compared_runs(const Study& study) {
  std::vector<const Row*> compared;
  const Arm* base = study.reference();
  for (const Arm& arm : study.arms) {
    for (const Row* run : arm.runs()) {
      const Row*& best = compared.emplace_back(nullptr);
      if (base == nullptr || base == &arm) continue;
      for (const Row* other : base->runs()) {
        if (other->seed == run->seed && (best == nullptr || other->lr == run->lr)) best = other;
      }
    }
  }
  return compared;
}

Columns run_columns(const Quantity& quantity, const Study& study) {
  const auto& [group, head, format, tables, against_baseline] = quantity.column;
  Columns columns{{{group, head}}, {}};
  if (against_baseline) columns.heads.push_back({group, versus(quantity, study.baseline)});
  const std::vector<const Row*> runs = study.runs(), compared = compared_runs(study);
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

double mean_of(std::span<const Row* const> runs, const Quantity& quantity) {
  std::vector<double> values;
  for (const Row* run : runs)
    if (!std::isnan(run->number(quantity))) values.push_back(run->number(quantity));
  return stats::mean(values);
}

/// Returns the loss at each arm's own rate and the difference to the baseline.
Columns loss_columns(const Study& study, std::span<const LrCurve> curves) {
  const std::string against = "final loss vs " + study.baseline;
  Columns columns{{{"final loss", "mean"}, {"final loss", "+-"}}, {}};
  for (const char* head : {"difference", "low", "high", "pairs"})
    columns.heads.push_back({against, head});
  for (const LrCurve& curve : curves) {
    const auto losses = mapped(curve.own.runs, [](auto* run) { return run->number("final_loss"); });
    const stats::Interval loss = stats::mean_interval(losses);
    const stats::PairedDifference of_row =
        curve.gap.of_own_runs ? curve.gap.difference : stats::PairedDifference{};
    const auto& [difference, p, pairs, error, degrees] = of_row;
    const auto signed_loss = [](double value) { return number(value, "{:+.4f}", "-"); };
    columns.cells.push_back({written(loss.mean, Format::loss),
                             written(loss.half_width, Format::loss), signed_loss(difference.mean),
                             signed_loss(difference.low()), signed_loss(difference.high()),
                             pairs == 0 ? "-" : fmt::to_string(pairs)});
  }
  return columns;
}

/// Notes on the columns whose name or group begins with the key.
constexpr std::pair<std::string_view, const char*> kColumnNotes[] = {
    {"seeds",
     "Each row is an arm at one learning rate; numbers are means over its complete runs there."},
    {"chosen from",
     "\"chosen from\": lr is the best of so many rates by the loss of these runs. Intervals do not "
     "cover this choice."},
    {"val", "Losses are in nats per token; val is the loss of the last validation."},
    {"final loss",
     "Final losses are in nats per token, at the last validation; a diverged run counts with "
     "ln(vocab_size)."},
    {"train", "train is the mean over the last 5 % of the steps."},
    {"+-", "+- is half of a 95 % t-interval over seeds."},
    {"val vs", "\"val vs\" is the difference from the baseline, paired by seed."},
    {"final loss vs",
     "\"vs\" is the difference from the baseline, each at its own rate, paired by seed; low and "
     "high are its 95 % interval."},
    {"spikes",
     "Spikes are steps far outside the range of the steps before them, counted after the first "
     "10 % of a run."},
    {"sd/median",
     "sd/median is the standard deviation of grad_norm divided by its median in the second half "
     "of a run, up to where the learning rate falls."}};

constexpr const char* kSingleRunsNote =
    "Each row is one run. One seed has no interval and decides nothing, however large the "
    "difference.";

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
  for (const Row* run : study.runs()) {
    table.rows.push_back({run->name, system::grouped(run->status.parameters)});
    states.cells.push_back({describe_state(run->status)});
  }
  for (const Quantity& quantity : quantities()) {
    if (quantity.column.tables & kRunTable) append(table, run_columns(quantity, study));
  }
  append(table, states);
  return table;
}

system::Table arm_table(const Study& study, std::span<const LrCurve> curves) {
  system::Table table{{{"", "arm", true}, {"", "parameters"}, {"", "lr"}}, {}};
  Columns chosen{{{"", "chosen from"}}, {}}, seeds{{{"", "seeds"}}, {}},
      states{{{"", "state", true}}, {}};
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const OwnRuns& own = curves[i].own;
    table.rows.push_back({curves[i].arm, system::grouped(curves[i].parameters), rate_text(own.lr)});
    chosen.cells.push_back({own.chosen_from > 1 ? fmt::to_string(own.chosen_from) : "-"});
    seeds.cells.push_back({fmt::to_string(own.runs.size())});
    states.cells.push_back({describe_states(study.arms[i].runs())});
  }
  append(table, chosen);
  append(table, seeds);
  append(table, loss_columns(study, curves));
  for (const Quantity& quantity : quantities()) {
    const auto& [group, head, format, tables, against_baseline] = quantity.column;
    if (!(tables & kStudyTable)) continue;
    Columns columns{{{group, head}}, {}};
    for (const LrCurve& curve : curves)
      columns.cells.push_back({written(mean_of(curve.own.runs, quantity), format)});
    append(table, columns);
  }
  append(table, states);
  return table;
}

std::string columns_note(const Study& study, const system::Table& table) {
  std::vector<const char*> notes;
  for (const auto& [key, text] : kColumnNotes) {
    const auto begins = [&of = key](const system::Column& column) {
      return column.name.starts_with(of) || column.group.starts_with(of);
    };
    if (std::ranges::any_of(table.columns, begins)) notes.push_back(text);
  }
  return with_loss_unit(study, fmt::format("{}", fmt::join(notes, " ")));
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
                                                            {"lr sensitivity", "E"},
                                                            {"lr sensitivity", "from"},
                                                            {"lr sensitivity", "to"}};
  for (const auto& [group, head] : kHeads)
    table.columns.push_back({group, head, table.columns.empty()});
  for (const LrCurve& curve : curves) {
    if (curve.ladder.size() < 2) continue;
    int runs = 0, diverged = 0;
    for (const LrPoint& each : curve.ladder) runs += each.runs, diverged += each.diverged;
    const stats::LrOptimum& found = curve.optimum;
    table.rows.push_back(
        {curve.arm, system::grouped(curve.parameters), fmt::to_string(curve.ladder.size()),
         fmt::to_string(curve.seeds.size()), fmt::format("{} of {}", diverged, runs),
         rate_text(found.lr), rate_text(found.low), rate_text(found.high),
         written(found.loss, Format::loss), written(curve.sensitivity.mean, Format::loss),
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

std::string lr_note(const Study& study) {
  return with_loss_unit(
      study,
      "lr*: vertex of a parabola in log lr through the lowest mean loss over the seeds and its two "
      "neighbors. lr sensitivity E: mean over the learning rates of [final loss - the lowest], in "
      "nats per token. From, to: 95 % limits, bootstrap over seeds.");
}

std::string with_loss_unit(const Study& study, std::string text) {
  if (!std::ranges::all_of(study.runs(), &Row::reads_text)) return text;
  const std::string tokens(run::loss_unit(run::DataKind::tokens)),
      bytes(run::loss_unit(run::DataKind::text));
  for (std::size_t at = 0; (at = text.find(tokens, at)) != text.npos;)
    text.replace(at, tokens.size(), bytes);
  return text;
}

namespace {

std::string paragraphs(const std::string& lines, std::size_t width) {
  std::string text;
  for (std::size_t begin = 0, end; begin < lines.size(); begin = end + 1) {
    end = std::min(lines.find('\n', begin), lines.size());
    text += system::wrapped(lines.substr(begin, end - begin), width, "");
  }
  return text;
}

/// Returns the tables of one task.
std::string task_text(const Study& study, std::size_t width) {
  const std::vector<LrCurve> curves = lr_curves(study);
  const bool single_runs = study.runs().size() == study.arms.size();
  const system::Table table = single_runs ? run_table(study) : arm_table(study, curves);
  std::string text = (single_runs ? to_text(table) : to_text(table, width, 2)) +
                     paragraphs(columns_note(study, table), width);
  if (single_runs) return text + paragraphs(study.arms.size() > 1 ? kSingleRunsNote : "", width);
  const system::Table rates = lr_table(curves);
  if (rates.rows.empty()) return text;
  text += '\n' + to_text(rates, width, 1) + paragraphs(lr_note(study), width);
  for (const std::string& refusal : lr_refusals(curves)) text += paragraphs(refusal, width);
  return text;
}

}  // namespace

std::string tables_text(std::span<const Study> studies, std::size_t width) {
  if (studies.size() == 1) return task_text(studies[0], width);
  std::string text;
  for (const Study& study : studies)
    text += fmt::format("{}{}:\n{}", text.empty() ? "" : "\n", study.task, task_text(study, width));
  return text;
}

}  // namespace difftape::study
