#pragma once
// The curves of the page: as data for its script, and as pictures for paper and for readers
// without JavaScript.

#include <nlohmann/json.hpp>
#include <string>

#include "train/study/page/selection.h"

namespace difftape::study::page {

/// {"rates", "rate", "best_loss", "best_accuracy", "arms", "cells", "charts"}: everything
/// page/js/data.js reads.
nlohmann::ordered_json curve_data(const Input& input);

/// The same curves at one learning rate as figures of SVG.
std::string curve_figures(const Input& input);

}  // namespace difftape::study::page
