#pragma once
// Attention maps of chosen heads, from metrics.h5.

#include <nlohmann/json.hpp>
#include <string>

#include "train/study/page/selection.h"

namespace difftape::study::page {

struct AttentionSection {
  std::string html;             ///< empty if no run stored maps
  nlohmann::ordered_json data;  ///< the values behind the pictures, for CSV: a list of heads
};

/// Of each arm, at the shown rate, the first seed that has maps: in its last layer the head that
/// attends to the first token most, and head 0. Of two maps also their difference. Many arms show
/// only the first of the two heads. A metrics.h5 that cannot be read is said, not thrown.
AttentionSection attention_section(const Input& input);

}  // namespace difftape::study::page
