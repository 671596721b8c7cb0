#include "tests/train/study/page/browser.h"

#include <unistd.h>

#include "tests/train/app/program.h"

namespace difftape::test {

namespace {

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
}

/// Finds the text between two markers from `at` on and moves `at` behind it. Returns false at the
/// end.
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
  const fs::path page = dir / "visited.html";
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

namespace difftape::study {

const char* const kUser = R"js(
(async () => {
  const seen = {charts: [], blobs: [], names: [], violations: []};
  document.addEventListener('securitypolicyviolation', e => seen.violations.push(e.blockedURI));
  URL.createObjectURL = blob => { seen.blobs.push(blob); return 'blob:test'; };
  HTMLAnchorElement.prototype.click = function() { seen.names.push(this.download); };
  // A copy, since chromium warns about pages that read their canvases often.
  const copy = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const pixels = drawn => {
    const {caption} = graphs.find(({graph}) => graph === drawn);
    const canvas = caption.parentElement.querySelector('canvas');  // the other is for the mouse
    [copy.canvas.width, copy.canvas.height] = [canvas.width, canvas.height];
    copy.drawImage(canvas, 0, 0);
    return copy.getImageData(0, 0, canvas.width, canvas.height).data;
  };
  const near = (rgba, i, rgb) => rgba[i + 3] > 128 &&
    Math.abs(rgba[i] - rgb[0]) + Math.abs(rgba[i + 1] - rgb[1]) + Math.abs(rgba[i + 2] - rgb[2]) < 60;
  const count = (graph, arm) => {
    const hex = color(arm), rgb = [1, 3, 5].map(i => parseInt(hex.slice(i, i + 2), 16));
    const rgba = pixels(graph);
    let found = 0;
    for (let i = 0; i < rgba.length; i += 4) if (near(rgba, i, rgb)) ++found;
    return found;
  };
  const picture = graph => pixels(graph).reduce((hash, value) => (31 * hash + value) | 0, 7);
  const change = (select, value) => { select.value = value; select.onchange({target: select}); };

  const lr = document.getElementById('lr'), x = document.getElementById('x'), smoothing = document.getElementById('smoothing');
  const arms = [...document.querySelectorAll('#arms button')];
  for (const {chart, caption, graph} of graphs) {
    const result = {metric: chart.metric, arms: data.arms.map((_, arm) => count(graph, arm))};
    const first = picture(graph);
    caption.querySelector('.log').click();
    result.log_changes = picture(graph) !== first;
    caption.querySelector('.log').click();
    result.log_returns = picture(graph) === first;
    arms[0].click();
    result.hidden = count(graph, 0);
    arms[0].click();
    change(smoothing, '100');
    result.smoothing_changes = picture(graph) !== first;
    change(smoothing, '0');
    if (lr.options.length > 1) {
      change(lr, String((data.lr + 1) % data.lrs.length));
      result.lr_changes = picture(graph) !== first;
      change(lr, String(data.lr));
    }
    result.along = {};
    for (const {value} of x.options) {
      change(x, value);
      const text = [...graph.maindiv_.querySelectorAll('.dygraph-xlabel')].map(e => e.textContent);
      result.along[value] = {range: graph.xAxisRange(), label: text.join(), drawn: count(graph, 1)};
    }
    change(x, 'step');
    result.axis_returns = picture(graph) === first;
    graph.updateOptions({dateWindow: [100, 200]});
    result.zoomed = graphs.map(other => other.graph.xAxisRange());
    document.getElementById('reset').click();
    seen.charts.push(result);
  }
  for (const made of document.querySelectorAll('button.csv')) made.click();
  seen.csv = await Promise.all(seen.blobs.map(blob => blob.text()));
  delete seen.blobs;
  seen.maps = [...document.querySelectorAll('canvas.map')].map(map => {
    const rgba = map.getContext('2d').getImageData(0, 0, map.width, map.height).data;
    const drawn = rgba.filter((value, i) => i % 4 === 3 && value === 255).length;
    return [map.width, map.ariaLabel.length, getComputedStyle(map).imageRendering, drawn];
  });
  seen.resources = performance.getEntriesByType('resource').map(entry => entry.name)
    .filter(name => !name.startsWith('data:'));
  seen.cells = [...document.querySelectorAll('canvas.cells')].map(cells => {
    const titles = new Set();
    for (let x = 2; x < cells.clientWidth; x += 3) {
      for (let y = 2; y < cells.clientHeight; y += 3) {
        cells.onmousemove({offsetX: x, offsetY: y});
        if (cells.title) titles.add(cells.title);
      }
    }
    return titles.size;
  });
  leave(seen);
})();
)js";

}  // namespace difftape::study
