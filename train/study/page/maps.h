#pragma once
// Heat maps as a figure of the page: one a panel, all on one scale, with their numbers as CSV.

#include <string>
#include <vector>

#include "train/study/figures/plots.h"

namespace difftape::study::page {

struct Panel {
  std::string arm;
  svg::HeatMap map;
};

/// Over the numbers of all panels.
svg::Scale scale_of(const std::vector<Panel>& panels);

/// Numbers by size, other names after them.
void sort_names(std::vector<std::string>& names);

/// At least one panel; a panel of one number is a line of text. `file` is the name of the CSV.
std::string map_figure(const std::string& title, const std::string& meaning,
                       const std::string& file, std::vector<Panel> panels, const svg::Scale& scale);

}  // namespace difftape::study::page
