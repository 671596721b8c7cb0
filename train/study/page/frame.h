#pragma once
// The frame that all pages share, and the files it is made of, compiled into the program: a page
// needs nothing but the run directories.

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
std::string_view dygraph_js();       ///< dygraphs 2, MIT licence
std::string_view synchronizer_js();  ///< its extra that links the zoom of several charts

}  // namespace difftape::study::assets

namespace difftape::study::page {

/// JSON that is safe inside a script element: `<` is written as \u003c, so no text in it can end
/// the element or open a comment.
std::string json_for_script(const nlohmann::ordered_json& json);

/// What stands within the frame.
struct Framed {
  std::string title, answer = {}, subtitle = {};  ///< texts
  std::string navigation = {}, sections = {};     ///< HTML
  /// What the script of the page reads (js/data.js).
  nlohmann::ordered_json data = nlohmann::ordered_json::object();
  std::vector<std::string_view> libraries = {};  ///< scripts that it needs
  int refresh_seconds = 0;                       ///< until it loads itself again; 0: never

  /// A section with its link in the navigation; none if `html` is empty.
  void add(const char* id, const char* heading, const std::string& html);
};
/// Writes a page that holds all it needs. Throws OutputError.
void write_page(const std::filesystem::path& path, const Framed& page);

/// Paragraphs of small print, and of what a reader must not overlook; `html` is HTML.
std::string note(const std::string& html);
std::string notice(const std::string& html);

/// A command line as one types it into a shell.
std::string shell_command(std::span<const std::string> words);

/// Text as a part of an address, where `/` keeps its meaning.
std::string uri_text(std::string_view text);

/// A link that saves `csv` as `name`; the data are in the link.
std::string csv_link(std::string_view name, std::string_view csv);

std::string swatch(std::size_t arm);

/// The head of a table, with a line of group labels if there are any.
std::string table_head(const system::Table& table);

/// What a row of a table is about.
struct RowMark {
  static constexpr auto kNoArm = static_cast<std::size_t>(-1);
  std::size_t arm = kNoArm;  ///< in whose color it is marked
  bool diverged = false;     ///< its state is marked
  std::string links = {};    ///< HTML, in a last column if any row has some
};
/// A table, a mark a row. It scrolls where it is too wide.
std::string marked_table(const system::Table& table, std::span<const RowMark> marks);

}  // namespace difftape::study::page
