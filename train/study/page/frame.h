#pragma once
// The frame that all pages share, and the files it is made of, compiled into the program: a page
// needs nothing but the run directories.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

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

}  // namespace difftape::study::page

namespace difftape::study::assets {

std::string_view page_js();
std::string_view dygraph_js();       ///< dygraphs 2, MIT licence
std::string_view synchronizer_js();  ///< its extra that links the zoom of several charts

}  // namespace difftape::study::assets
