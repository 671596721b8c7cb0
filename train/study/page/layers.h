#pragma once
// What happened inside the model: metrics of each layer over the steps, and accuracy over the
// difficulty of a task, as heat maps.

#include <string>

#include "train/study/page/selection.h"

namespace difftape::study::page {

/// One figure a metric, one heat map an arm in it: context RMS, lambda, sink rate, outliers, of the
/// first complete run at the shown rate. Empty if no run logged any of them.
std::string layer_figures(const Input& input);

/// `task/accuracy/<row>/<column>` at the last validation, the mean over complete runs, one heat map
/// an arm. Empty if no run logged it.
std::string accuracy_figure(const Input& input);

}  // namespace difftape::study::page
