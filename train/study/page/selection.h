#pragma once
// Which of many runs a picture shows that has room for one learning rate.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "train/study/compare/study.h"

namespace difftape::study::page {

/// What every section of the page is made of.
struct Input {
  const Study& study;
  const std::vector<LrCurve>& curves;  ///< one an arm, in its order
  double lr;                           ///< the rate that is shown at first
};

/// All peak rates of the study, ascending.
std::vector<double> rates(const Study& study);

/// The rate of the baseline's best_point; its first rate if no run of it finished. The study has a
/// run.
double best_rate(const Study& study, const std::vector<LrCurve>& curves);

/// The runs of an arm at a rate. An arm with a single rate stands for itself at every rate. Null if
/// the arm was not trained at that rate.
const Cell* shown_cell(const Arm& arm, double lr);

/// "3e-4".
std::string rate_name(double lr);

/// " at peak learning rate 3e-4"; empty if no arm has more than one rate.
std::string at_rate(const Input& input);

/// `data.best_loss` of env.json, in nats a token; NaN unless every run has the same one.
double best_loss(const Study& study);
/// `data.best_accuracy` of env.json, a share of scored targets; NaN as above.
double best_accuracy(const Study& study);

}  // namespace difftape::study::page
