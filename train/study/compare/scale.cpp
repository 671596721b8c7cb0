#include "train/study/compare/scale.h"

#include <cmath>

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
