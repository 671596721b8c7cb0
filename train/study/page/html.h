#pragma once
// Text that is safe inside a page, and a page from its template.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "train/study/figures/drawing.h"  // escape_html

namespace difftape::study {

/// JSON that is safe inside a script element: `<` is written as \u003c, so no text in it can end
/// the element or open a comment.
std::string json_for_script(const nlohmann::ordered_json& json);

/// Replaces each `{{key}}` of the template by its value, once: values are not searched again.
/// A key that is unknown, or not used, is a programming error and throws std::logic_error.
std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values);

/// A command line as one types it into a shell.
std::string shell_command(std::span<const std::string> words);

}  // namespace difftape::study
