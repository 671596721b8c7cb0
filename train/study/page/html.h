#pragma once
// Text that is safe inside a page, tables and links of the page, a page from its template, and the
// files that it is made of, compiled into the program: a report needs nothing but the run
// directories.

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/study/figures/drawing.h"
#include "train/system/text_table.h"

namespace difftape::study::page {

/// JSON that is safe inside a script element: `<` is written as \u003c, so no text in it can end
/// the element or open a comment.
std::string json_for_script(const nlohmann::ordered_json& json);

/// Replaces each `{{key}}` of the template by its value, once: values are not searched again.
/// A key that is unknown, or not used, is a programming error and throws std::logic_error.
std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values);

/// What stands within the frame that all pages share.
struct Framed {
  std::string title, answer = {}, subtitle = {};  ///< texts
  std::string navigation = {}, sections = {};     ///< HTML
  nlohmann::ordered_json data = {};               ///< what the script of the page reads
  std::vector<std::string_view> libraries = {};   ///< scripts that it needs
  int refresh_seconds = 0;                        ///< until it loads itself again; 0: never
};
/// Writes a page that holds all it needs. Throws OutputError.
void write_page(const std::filesystem::path& path, const Framed& page);

/// A command line as one types it into a shell.
std::string shell_command(std::span<const std::string> words);

/// Text as a part of an address, where `/` keeps its meaning.
std::string uri_text(std::string_view text);

/// A link that saves `csv` as `name`; the data are in the link.
std::string csv_link(std::string_view name, std::string_view csv);

/// The coloured square of an arm, as in its curves.
std::string swatch(std::size_t arm);

/// The head of a table, with a line of group labels if there are any.
std::string table_head(const system::Table& table);

/// A table whose rows belong to arms: row r to arm `arms[r]`, in whose colour it is marked. `links`
/// are HTML, one a row, in a last column; empty: there is none.
std::string arm_table(const system::Table& table, std::span<const std::size_t> arms,
                      std::span<const std::string> links = {});

/// The position in `names` of the arm each row is about: the longest name its first cell is, or
/// begins with. A row about none gets names.size().
std::vector<std::size_t> arms_of(const system::Table& table, std::span<const std::string> names);

}  // namespace difftape::study::page

namespace difftape::study::assets {

std::string_view page_html();  ///< the template with its {{keys}}
std::string_view page_css();
std::string_view page_js();
std::string_view dygraph_js();  ///< dygraphs 2, MIT licence
std::string_view dygraph_css();
/// The modules of d3 (Mike Bostock, BSD licence of three clauses) that draw axes and brushes.
std::string_view d3_js();
std::string_view synchronizer_js();  ///< its extra that links the zoom of several charts

}  // namespace difftape::study::assets
