#include "train/study/page/frame.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "train/run/records/run_files.h"
#include "train/study/figures/drawing.h"
#include "train/system/embedded.h"
#include "train/system/json.h"
#define DIFFTAPE_PAGE_FILE(name) DIFFTAPE_FILE(DIFFTAPE_PAGE_DIR "/" name)

DIFFTAPE_ASSET(difftape_page_html, DIFFTAPE_PAGE_DIR "/page.html")
DIFFTAPE_ASSETS(difftape_page_css,
                DIFFTAPE_PAGE_FILE("css/base.css") DIFFTAPE_PAGE_FILE("css/tables.css")
                    DIFFTAPE_PAGE_FILE("css/figures.css") DIFFTAPE_PAGE_FILE("css/print.css"))
DIFFTAPE_ASSETS(difftape_page_js,
                DIFFTAPE_PAGE_FILE("js/data.js") DIFFTAPE_PAGE_FILE("js/marks.js")
                    DIFFTAPE_PAGE_FILE("js/chart.js") DIFFTAPE_PAGE_FILE("js/csv.js")
                        DIFFTAPE_PAGE_FILE("js/tables.js") DIFFTAPE_PAGE_FILE("js/maps.js")
                            DIFFTAPE_PAGE_FILE("js/controls.js"))
DIFFTAPE_ASSET(difftape_dygraph_js, DIFFTAPE_DYGRAPHS_DIR "/dygraph.min.js")
DIFFTAPE_ASSET(difftape_dygraph_css, DIFFTAPE_DYGRAPHS_DIR "/dygraph.min.css")
DIFFTAPE_ASSET(difftape_synchronizer_js, DIFFTAPE_DYGRAPHS_DIR "/extras/synchronizer.js")

namespace difftape::study::assets {

namespace {

/// Returns an asset without the reference to its source map, which would be a URL.
std::string_view text(const char* begin, const char* end) {
  const std::string_view all(begin, static_cast<std::size_t>(end - begin));
  const std::size_t map = all.find("# sourceMappingURL=");
  return map == std::string_view::npos ? all : all.substr(0, map - 2);
}

std::string_view page_html() { return text(difftape_page_html_begin, difftape_page_html_end); }
std::string_view page_css() { return text(difftape_page_css_begin, difftape_page_css_end); }
std::string_view dygraph_css() {
  return text(difftape_dygraph_css_begin, difftape_dygraph_css_end);
}

}  // namespace

std::string_view page_js() { return text(difftape_page_js_begin, difftape_page_js_end); }
std::string_view dygraph_js() { return text(difftape_dygraph_js_begin, difftape_dygraph_js_end); }
std::string_view synchronizer_js() {
  return text(difftape_synchronizer_js_begin, difftape_synchronizer_js_end);
}

}  // namespace difftape::study::assets

namespace difftape::study::page {

namespace {

/// Returns a nonce. Scripts need it to run, and data of a run cannot contain it.
std::string make_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

std::string json_for_script(const nlohmann::ordered_json& json) {
  std::string safe;
  for (const char c : system::json_text(json)) safe += c == '<' ? "\\u003c" : std::string(1, c);
  return safe;
}

void Framed::add(const char* id, const char* heading, const std::string& html) {
  if (html.empty()) return;
  navigation += fmt::format("<a href=\"#{}\">{}</a>\n", id, heading);
  sections += fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}</section>\n", id, heading, html);
}

std::string page_text(const Framed& page) {
  std::vector<std::string_view> scripts = page.libraries;
  scripts.push_back(assets::page_js());
  const std::string nonce = make_nonce();
  const std::string script = fmt::format("<script nonce=\"{}\">", nonce);
  return fmt::format(
      fmt::runtime(assets::page_html()), fmt::arg("nonce", nonce),
      fmt::arg("title", escape_html(page.title)), fmt::arg("subtitle", escape_html(page.subtitle)),
      fmt::arg("made", run::utc_now()), fmt::arg("dygraph_css", assets::dygraph_css()),
      fmt::arg("css", assets::page_css()), fmt::arg("navigation", page.navigation),
      fmt::arg("sections", page.sections), fmt::arg("data", json_for_script(page.data)),
      fmt::arg("scripts",
               fmt::format("{}{}</script>", script, fmt::join(scripts, "</script>\n" + script))));
}

std::string note(const std::string& html) { return "<p class=\"muted note\">" + html + "</p>\n"; }

std::string notice(const std::string& html) { return "<p class=\"notice\">" + html + "</p>\n"; }

namespace {

constexpr std::string_view kPlain =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,/";

}  // namespace

std::string uri_text(std::string_view text) {
  std::string uri;
  for (const char c : text) {
    uri += kPlain.find(c) != kPlain.npos ? std::string(1, c)
                                         : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri;
}

std::string csv_link(std::string_view name, std::string_view csv) {
  return fmt::format(
      "<a class=\"csv\" download=\"{}\" href=\"data:text/csv;charset=utf-8,{}\">CSV</a>",
      escape_html(name), uri_text(csv));
}

std::string swatch(std::size_t arm) {
  return fmt::format("<span class=\"swatch arm-{}{}\"></span>", arm % svg::kArmColors,
                     arm < svg::kArmColors ? "" : " hollow");
}

std::string table_head(const system::Table& table) {
  std::string groups, names;
  bool grouped = false;
  for (const system::ColumnGroup& group : column_groups(table.columns)) {
    grouped = grouped || !group.label.empty();
    groups += group.label.empty() ? "<td></td>"
                                  : fmt::format("<th scope=\"colgroup\" colspan=\"{}\">{}</th>",
                                                group.end - group.begin, escape_html(group.label));
  }
  for (const system::Column& column : table.columns) {
    names += fmt::format("<th scope=\"col\"{}>{}</th>", column.left ? " class=\"left\"" : "",
                         escape_html(column.name));
  }
  return fmt::format("<thead>\n{}<tr>{}</tr>\n</thead>\n",
                     grouped ? "<tr>" + groups + "</tr>\n" : "", names);
}

std::string marked_table(const system::Table& table, std::span<const RowMark> marks) {
  system::Table all = table;
  const bool linked = std::ranges::any_of(marks, [](auto& mark) { return !mark.links.empty(); });
  if (linked) all.columns.push_back({"", "files", true});
  std::string html =
      "<div class=\"scroll\">\n<table class=\"summary\">\n" + table_head(all) + "<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    html += fmt::format("<tr><th scope=\"row\">{}{}</th>",
                        marks[r].arm == RowMark::kNoArm ? "" : swatch(marks[r].arm),
                        escape_html(row[0]));
    for (std::size_t c = 1; c < row.size(); ++c) {
      const bool diverged = marks[r].diverged && table.columns[c].name == "state";
      html += fmt::format("<td class=\"{}{}\">{}</td>", table.columns[c].left ? "left" : "number",
                          diverged ? " diverged" : "", escape_html(row[c]));
    }
    if (linked) html += "<td class=\"left files\">" + marks[r].links + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>\n</div>\n";
}

}  // namespace difftape::study::page
