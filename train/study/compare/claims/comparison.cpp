#include "train/study/compare/claims/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "train/stats/descriptive.h"

namespace difftape::study {

namespace {

using Seeds = std::set<std::uint64_t>;
/// Two cells that are compared: at one rate, or each arm's best.
using CellPair = std::pair<const Cell*, const Cell*>;

/// The complete run of a seed, or nullptr.
const RunRecord* run_of(const Cell& cell, std::uint64_t seed) {
  for (const RunRecord* run : cell.runs) {
    if (run->seed == seed && run->complete()) return run;
  }
  return nullptr;
}

Seeds seeds_of(const Arm& arm) {
  Seeds seeds;
  for (const Cell& cell : arm.cells) {
    for (const RunRecord* run : cell.runs) {
      if (run->complete()) seeds.insert(run->seed);
    }
  }
  return seeds;
}

Seeds shared_seeds(const Arm& a, const Arm& b) {
  const Seeds of_a = seeds_of(a), of_b = seeds_of(b);
  Seeds shared;
  std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                        std::inserter(shared, shared.end()));
  return shared;
}

const Cell* cell_at(const Arm& arm, double lr) {
  const auto found = std::find_if(arm.cells.begin(), arm.cells.end(),
                                  [&](const Cell& cell) { return cell.lr == lr; });
  return found == arm.cells.end() ? nullptr : &*found;
}

/// The best rate of an arm, NaN if none trained.
double best_rate(const Arm& arm) {
  const std::vector<LrPoint> points = lr_points(arm);
  const LrPoint* best = best_point(points);
  return best == nullptr ? std::numeric_limits<double>::quiet_NaN() : best->lr;
}

std::vector<CellPair> cells_of(const Arm& arm, const Arm& against, Rates rates) {
  const double best = best_rate(against);
  if (rates == Rates::best) {
    const Cell *a = cell_at(arm, best_rate(arm)), *b = cell_at(against, best);
    if (a == nullptr || b == nullptr) return {};
    return {{a, b}};
  }
  std::vector<CellPair> cells;
  for (const Cell& cell : arm.cells) {
    const Cell* other = cell_at(against, cell.lr);
    // A best rate that is not known bounds nothing from below: all are compared.
    if (other == nullptr || (rates == Rates::large && cell.lr < best)) continue;
    cells.emplace_back(&cell, other);
  }
  return cells;
}

using Holds = std::function<bool(const RunRecord&)>;

/// The pairs of cells in which every seed has two complete runs of which `holds` is true.
std::vector<CellPair> usable(const std::vector<CellPair>& cells, const Seeds& seeds,
                             const Holds& holds) {
  std::vector<CellPair> result;
  for (const CellPair& pair : cells) {
    const bool all = std::all_of(seeds.begin(), seeds.end(), [&](std::uint64_t seed) {
      const RunRecord *a = run_of(*pair.first, seed), *b = run_of(*pair.second, seed);
      return a != nullptr && b != nullptr && holds(*a) && holds(*b);
    });
    if (all) result.push_back(pair);
  }
  return result;
}

/// The quantity of one seed: over its runs at all these cells.
double value_of(const std::vector<const RunRecord*>& runs, const Quantity& quantity) {
  if (quantity.of_ladder != nullptr) return quantity.of_ladder(runs);
  double sum = 0;
  for (const RunRecord* run : runs) {
    const double value = quantity.of_run(*run);
    sum += quantity.ratio ? std::log(value) : value;
  }
  return sum / static_cast<double>(runs.size());
}

std::string describe_rates(const std::vector<CellPair>& used, std::size_t all, Rates rates) {
  const auto& [first, second] = used.front();
  if (rates == Rates::best && first->lr != second->lr) {
    return fmt::format("at {:g} and {:g}", first->lr, second->lr);
  }
  if (all == 1) return fmt::format("at {:g}", first->lr);
  return fmt::format("at {} of {} rates", used.size(), all);
}

std::string describe_diverged(const std::vector<CellPair>& cells, const Arm& arm,
                              const Arm& against) {
  int diverged[2] = {0, 0}, runs[2] = {0, 0};
  for (const CellPair& pair : cells) {
    for (const int side : {0, 1}) {
      for (const RunRecord* run : (side == 0 ? pair.first : pair.second)->runs) {
        runs[side] += run->complete() ? 1 : 0;
        diverged[side] += run->summary.status.state == run::RunState::diverged ? 1 : 0;
      }
    }
  }
  if (diverged[0] + diverged[1] == 0) return "";
  return fmt::format("; diverged: {} {} of {}, {} {} of {}", arm.name, diverged[0], runs[0],
                     against.name, diverged[1], runs[1]);
}

/// Whether the arm has complete runs and none of them finished.
bool all_diverged(const Arm& arm) {
  int complete = 0, finished = 0;
  for (const Cell& cell : arm.cells) {
    for (const RunRecord* run : cell.runs) {
      complete += run->complete() ? 1 : 0;
      finished += run->summary.status.state == run::RunState::finished ? 1 : 0;
    }
  }
  return complete > 0 && finished == 0;
}

/// Why nothing can be compared although both arms are there; empty if it can.
std::string obstacle(const Arm& arm, const Arm& against, const Quantity& quantity,
                     const std::vector<CellPair>& cells, const Seeds& seeds) {
  std::vector<std::string> silent;
  for (const Arm* each : {&arm, &against}) {
    const bool logged = std::any_of(each->cells.begin(), each->cells.end(), [&](const Cell& cell) {
      return std::any_of(cell.runs.begin(), cell.runs.end(), [&](const RunRecord* run) {
        return logged_metric(*run, quantity.metric);
      });
    });
    if (!logged && !(quantity.divergence_counts && all_diverged(*each)))
      silent.push_back(each->name);
  }
  if (silent.size() == 2) return fmt::format("no run logged {}", quantity.metric);
  if (silent.size() == 1)
    return fmt::format("no run of {} logged {}", silent.front(), quantity.metric);
  for (const Arm* each : {&arm, &against}) {
    if (seeds_of(*each).empty()) return fmt::format("no run of {} has ended", each->name);
    if (quantity.rates == Rates::best && std::isnan(best_rate(*each)))
      return fmt::format("all runs of {} diverged", each->name);
  }
  if (seeds.empty()) return fmt::format("{} and {} have no seed in common", arm.name, against.name);
  if (cells.empty()) {
    return fmt::format("{} and {} share no {}rate", arm.name, against.name,
                       quantity.rates == Rates::large ? "large " : "");
  }
  return "";
}

}  // namespace

Comparison compare_arms(const Arm& arm, const Arm& against, const Quantity& quantity) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  Comparison result{{}, kNaN, kNaN, kNaN, "", "", ""};
  const Seeds seeds = shared_seeds(arm, against);
  const std::vector<CellPair> cells = cells_of(arm, against, quantity.rates);
  result.reason = obstacle(arm, against, quantity, cells, seeds);
  if (!result.reason.empty()) return result;
  result.diverged = describe_diverged(cells, arm, against);
  const std::vector<CellPair> used = usable(cells, seeds, [&](const RunRecord& run) {
    if (quantity.of_run == nullptr) return true;
    const double value = quantity.of_run(run);
    return std::isfinite(quantity.ratio ? std::log(value) : value);
  });
  if (quantity.of_ladder != nullptr && used.size() < 2) {
    result.reason = fmt::format("{} needs two rates at which all runs ended", quantity.name);
    return result;
  }
  if (used.empty()) {
    result.reason = fmt::format("at no rate has every run a number{}", result.diverged);
    return result;
  }
  result.rates = describe_rates(used, cells.size(), quantity.rates);
  std::vector<double> a, b;
  for (const std::uint64_t seed : seeds) {
    std::vector<const RunRecord*> of_a, of_b;
    for (const auto& [first, second] : used) {
      of_a.push_back(run_of(*first, seed));
      of_b.push_back(run_of(*second, seed));
    }
    const double value_a = value_of(of_a, quantity), value_b = value_of(of_b, quantity);
    if (!std::isfinite(value_a) || !std::isfinite(value_b)) continue;  // all rates diverged
    a.push_back(value_a);
    b.push_back(value_b);
  }
  if (a.empty()) {
    result.reason = fmt::format("all runs diverged{}", result.diverged);
    return result;
  }
  result.paired = stats::paired_difference(a, b);
  result.arm = quantity.ratio ? std::exp(stats::mean(a)) : stats::mean(a);
  result.against = quantity.ratio ? std::exp(stats::mean(b)) : stats::mean(b);
  result.noise_floor = stats::pooled_std(stats::Groups{b});
  return result;
}

}  // namespace difftape::study
