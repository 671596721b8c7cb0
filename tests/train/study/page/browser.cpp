#include "tests/train/study/page/browser.h"

#include <unistd.h>

#include <cstdlib>
#include <regex>
#include <sstream>
#include <stdexcept>

#include "tests/train/app/program.h"

namespace difftape::test {

namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// What stands between two markers from `at` on, which moves behind it; false at the end.
bool next(const std::string& text, const std::string& begin, const std::string& end,
          std::size_t& at, std::string& found) {
  const std::size_t from = text.find(begin, at);
  if (from == std::string::npos) return false;
  const std::size_t to = text.find(end, from + begin.size());
  if (to == std::string::npos) return false;
  found = text.substr(from + begin.size(), to - from - begin.size());
  at = to;
  return true;
}

}  // namespace

std::string find_browser() {
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
      const std::string file = folder + "/" + name;
      if (access(file.c_str(), X_OK) == 0) return file;
    }
  }
  return "";
}

Visit visit(const ScratchDir& dir, const std::string& html,
            const std::vector<std::string>& options) {
  const std::filesystem::path page = dir / "visited.html";
  put(page, html);
  std::vector<std::string> arguments = {"--headless",
                                        "--no-sandbox",
                                        "--disable-gpu",
                                        "--no-first-run",
                                        "--user-data-dir=" + (dir / "profile").string(),
                                        "--enable-logging=stderr",
                                        "--window-size=1200,1600",
                                        "--virtual-time-budget=20000",
                                        "--dump-dom"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  arguments.push_back("file://" + page.string());
  const Outcome outcome = run(arguments, {.program = find_browser()});
  if (outcome.exit != 0 || outcome.out.empty()) {
    throw std::runtime_error("chromium ended with " + std::to_string(outcome.exit) + ": " +
                             outcome.err);
  }
  Visit visit{outcome.out, {}};
  std::istringstream lines(outcome.err);
  for (std::string line; std::getline(lines, line);) {
    if (line.find("CONSOLE") != std::string::npos) visit.console.push_back(line);
  }
  return visit;
}

std::string with_script(std::string page, const std::string& script) {
  static const std::regex nonce("nonce-([0-9a-f]{32})");
  std::smatch found;
  const std::string allowed = std::regex_search(page, found, nonce) ? found[1].str() : "";
  const std::size_t end = page.rfind("</body>");
  constexpr const char* kLeave =
      "const leave = seen => document.body.append(Object.assign(document.createElement('pre'), "
      "{id: 'results', textContent: JSON.stringify(seen)}));\n";
  return page.insert(end, "<script nonce=\"" + allowed + "\">" + kLeave + script + "</script>\n");
}

std::string unescape(std::string html) {
  replace_all(html, "&lt;", "<");
  replace_all(html, "&gt;", ">");
  replace_all(html, "&quot;", "\"");
  replace_all(html, "&#39;", "'");
  replace_all(html, "&nbsp;", "\u00a0");
  replace_all(html, "&amp;", "&");
  return html;
}

nlohmann::json results(const Visit& visit) {
  std::size_t at = 0;
  std::string text;
  if (!next(visit.dom, "<pre id=\"results\">", "</pre>", at, text)) {
    throw std::runtime_error("the script of the test left no results");
  }
  return nlohmann::json::parse(unescape(text));
}

std::vector<Rows> tables(const std::string& dom, const std::string& table_class) {
  static const std::regex cell("<t[hd][^>]*>([\\s\\S]*?)</t[hd]>"), tag("<[^>]*>");
  std::vector<Rows> result;
  std::size_t at = 0;
  for (std::string table;
       next(dom, "<table class=\"" + table_class + "\">", "</table>", at, table);) {
    Rows& rows = result.emplace_back();
    std::size_t in_table = table.find("<tbody>");
    for (std::string row; next(table, "<tr>", "</tr>", in_table, row);) {
      auto& cells = rows.emplace_back();
      for (auto match = std::sregex_iterator(row.begin(), row.end(), cell);
           match != std::sregex_iterator(); ++match) {
        cells.push_back(unescape(std::regex_replace((*match)[1].str(), tag, "")));
      }
    }
  }
  return result;
}

}  // namespace difftape::test
