#include "train/study/compare/scale.h"

#include <cmath>
#include <vector>

#include "train/stats/descriptive.h"

namespace difftape::study {

double on_scale(double value, Scale scale) {
  switch (scale) {
    case Scale::difference:
      return value;
    case Scale::ratio:
      return std::log(value);
    case Scale::root:
      break;
  }
  return std::sqrt(value);
}

double from_scale(double value, Scale scale) {
  switch (scale) {
    case Scale::difference:
      return value;
    case Scale::ratio:
      return std::exp(value);
    case Scale::root:
      break;
  }
  return value * value;
}

double mean_from_scale(std::span<const double> values, Scale scale) {
  if (scale != Scale::root) return from_scale(stats::mean(values), scale);
  std::vector<double> counts;
  for (const double value : values) counts.push_back(from_scale(value, scale));
  return stats::mean(counts);
}

const char* what_differs(Scale scale) {
  switch (scale) {
    case Scale::difference:
      return "difference";
    case Scale::ratio:
      return "ratio";
    case Scale::root:
      break;
  }
  return "difference of square roots";
}

}  // namespace difftape::study
