#include "train/study/compare/lr_curves.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/real.h"
#include "train/stats/descriptive.h"
#include "train/system/files.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::study {

namespace {

constexpr std::uint64_t kSeed = 1;
/// Tolerance for runs at lr*, which is written with three digits.
constexpr double kNearOptimum = 6e-3;

/// Returns the point of the runs of some ascending seeds; empty: of all runs.
LrPoint point_of(const Condition& condition, const std::vector<std::uint64_t>& seeds = {}) {
  LrPoint point{.lr = condition.lr, .loss = {}, .runs = 0, .diverged = 0, .values = {}};
  for (const Row* run : condition.complete()) {
    if (!seeds.empty() && !std::ranges::binary_search(seeds, run->seed)) continue;
    point.runs += 1;
    point.diverged += run->diverged() ? 1 : 0;
    const double loss = run->number("final_loss");
    if (!std::isfinite(loss)) continue;  // it finished without a validation loss
    point.values.push_back(loss);
    point.seeds.push_back(run->seed);
    point.of.push_back(run);
  }
  point.loss = stats::mean_interval(point.values);
  return point;
}

/// Fills the seeds and rungs of the ladder. Candidates are the sets of learning rates at which some
/// seed ran, each with all seeds that ran at all of them; the one with the most runs wins. So an
/// extension of some seeds does not cut the ladder. Sets of fewer than three rates, too few for a
/// parabola, count only if no seed has more; then the largest wins.
void add_ladder(LrCurve& curve, const Arm& arm) {
  std::map<std::uint64_t, std::set<double>> rates;
  for (const LrPoint& point : curve.points) {
    for (const std::uint64_t seed : point.seeds) rates[seed].insert(point.lr);
  }
  std::tuple<bool, std::size_t, std::size_t> most;
  std::set<double> rungs;
  for (const auto& [seed, candidate] : rates) {
    std::vector<std::uint64_t> members;
    for (const auto& [other, of_other] : rates) {
      if (std::ranges::includes(of_other, candidate)) members.push_back(other);
    }
    const bool is_enough = candidate.size() >= 3;
    const std::tuple size(is_enough, candidate.size() * (is_enough ? members.size() : 1),
                          is_enough ? candidate.size() : members.size());
    if (size <= most) continue;
    most = size;
    rungs = candidate;
    curve.seeds = members;
  }
  for (const double lr : rungs) curve.ladder.push_back(point_of(*arm.at(lr), curve.seeds));
}

void add_optimum(LrCurve& curve) {
  std::vector<double> rates;
  stats::Groups losses;
  int finished = 0;
  for (const LrPoint& rung : curve.ladder) {
    rates.push_back(rung.lr);
    losses.push_back(rung.values);
    finished += rung.runs - rung.diverged;
  }
  curve.optimum = stats::lr_optimum(rates, losses, RandomStream(kSeed, "lr_optimum/" + curve.arm));
  curve.sensitivity_limits = {kNaN, kNaN};
  if (finished == 0) return;
  curve.sensitivity.mean = stats::lr_sensitivity(losses);
  if (std::isnan(curve.sensitivity.mean)) return;
  const stats::Limits limits = stats::bootstrap_limits(
      losses, stats::lr_sensitivity, RandomStream(kSeed, "bootstrap/" + curve.arm));
  curve.sensitivity_limits = limits;
  curve.sensitivity.half_width = (limits.high - limits.low) / 2;
}

/// Returns the runs at lr* whose seeds did not choose it.
std::vector<const Row*> fresh_runs(const LrCurve& curve) {
  std::vector<const Row*> fresh;
  for (const LrPoint& point : curve.points) {
    if (!(std::abs(point.lr / curve.optimum.lr - 1) <= kNearOptimum)) continue;
    for (const Row* run : point.of)
      if (!std::ranges::binary_search(curve.seeds, run->seed)) fresh.push_back(run);
  }
  return fresh;
}

/// Returns the runs at the rate of the lowest mean loss.
OwnRuns chosen_runs(const LrCurve& curve) {
  const std::vector<LrPoint>& rungs = curve.ladder.size() > 1 ? curve.ladder : curve.points;
  const LrPoint* best = best_point(rungs);
  if (best == nullptr) return {};
  return {best->lr, best->of, rungs.size()};
}

OwnRuns own_runs(const LrCurve& curve) {
  if (curve.points.size() == 1) return {curve.points[0].lr, curve.points[0].of};
  std::vector<const Row*> fresh = fresh_runs(curve);
  if (!fresh.empty()) return {fresh.front()->lr, std::move(fresh)};
  return chosen_runs(curve);
}

LrGap gap_of(const LrCurve& curve, const LrCurve& baseline) {
  const Quantity& loss = quantity("final_loss");
  LrGap gap{paired(loss, curve.own.runs, baseline.own.runs), true};
  gap.of_own_runs = gap.difference.pairs > 0;
  if (!gap.of_own_runs)
    gap.difference = paired(loss, chosen_runs(curve).runs, chosen_runs(baseline).runs);
  else if (curve.own.chosen_from == 1 && baseline.own.chosen_from == 1)
    return gap;
  gap.fresh = false;
  return gap;
}

LrCurve curve_of(const Study& study, const Arm& arm) {
  const Row& first = *arm.conditions.front().runs.front();
  LrCurve curve{
      .arm = arm.name,
      .points = lr_points(arm),
      .task = study.task,
      .d_model = first.value("model.d_model"),
      .parameters = first.status.parameters,
      .unit = run::loss_unit(first.reads_text() ? run::DataKind::text : run::DataKind::tokens)};
  add_ladder(curve, arm);
  add_optimum(curve);
  curve.own = own_runs(curve);
  return curve;
}

void add_gaps(const Study& study, std::vector<LrCurve>& curves) {
  const Arm* base = study.reference();
  if (base == nullptr) return;
  const auto of_base = static_cast<std::size_t>(base - study.arms.data());
  for (std::size_t i = 0; i < curves.size(); ++i) {
    curves[i].is_baseline = of_base == i;
    if (of_base != i) curves[i].gap = gap_of(curves[i], curves[of_base]);
  }
}

}  // namespace

stats::PairedDifference paired(const Quantity& metric, std::span<const Row* const> arm,
                               std::span<const Row* const> reference) {
  std::vector<double> a, b;
  for (const Row* run : arm) {
    const auto other = std::ranges::find(reference, run->seed, &Row::seed);
    if (other == reference.end()) continue;
    const double mine = on_scale(run->number(metric), metric.scale),
                 theirs = on_scale((*other)->number(metric), metric.scale);
    if (std::isnan(mine - theirs)) continue;
    a.push_back(mine);
    b.push_back(theirs);
  }
  return stats::paired_difference(a, b);
}

std::vector<LrPoint> lr_points(const Arm& arm) {
  std::vector<LrPoint> points;
  for (const Condition& condition : arm.conditions) {
    LrPoint point = point_of(condition);
    if (point.runs > 0) points.push_back(std::move(point));
  }
  return points;
}

const LrPoint* best_point(std::span<const LrPoint> points) {
  const auto rank = [](const LrPoint& point) {
    return std::pair(static_cast<double>(point.diverged) / point.runs, point.loss.mean);
  };
  const LrPoint* best = nullptr;
  for (const LrPoint& point : points) {
    if (point.runs == point.diverged || std::isnan(point.loss.mean)) continue;
    if (best == nullptr || rank(point) < rank(*best)) best = &point;
  }
  return best;
}

std::vector<LrCurve> lr_curves(const Study& study) {
  std::vector<LrCurve> curves =
      mapped(study.arms, [&](const Arm& arm) { return curve_of(study, arm); });
  add_gaps(study, curves);
  return curves;
}

std::vector<LrCurve> lr_curves(std::span<const Study> studies) {
  std::vector<LrCurve> all;
  for (const Study& study : studies) std::ranges::move(lr_curves(study), std::back_inserter(all));
  return all;
}

namespace {

constexpr std::array kColumns{"arm",  "model.d_model", "parameters", "lr_star", "low",
                              "high", "loss",          "seeds",      "reason"};

std::string digits(double value) { return system::number(value, "{:.3g}", ""); }

const LrCurve* double_of(std::span<const LrCurve> curves, const LrCurve& curve) {
  for (const LrCurve& other : curves) {
    if (&other != &curve && other.ladder.size() > 1 && other.arm == curve.arm &&
        other.d_model == curve.d_model)
      return &other;
  }
  return nullptr;
}

template <class T>
T number_of(const std::string& text, const std::string& where) {
  const auto value = system::read_number<T>(text);
  if (value && *value > T{0}) return *value;
  throw DataError(fmt::format(
      "{} is \"{}\", but must be a number above 0; rewrite the file with difftape report", where,
      text));
}

OwnRate rate_of(const std::vector<std::string>& fields, const std::string& line) {
  OwnRate rate{fields[0], fields[1], kNaN, {}, fields[8]};
  if (rate.reason.empty()) rate.lr = number_of<double>(fields[3], line + ": lr_star");
  std::istringstream seeds(fields[7]);
  for (std::string seed; std::getline(seeds, seed, ' ');)
    rate.seeds.push_back(seed == "0" ? 0 : number_of<std::uint64_t>(seed, line + ": a seed"));
  return rate;
}

auto found_rate(const std::vector<OwnRate>& rates, std::string_view arm, std::string_view d_model) {
  return std::ranges::find_if(
      rates, [&](const OwnRate& rate) { return rate.arm == arm && rate.d_model == d_model; });
}

}  // namespace

std::string lr_optima_csv(std::span<const LrCurve> curves) {
  std::string csv = fmt::format("{}\n", fmt::join(kColumns, ","));
  for (const LrCurve& curve : curves) {
    if (curve.ladder.size() < 2) continue;
    const LrCurve* other = double_of(curves, curve);
    const std::string reason =
        other == nullptr ? curve.optimum.reason
                         : fmt::format(
                               "the runs have two ladders of this arm and size, {} and {}; "
                               "report them separately",
                               curve.task, other->task);
    const stats::LrOptimum found = reason.empty() ? curve.optimum : stats::LrOptimum{};
    csv += system::csv_line(std::vector<std::string>{
        curve.arm, curve.d_model, fmt::to_string(curve.parameters), digits(found.lr),
        digits(found.low), digits(found.high), system::number(found.loss, "{:.4f}", ""),
        fmt::format("{}", fmt::join(curve.seeds, " ")), reason});
  }
  return csv;
}

bool OwnRates::has(std::string_view arm, std::string_view d_model) const {
  return found_rate(rates, arm, d_model) != rates.end();
}

const OwnRate& OwnRates::of(std::string_view arm, std::string_view d_model) const {
  const auto found = found_rate(rates, arm, d_model);
  if (found != rates.end() && found->reason.empty()) return *found;
  if (found != rates.end())
    throw DataError(
        fmt::format("{}: arm {} at model.d_model {} has no learning rate of its own: {}",
                    file.string(), arm, d_model, found->reason));
  throw DataError(
      fmt::format("{}: has no learning rate of arm {} at model.d_model {}; run its ladder and "
                  "rewrite the file with difftape report",
                  file.string(), arm, d_model));
}

OwnRates read_own_rates(const std::filesystem::path& file) {
  const auto lines = system::read_csv(system::read_text(file));
  if (lines.empty() || !std::ranges::equal(lines.front(), kColumns)) {
    throw DataError(fmt::format(
        "{}: is not an lr_optimum.csv, whose first line must be {}; write one with difftape report",
        file.string(), fmt::join(kColumns, ",")));
  }
  OwnRates own{file, {}};
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::string line = fmt::format("{}:{}", file.string(), i + 1);
    if (lines[i].size() != kColumns.size()) {
      throw DataError(
          fmt::format("{}: has {} fields, but must have {}; rewrite the file with difftape "
                      "report",
                      line, lines[i].size(), kColumns.size()));
    }
    const OwnRate rate = rate_of(lines[i], line);
    const bool twice = std::ranges::any_of(own.rates, [&](const OwnRate& other) {
      return other.arm == rate.arm && other.d_model == rate.d_model;
    });
    if (twice) {
      throw DataError(
          fmt::format("{}: has two lines for arm {} at model.d_model {}; keep one of them", line,
                      rate.arm, rate.d_model));
    }
    own.rates.push_back(rate);
  }
  return own;
}

}  // namespace difftape::study
