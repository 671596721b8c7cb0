#include "train/study/page/selection.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "train/study/figures/axis.h"

namespace difftape::study::page {

std::vector<double> rates(const Study& study) {
  std::set<double> rates;
  for (const Arm& arm : study.arms) {
    for (const Cell& cell : arm.cells) rates.insert(cell.lr);
  }
  return {rates.begin(), rates.end()};
}

double best_rate(const Study& study, const std::vector<LrCurve>& curves) {
  const LrPoint* best = best_point(curves[study.baseline].points);
  return best ? best->lr : study.arms[study.baseline].cells.front().lr;
}

const Cell* shown_cell(const Arm& arm, double lr) {
  if (arm.cells.size() == 1) return &arm.cells.front();
  const auto found = std::find_if(arm.cells.begin(), arm.cells.end(),
                                  [lr](const Cell& cell) { return cell.lr == lr; });
  return found == arm.cells.end() ? nullptr : &*found;
}

std::string rate_name(double lr) { return svg::short_number(lr); }

std::string at_rate(const Input& input) {
  const auto& arms = input.study.arms;
  const bool swept =
      std::any_of(arms.begin(), arms.end(), [](auto& a) { return a.cells.size() > 1; });
  return swept ? " at peak learning rate " + rate_name(input.lr) : "";
}

namespace {

/// A number of "data" in env.json; NaN unless every run has the same one.
double shared_number(const Study& study, const char* key) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  double best = kNone;
  for (const Arm& arm : study.arms) {
    for (const Cell& cell : arm.cells) {
      for (const RunRecord* run : cell.runs) {
        const auto data = run->env.find("data");
        if (data == run->env.end() || !data->is_object()) return kNone;
        const auto value = data->find(key);
        if (value == data->end() || !value->is_number()) return kNone;
        const double number = value->get<double>();
        if (!std::isfinite(number) || (!std::isnan(best) && number != best)) return kNone;
        best = number;
      }
    }
  }
  return best;
}

}  // namespace

double best_loss(const Study& study) { return shared_number(study, "best_loss"); }
double best_accuracy(const Study& study) { return shared_number(study, "best_accuracy"); }

}  // namespace difftape::study::page
