#include "train/study/page/html.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>
#include <set>
#include <stdexcept>

#include "train/run/records/run_files.h"
#include "train/study/figures/drawing.h"
#include "train/system/embedded.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::study::page {

std::string json_for_script(const nlohmann::ordered_json& json) {
  const std::string plain = system::json_text(json);
  std::string safe;
  for (const char c : plain) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  std::set<std::string> used;
  std::size_t begin = 0;
  for (std::size_t open; (open = text.find("{{", begin)) != std::string_view::npos;) {
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) throw std::logic_error("template: {{ without }}");
    const std::string key(text.substr(open + 2, close - open - 2));
    const auto value = values.find(key);
    if (value == values.end()) throw std::logic_error("template: unknown key " + key);
    filled += text.substr(begin, open - begin);
    filled += value->second;
    used.insert(key);
    begin = close + 2;
  }
  for (const auto& [key, value] : values) {
    if (!used.contains(key)) throw std::logic_error("template: unused key " + key);
  }
  return filled.append(text.substr(begin));
}

namespace {

/// For a reader without JavaScript; the script of the page keeps what was chosen.
std::string refresh_element(int seconds) {
  return seconds == 0
             ? ""
             : fmt::format("<noscript><meta http-equiv=\"refresh\" content=\"{}\"></noscript>",
                           seconds);
}

/// Scripts that have it may run. Whoever wrote what is in a run could not know it.
std::string make_nonce() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

}  // namespace

void write_page(const std::filesystem::path& path, const Framed& page) {
  nlohmann::ordered_json data = page.data;
  data["refresh"] = page.refresh_seconds;
  std::vector<std::string_view> scripts = page.libraries;
  scripts.push_back(assets::page_js());
  const std::string nonce = make_nonce();
  const std::string script = fmt::format("<script nonce=\"{}\">", nonce);
  system::replace_text(
      path,
      fill_template(assets::page_html(),
                    {{"nonce", nonce},
                     {"title", escape_html(page.title)},
                     {"refresh", refresh_element(page.refresh_seconds)},
                     {"answer", escape_html(page.answer)},
                     {"subtitle", escape_html(page.subtitle)},
                     {"made", run::utc_now()},
                     {"css", fmt::format("{}\n{}", assets::dygraph_css(), assets::page_css())},
                     {"navigation", page.navigation},
                     {"sections", page.sections},
                     {"data", json_for_script(data)},
                     {"scripts", fmt::format("{}{}</script>", script,
                                             fmt::join(scripts, "</script>\n" + script))}}));
}

std::string shell_command(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) {
      if (c == '\'') {
        command += "'\\''";
      } else {
        command += c;
      }
    }
    command += '\'';
  }
  return command;
}

std::string uri_text(std::string_view text) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,/";
  std::string uri;
  for (const char c : text) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
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

std::string arm_table(const system::Table& table, std::span<const std::size_t> arms,
                      std::span<const std::string> links) {
  system::Table all = table;
  if (!links.empty()) all.columns.push_back({"", "files", true});
  std::string html = "<table class=\"summary\">\n" + table_head(all) + "<tbody>\n";
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    const auto& row = table.rows[r];
    html += fmt::format("<tr><th scope=\"row\">{}{}</th>",
                        arms[r] < svg::kArmColors * 16 ? swatch(arms[r]) : "", escape_html(row[0]));
    for (std::size_t c = 1; c < row.size(); ++c) {
      html += fmt::format("<td class=\"{}{}\">{}</td>", table.columns[c].left ? "left" : "number",
                          row[c].starts_with("diverged") ? " diverged" : "", escape_html(row[c]));
    }
    if (!links.empty()) html += "<td class=\"left files\">" + links[r] + "</td>";
    html += "</tr>\n";
  }
  return html + "</tbody>\n</table>";
}

std::vector<std::size_t> arms_of(const system::Table& table, std::span<const std::string> names) {
  std::vector<std::size_t> arms;
  for (const auto& row : table.rows) {
    std::size_t best = names.size();
    for (std::size_t arm = 0; arm < names.size(); ++arm) {
      const bool longer = best == names.size() || names[arm].size() > names[best].size();
      if (row[0].starts_with(names[arm]) && longer) best = arm;
    }
    arms.push_back(best);
  }
  return arms;
}

}  // namespace difftape::study::page

#define DIFFTAPE_PAGE_FILE(name) DIFFTAPE_FILE(DIFFTAPE_PAGE_DIR "/" name)

DIFFTAPE_ASSET(difftape_page_html, DIFFTAPE_PAGE_DIR "/page.html")
DIFFTAPE_ASSETS(difftape_page_css,
                DIFFTAPE_PAGE_FILE("css/base.css") DIFFTAPE_PAGE_FILE("css/tables.css")
                    DIFFTAPE_PAGE_FILE("css/figures.css") DIFFTAPE_PAGE_FILE("css/print.css"))
DIFFTAPE_ASSETS(difftape_page_js,
                DIFFTAPE_PAGE_FILE("js/data.js") DIFFTAPE_PAGE_FILE("js/marks.js")
                    DIFFTAPE_PAGE_FILE("js/chart.js") DIFFTAPE_PAGE_FILE("js/csv.js")
                        DIFFTAPE_PAGE_FILE("js/tables.js") DIFFTAPE_PAGE_FILE("js/parallel.js")
                            DIFFTAPE_PAGE_FILE("js/controls.js"))
DIFFTAPE_ASSET(difftape_dygraph_js, DIFFTAPE_DYGRAPHS_DIR "/dygraph.min.js")
DIFFTAPE_ASSET(difftape_dygraph_css, DIFFTAPE_DYGRAPHS_DIR "/dygraph.min.css")
#define DIFFTAPE_D3(name) DIFFTAPE_FILE(DIFFTAPE_D3_DIR "/d3-" name "/dist/d3-" name ".min.js")
// Each after those that it needs. d3-scale needs d3-time and d3-format for axes of dates and of
// numbers in its own format alone, so they are left out.
DIFFTAPE_ASSETS(difftape_d3_js,
                DIFFTAPE_D3("array") DIFFTAPE_D3("collection") DIFFTAPE_D3("color")
                    DIFFTAPE_D3("interpolate") DIFFTAPE_D3("scale") DIFFTAPE_D3("dispatch")
                        DIFFTAPE_D3("selection") DIFFTAPE_D3("timer") DIFFTAPE_D3("ease")
                            DIFFTAPE_D3("drag") DIFFTAPE_D3("transition") DIFFTAPE_D3("brush")
                                DIFFTAPE_D3("axis"))
DIFFTAPE_ASSET(difftape_synchronizer_js, DIFFTAPE_DYGRAPHS_DIR "/extras/synchronizer.js")

namespace difftape::study::assets {

namespace {

/// The text of an asset without the pointer to its source map, which would be a URL.
std::string_view text(const char* begin, const char* end) {
  const std::string_view all(begin, static_cast<std::size_t>(end - begin));
  const std::size_t map = all.find("# sourceMappingURL=");
  return map == std::string_view::npos ? all : all.substr(0, map - 2);
}

}  // namespace

std::string_view page_html() { return text(difftape_page_html_begin, difftape_page_html_end); }
std::string_view page_css() { return text(difftape_page_css_begin, difftape_page_css_end); }
std::string_view page_js() { return text(difftape_page_js_begin, difftape_page_js_end); }
std::string_view dygraph_js() { return text(difftape_dygraph_js_begin, difftape_dygraph_js_end); }
std::string_view dygraph_css() {
  return text(difftape_dygraph_css_begin, difftape_dygraph_css_end);
}
std::string_view d3_js() { return text(difftape_d3_js_begin, difftape_d3_js_end); }
std::string_view synchronizer_js() {
  return text(difftape_synchronizer_js_begin, difftape_synchronizer_js_end);
}

}  // namespace difftape::study::assets
