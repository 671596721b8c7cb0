#pragma once
// The page, section by section.

#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "train/study/compare/study.h"

namespace difftape::study::page {

struct Sections {
  std::string navigation;       ///< links to the sections that there are
  std::string html;             ///< the sections
  std::string subtitle;         ///< what was run, in a sentence
  nlohmann::ordered_json data;  ///< what the script of the page reads
};

/// Everything that can be shown of a study with at least one run; what was not logged is left out.
/// `notes` stand at the top.
Sections sections(const Study& study, std::span<const std::string> notes = {});

}  // namespace difftape::study::page
