#pragma once
// The frame of the page, and its assets, which are compiled into the program.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "train/study/figures/drawing.h"
#include "train/system/text_table.h"

namespace difftape::study::assets {

std::string_view page_js();
std::string_view dygraph_js();       ///< dygraphs 2, MIT license
std::string_view synchronizer_js();  ///< its extra that links the zoom of several charts

}  // namespace difftape::study::assets

namespace difftape::study::page {

/// Returns JSON that is safe inside a script element: `<` is written as \u003c, so that no string
/// can end the element or open a comment.
std::string json_for_script(const nlohmann::ordered_json& json);

/// Contents of the frame.
struct Framed {
  std::string title, subtitle = {};            ///< plain text
  std::string navigation = {}, sections = {};  ///< HTML
  /// Data for the script of the page (js/data.js).
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  std::vector<std::string_view> libraries = {};  ///< scripts that it needs

  /// Adds a section and its link in the navigation, unless `html` is empty.
  void add(const char* id, const char* heading, const std::string& html);
};
/// Returns the HTML of a self-contained page.
std::string page_text(const Framed& page);

/// Return a paragraph in small print, and a highlighted one; `html` is HTML.
std::string note(const std::string& html);
std::string notice(const std::string& html);

/// Percent-encodes a string as a part of a URL; `/` keeps its meaning.
std::string uri_text(std::string_view text);

/// Returns a link that saves `csv`, which it contains, as `name`.
std::string csv_link(std::string_view name, std::string_view csv);

std::string swatch(std::size_t arm);

/// Returns the head of a table, with a line of group labels if there are any.
std::string table_head(const system::Table& table);

/// Marks of a row of a table.
struct RowMark {
  static constexpr auto kNoArm = static_cast<std::size_t>(-1);
  std::size_t arm = kNoArm;  ///< the arm whose color marks the row
  bool diverged = false;     ///< marks its state
  std::string links = {};    ///< HTML, in a last column if any row has some
};
/// Returns a table with one mark per row. A table that is too wide scrolls.
std::string marked_table(const system::Table& table, std::span<const RowMark> marks);

}  // namespace difftape::study::page
