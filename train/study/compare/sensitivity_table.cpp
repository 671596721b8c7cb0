#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/curves.h"
#include "train/study/compare/tables.h"

namespace difftape::study {

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
    if (curve.points.size() < 2) continue;
    const LrPoint* point = best_point(curve.points);
    const bool trained = point != nullptr && point->failed == 0;
    int runs = 0, diverged = 0;
    for (const LrPoint& each : curve.points) runs += each.runs, diverged += each.diverged;
    std::vector<std::string> row{curve.arm, fmt::to_string(curve.points.size()),
                                 fmt::format("{} of {}", diverged, runs)};
    for (const double value :
         {curve.sensitivity.mean, curve.sensitivity_limits.low, curve.sensitivity_limits.high}) {
      row.push_back(written(value, Format::loss));
    }
    row.push_back(trained ? fmt::format("{:g}", point->lr) : "-");
    row.push_back(trained ? written(point->loss.mean, Format::loss) : "-");
    row.push_back(trained ? written(point->loss.half_width, Format::loss) : "-");
    table.rows.push_back(std::move(row));
  }
  return table;
}

}  // namespace difftape::study
