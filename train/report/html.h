#pragma once
// Pieces of the page that are plain HTML, readable without JavaScript.

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/report/table.h"

namespace difftape {

/// Text as HTML text or as the value of a quoted attribute.
std::string escape_html(std::string_view text);

/// JSON that is safe inside a script element: `<` is written as \u003c, so no text in it can end
/// the element or open a comment.
std::string json_for_script(const nlohmann::ordered_json& json);

/// Replaces each `{{key}}` of the template by its value, once: values are not searched again.
/// A key that is unknown, or not used, is a programming error and throws std::logic_error.
std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values);

/// The comparison as a table element; the colour of each run is that of its curves.
std::string summary_table(const Table& table);

/// Keys with one value a run (empty: the run has none), in order.
using KeyValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
/// The keys that differ between the runs as a table, the keys that do not folded away below it.
std::string differences(const KeyValues& keys, std::span<const std::string> runs);

/// A command line as one types it into a shell.
std::string shell_command(std::span<const std::string> words);

}  // namespace difftape
