// The page in chromium: uses its controls and reads back its numbers.
#include "tests/train/study/page/browser.h"

#include "tests/train/study/page/run_row.h"
#include "train/study/page/frame.h"
#include "train/study/page/sections.h"
#include "train/system/files.h"

namespace difftape::study {
namespace {

using namespace test;
using testing::Each;
using testing::Gt;
using Json = nlohmann::json;

Rows lines(const std::string& csv) {
  Rows rows;
  std::istringstream text(csv);
  for (std::string line; std::getline(text, line);) {
    std::istringstream fields(line);
    auto& row = rows.emplace_back();
    for (std::string field; std::getline(fields, field, ',');) row.push_back(field);
  }
  return rows;
}

TEST_F(ReportInBrowser, a_sweep_is_drawn_in_full_and_every_control_works) {
  const auto dirs = write_sweep(dir.path(), 3, 3, 400);
  const Json seen = look(page_of(dirs), kUser);
  EXPECT_THAT(seen["violations"], IsEmpty());
  EXPECT_THAT(seen["resources"], IsEmpty()) << "nothing is loaded";
  ASSERT_EQ(seen["charts"].size(), 3u);
  for (const Json& chart : seen["charts"]) {
    SCOPED_TRACE(chart["metric"]);
    for (const Json& pixels : chart["arms"]) EXPECT_GT(pixels.get<int>(), 50);
    EXPECT_LT(chart["hidden"], chart["arms"][0].get<int>() / 10);
    EXPECT_TRUE(chart["log_changes"]);
    EXPECT_TRUE(chart["log_returns"]);
    EXPECT_TRUE(chart["lr_changes"]);
    EXPECT_EQ(chart["smoothing_changes"], chart["metric"] != "val/loss");
    for (const Json& range : chart["zoomed"]) EXPECT_EQ(range, Json({100, 200}));
    EXPECT_TRUE(chart["axis_returns"]);
    for (const auto& [name, along] : chart["along"].items()) {
      EXPECT_EQ(along["label"], name);
      EXPECT_GT(along["drawn"].get<int>(), 50) << name;
    }
    const auto ends = [&](const char* axis) {
      return chart["along"][axis]["range"].get<std::vector<double>>();
    };
    ASSERT_EQ(chart["along"].size(), 3u);
    EXPECT_NEAR(ends("tokens")[1], 4096 * ends("step")[1], 1) << "tokens a step";
    const double all = 400 * 4096 / 41000.0;  // seconds, at the throughput of the made-up runs
    EXPECT_NEAR(ends("seconds")[1], all, 0.05 * all);
  }
  ASSERT_EQ(seen["maps"].size(), 2u * (1 + 4 + 4)) << "two heads of each arm";
  for (const Json& map : seen["maps"]) {
    EXPECT_EQ(map[0], 64);
    EXPECT_GT(map[1].get<int>(), 10);
    EXPECT_EQ(map[2], "pixelated");
    EXPECT_EQ(map[3], 64 * 65 / 2) << "up to the diagonal";
  }
  ASSERT_GT(seen["cells"].size(), 12u);
  for (const Json& cells : seen["cells"]) EXPECT_EQ(cells, 4 * 20) << "layers, steps";
}

TEST_F(ReportInBrowser, csv_files_contain_the_logged_values) {
  const auto dirs = write_sweep(dir.path(), 2, 2, 200);
  const Json seen = look(page_of(dirs), kUser);
  EXPECT_THAT(seen["names"], testing::Contains("train_loss.csv"));
  const Rows rows = lines(seen["csv"][0]);
  ASSERT_EQ(rows[0],
            (std::vector<std::string>{"arm", "lr", "step", "mean", "min", "max", "seeds"}));
  const std::vector<double> one = logged(dirs[0]).train, two = logged(dirs[1]).train;
  for (std::size_t step = 1; step <= 200; ++step) {  // softmax at the first learning rate
    const auto& row = rows.at(step);
    const double a = one[step - 1], b = two[step - 1];
    ASSERT_EQ(row[0] + row[1] + row[2], "softmax3e-4" + std::to_string(step));
    EXPECT_NEAR(std::stod(row[3]), 0.5 * (a + b), 1e-5);
    EXPECT_NEAR(std::stod(row[4]), std::min(a, b), 1e-5);
    EXPECT_NEAR(std::stod(row[5]), std::max(a, b), 1e-5);
    EXPECT_EQ(row[6], "2");
  }
  const auto name = std::ranges::find(seen["names"], "attn_context_rms.csv");
  ASSERT_NE(name, seen["names"].end());
  const Rows cells = lines(seen["csv"][static_cast<std::size_t>(name - seen["names"].begin())]);
  ASSERT_EQ(cells[0], (std::vector<std::string>{"arm", "layer", "step", "value"}));
  const double rms =
      run::read_metrics(dirs[0] / "metrics.jsonl").columns.at("attn/context_rms/0")[19];
  EXPECT_EQ(cells[1][2], "20");
  EXPECT_NEAR(std::stod(cells[1][3]), rms, 1e-5 * rms);
  const std::size_t map = seen["names"].size() - 1;
  const Rows attention = lines(seen["csv"][map]);
  ASSERT_EQ(attention.size(), 1u + 64 * 65 / 2);
  const Tensor maps = attention_maps(4, 3, 64);
  for (std::size_t i = 1; i < attention.size(); i += 97) {
    const Index query = std::stoi(attention[i][0]), key = std::stoi(attention[i][1]);
    for (Index m = 0; m < 3; ++m) {
      const double value = maps.values()[static_cast<std::size_t>((m * 64 + query) * 64 + key)];
      EXPECT_NEAR(std::stod(attention[i][static_cast<std::size_t>(2 + m)]), value, 2e-5);
    }
  }
}

TEST_F(ReportInBrowser, heat_maps_of_one_value_are_a_line_and_wide_ranges_logarithmic) {
  const Json seen = look(page_of({write_run(dir / "1", {.layers = 1})}), R"js(
    {
    const map = {title: 't', meaning: '', file: 'f', x: 'step', y: 'layer', panels: [
      {arm: '<a>', columns: ['1', '2'], rows: ['0'], values: [3, 3]},
      {arm: 'b', columns: ['1', '2'], rows: ['0'], values: [null, 3]},
      {arm: 'c', columns: ['1', '2', '3'], rows: ['0'], values: [1, 10, 100]}]};
    const figure = heatFigure(map);
    document.querySelector('#layers .drawn').append(figure);
    painters.forEach(paint => paint());
    const narrow = heatFigure({...map, panels: map.panels.slice(0, 2)});
    const cells = figure.querySelector('canvas.cells'), context = cells.getContext('2d');
    const middle = context.getImageData(cells.width / 2, 16, 1, 1).data;
    const seen = {constants: figure.querySelector('.constant').textContent, log: figure.textContent.includes('log'),
      panels: figure.querySelectorAll('.cells').length, none: narrow.querySelectorAll('canvas').length,
      csv: mapCsv(map), middle: [...middle]};
    leave(seen);
    })js");
  EXPECT_EQ(seen["constants"], "3 everywhere: <a>, b");
  EXPECT_TRUE(seen["log"]);
  EXPECT_EQ(seen["panels"], 1);
  EXPECT_EQ(seen["none"], 0);
  EXPECT_EQ(seen["csv"],
            "arm,layer,step,value\n<a>,0,1,3\n<a>,0,2,3\nb,0,2,3\n"
            "c,0,1,1\nc,0,2,10\nc,0,3,100\n")
      << "the CSV has all";
  EXPECT_EQ(seen["middle"], Json({0x23, 0x90, 0x8c, 255})) << "10 is halfway from 1 to 100";
}

TEST_F(ReportInBrowser, printed_pages_are_light_and_fit_the_paper) {
  const auto dirs = write_sweep(dir.path(), 2, 1, 100);
  const Json seen = look(page_of(dirs), R"js(
    {
    const look = () => ({background: css('--bg'), arm: color(0), chart: graphs[0].graph.size().width,
      pixels: document.querySelector('#curves canvas').width, cells: document.querySelector('.cells').clientWidth});
    const seen = [look()];
    for (const event of ['beforeprint', 'afterprint']) {
      dispatchEvent(new Event(event));
      seen.push(look());
    }
    leave(seen);
    })js",
                         {"--blink-settings=preferredColorScheme=0"});
  EXPECT_EQ(seen[0]["background"], "#14171a") << "dark on the screen";
  EXPECT_EQ(seen[1]["background"], "#ffffff");
  EXPECT_EQ(seen[1]["arm"], "#000000");
  EXPECT_LE(seen[1]["chart"].get<int>(), 340);
  EXPECT_EQ(seen[1]["pixels"].get<int>(), 3 * seen[1]["chart"].get<int>());
  EXPECT_LE(seen[1]["cells"].get<int>(), 340);
  EXPECT_EQ(seen[2], seen[0]);
}

TEST_F(ReportInBrowser, tables_and_static_figures_work_without_javascript) {
  const auto dirs = write_sweep(dir.path(), 3, 3, 200);
  std::string page = page_of(dirs);
  page = page.substr(0, page.find("<script type=\"application/json\"")) + "</body></html>";
  // The only script is the one of the test; the scripts of the page are removed.
  const Json found = look(page, R"js(
    const visible = element => element.getClientRects().length > 0;
    leave({
      curve: visible(document.querySelector('#learning-rate svg')),
      forest: visible(document.querySelector('#verdicts svg')),
      buttons: [...document.querySelectorAll('button')].filter(visible).length,
      controls: visible(document.getElementById('controls')),
      hints: [...document.querySelectorAll('#curves noscript, #layers noscript, #attention noscript')].map(
        hint => hint.textContent.includes('metrics.jsonl')),
      tables: [...document.querySelectorAll('table.summary, table.verdicts')].length});)js");
  EXPECT_TRUE(found["curve"]);
  EXPECT_TRUE(found["forest"]);
  EXPECT_EQ(found["hints"], Json({true, true, true}));
  EXPECT_EQ(found["buttons"], 0);
  EXPECT_FALSE(found["controls"]);
  EXPECT_EQ(found["tables"], 4);
}

TEST_F(ReportInBrowser, a_phone_scrolls_the_page_only_vertically) {
  const auto dirs = write_sweep(dir.path(), 7, 1, 100);
  std::vector<fs::path> more = dirs;
  more.push_back(write_run(dir / "long", {.name = std::string(90, 'n'), .answers = true}));
  const std::string frame = "<body><iframe style=\"border:0;width:400px;height:800px\" srcdoc=\"" +
                            escape_html(page_of(more, std::string(80, 'w'))) +
                            "\"></iframe></body>";
  const Json found = look(frame, R"js(
    setTimeout(() => {
      const inner = document.querySelector('iframe').contentDocument;
      const wide = [...inner.querySelectorAll('main > *, header > *')].filter(
        e => e.getBoundingClientRect().right > 400).map(e => e.id || e.tagName);
      leave(
        {width: inner.documentElement.scrollWidth, wide, charts: inner.querySelectorAll('canvas').length});
    }, 3000);)js",
                          {"--hide-scrollbars"});
  EXPECT_EQ(found["width"], 400);
  EXPECT_THAT(found["wide"], IsEmpty());
  EXPECT_GT(found["charts"].get<int>(), 5);
}

TEST_F(ReportInBrowser, hostile_names_stay_text) {
  const std::string attack = "</script><img src=x onerror=alert(1)>\"'{data}{{<!-- é\u2028,=1+1";
  const auto one = write_run(dir / "1", {.arm = attack, .maps = 1});
  const auto same = write_run(dir / "3", {.seed = 2, .arm = attack});
  const auto two = write_run(dir / "2", {.name = "b", .arm = "b</title>", .layers = 2});
  const Visit page = visit(dir, with_script(page_of({one, two, same}, attack), kUser));
  EXPECT_THAT(page.console, IsEmpty());
  const Json seen = results(page);
  EXPECT_EQ(seen["maps"].size(), 2u) << "values of attention";
  EXPECT_EQ(seen["charts"].size(), 3u);
  EXPECT_EQ(tables(page.dom, "summary")[0][0][0], attack);
}

TEST_F(ReportInBrowser, an_error_in_a_page_fails_the_test) {
  const Visit seen = visit(dir, "<body><script>console.error('broken')</script></body>");
  EXPECT_THAT(seen.console, testing::Contains(HasSubstr("broken")));
}

}  // namespace
}  // namespace difftape::study
