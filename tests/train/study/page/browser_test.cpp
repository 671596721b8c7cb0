// The page as a reader sees it: opened in chromium, its controls used, its numbers read back.
#include "tests/train/study/page/browser.h"

#include <fmt/format.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "tests/train/app/program.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "tests/train/study/page/page_user.h"
#include "tests/train/study/page/run_row.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/study.h"
#include "train/study/compare/tables.h"
#include "train/study/page/html.h"
#include "train/study/page/report.h"
#include "train/study/page/sections.h"

namespace difftape::study {
namespace {

using namespace test;
using testing::Each;
using testing::Gt;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

class ReportInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!find_browser().empty()) return;
    if (std::getenv("DIFFTAPE_TEST_BROWSER")) {
      FAIL() << "no chromium in PATH; ./dev test installs it";
    } else {
      GTEST_SKIP() << "no chromium in PATH";
    }
  }

  std::string page_of(const std::vector<std::filesystem::path>& dirs,
                      const std::string& title = "A comparison") const {
    const std::vector<RunRecord> runs = collect_runs(dirs).runs;
    write_report(make_study(runs), dir / "report.html", title);
    return contents(dir / "report.html");
  }

  const ScratchDir dir;
};

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
  const Visit page = visit(dir, with_script(page_of(dirs), kUser));
  EXPECT_THAT(page.console, IsEmpty());
  const Json seen = results(page);
  EXPECT_THAT(seen["violations"], IsEmpty());
  EXPECT_THAT(seen["resources"], IsEmpty()) << "nothing is loaded";
  EXPECT_EQ(seen["static_shown"], 0) << "the pictures for paper are hidden";
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
  ASSERT_EQ(seen["images"].size(), 2u * (1 + 4 + 4)) << "two heads of each arm";
  for (const Json& image : seen["images"]) {
    EXPECT_TRUE(image[0]);
    EXPECT_EQ(image[1], 64);
    EXPECT_GT(image[2].get<int>(), 10);
    EXPECT_EQ(image[3], "pixelated");
  }
  EXPECT_GT(seen["cells"].get<int>(), 500);
}

TEST_F(ReportInBrowser, csv_files_hold_what_the_runs_logged) {
  const auto dirs = write_sweep(dir.path(), 2, 2, 200);
  const Json seen = results(visit(dir, with_script(page_of(dirs), kUser)));
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
  const auto link = std::ranges::find(seen["links"], "attn_context_rms.csv",
                                      [](const Json& l) { return l[0].get<std::string>(); });
  ASSERT_NE(link, seen["links"].end());
  const Rows cells = lines((*link)[1]);
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

TEST_F(ReportInBrowser, tables_of_really_trained_runs_equal_their_metrics) {
  const std::string root = DIFFTAPE_TEST_SOURCE_DIR;
  put(dir / "sweep.yaml", "base: " + root + R"(/configs/base/text_0.9m.yaml
model: {d_model: 16, num_layers: 1, num_heads: 2, d_ff: 32, max_seq_len: 32}
data: {seq_len: 32, batch_size: 2}
train: {steps: 60, eval_every: 10, checkpoint_every: 60}
sweep:
  arms:
    softmax: {model.attention.kind: softmax}
    diff_v1: {model.attention.kind: diff_v1}
    diff_v2: {model.attention.kind: diff_v2}
)");
  const Outcome sweep =
      test::run({"sweep", (dir / "sweep.yaml").string(), "--out", (dir / "out").string()});
  ASSERT_EQ(sweep.exit, 0) << sweep.err;
  const Visit page = visit(dir, with_script(contents(dir / "out/report.html"), kUser));
  EXPECT_THAT(page.console, IsEmpty());
  for (const Json& chart : results(page)["charts"]) {
    for (const Json& pixels : chart["arms"]) EXPECT_GT(pixels.get<int>(), 20) << chart["metric"];
  }
  const std::vector<Rows> found = tables(page.dom, "summary");
  ASSERT_GE(found.size(), 1u);
  const double baseline = logged(dir / "out/softmax").val;
  ASSERT_EQ(found[0].size(), 3u);
  EXPECT_THAT(page.dom, HasSubstr("<a href=\"diff_v1/stdout.log\">"));
  for (const auto& row : found[0]) {
    SCOPED_TRACE(row[0]);
    expect_row(row, dir / ("out/" + row[0]), baseline);
  }
}

TEST_F(ReportInBrowser, tables_of_a_sweep_are_those_of_the_study) {
  const auto dirs = write_sweep(dir.path(), 3, 3, 200);
  const Visit page = visit(dir, page_of(dirs));
  const std::vector<RunRecord> runs = collect_runs(dirs).runs;
  const Study study = make_study(runs);
  const std::vector<Rows> summaries = tables(page.dom, "summary");
  ASSERT_EQ(summaries.size(), 3u) << "runs of an arm, every run, sensitivity";
  EXPECT_EQ(summaries[0], study_table(study).rows);
  EXPECT_EQ(summaries[1].size(), 27u);
  EXPECT_EQ(summaries[2], sensitivity_table(study).rows);
  const std::vector<Rows> verdicts = tables(page.dom, "verdicts");
  ASSERT_EQ(verdicts.size(), 2u) << "tested claims, and the others folded away";
  Rows tested, untested;
  for (const auto& row : verdict_table(evaluate(study)).rows) {
    (row[3].starts_with("not tested") ? untested : tested).push_back(row);
  }
  EXPECT_EQ(verdicts[0], tested);
  EXPECT_EQ(verdicts[1], untested);
  EXPECT_THAT(tested, testing::Not(IsEmpty()));
}

TEST_F(ReportInBrowser, tables_are_sorted_by_the_head_that_is_clicked) {
  const auto dirs = write_sweep(dir.path(), 2, 3, 100);
  const Json seen = results(visit(dir, with_script(page_of(dirs), R"js(
    const table = document.querySelectorAll('table.summary')[1];  // every run
    const heads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    const column = name => {
      const head = heads.find(each => each.textContent === name);
      return [head, () => [...table.tBodies[0].rows].map(row => row.cells[head.cellIndex].textContent)];
    };
    const seen = {focus: heads.every(head => head.querySelector('button')?.tabIndex === 0)};
    for (const name of ['val', 'run', 'state']) {
      const [head, cells] = column(name);
      seen[name] = {before: cells(), order: []};
      for (const click of [1, 2]) {
        head.querySelector('button').click();
        seen[name].order.push([head.getAttribute('aria-sort'), cells()]);
      }
      seen[name].marked = table.querySelectorAll('[aria-sort]').length;
    }
    const pre = document.createElement('pre');
    pre.id = 'results';
    pre.textContent = JSON.stringify(seen);
    document.body.append(pre);)js")));
  EXPECT_TRUE(seen["focus"]) << "heads are reached by the keyboard";
  for (const char* name : {"val", "run", "state"}) {
    EXPECT_EQ(seen[name]["marked"], 1) << name;
    EXPECT_EQ(seen[name]["order"][0][0], "ascending");
    EXPECT_EQ(seen[name]["order"][1][0], "descending");
    const auto up = seen[name]["order"][0][1].get<std::vector<std::string>>();
    EXPECT_THAT(up, testing::UnorderedElementsAreArray(
                        seen[name]["before"].get<std::vector<std::string>>()));
  }
  const auto losses = [&](int click) {
    std::vector<double> finished;
    for (const Json& cell : seen["val"]["order"][click][1]) {
      if (cell != "-") finished.push_back(std::stod(cell.get<std::string>()));
    }
    return finished;
  };
  ASSERT_GT(losses(0).size(), 9u);
  EXPECT_TRUE(std::ranges::is_sorted(losses(0)));
  EXPECT_TRUE(std::ranges::is_sorted(losses(1), std::greater<>()));
  for (const int click : {0, 1}) {
    EXPECT_EQ(seen["val"]["order"][click][1].back(), "-") << "runs without a loss stand last";
  }
}

TEST_F(ReportInBrowser, everything_but_the_controls_is_there_without_javascript) {
  const auto dirs = write_sweep(dir.path(), 3, 2, 200);
  std::string page = page_of(dirs);
  page = page.substr(0, page.find("<script type=\"application/json\"")) + "</body></html>";
  // The only script is that of the test: the page has lost its own.
  const Visit seen = visit(dir, with_script(page, R"js(
    const pre = document.createElement('pre');
    pre.id = 'results';
    const visible = element => element.getClientRects().length > 0;
    pre.textContent = JSON.stringify({
      plots: [...document.querySelectorAll('.static svg')].map(visible),
      curve: visible(document.querySelector('#learning-rate svg')),
      lines: [...document.querySelectorAll('.static svg')].map(
        svg => svg.querySelectorAll('polyline').length),
      bands: document.querySelectorAll('.static polygon[fill-opacity]').length,
      buttons: [...document.querySelectorAll('button')].filter(visible).length,
      controls: visible(document.getElementById('controls')),
      tables: [...document.querySelectorAll('table.summary, table.verdicts')].length});
    document.body.append(pre);)js"));
  const Json found = results(seen);
  EXPECT_THAT(seen.console, IsEmpty());
  EXPECT_EQ(found["plots"], Json({true, true, true}));
  EXPECT_EQ(found["lines"], Json({3, 3, 3}));
  EXPECT_EQ(found["bands"], 9);
  EXPECT_TRUE(found["curve"]);
  EXPECT_EQ(found["buttons"], 0);
  EXPECT_FALSE(found["controls"]);
  EXPECT_EQ(found["tables"], 4);
}

TEST_F(ReportInBrowser, a_phone_scrolls_the_page_only_downwards) {
  const auto dirs = write_sweep(dir.path(), 7, 1, 100);
  std::vector<std::filesystem::path> more = dirs;
  more.push_back(write_run(dir / "long", {.name = std::string(90, 'n'), .answers = true}));
  const std::string frame = "<body><iframe style=\"border:0;width:400px;height:800px\" srcdoc=\"" +
                            escape_html(page_of(more, std::string(80, 'w'))) +
                            "\"></iframe></body>";
  const Visit seen = visit(dir, with_script(frame, R"js(
    setTimeout(() => {
      const inner = document.querySelector('iframe').contentDocument;
      const wide = [...inner.querySelectorAll('main > *, header > *')].filter(
        e => e.getBoundingClientRect().right > 400).map(e => e.id || e.tagName);
      const pre = document.createElement('pre');
      pre.id = 'results';
      pre.textContent = JSON.stringify(
        {width: inner.documentElement.scrollWidth, wide, charts: inner.querySelectorAll('canvas').length});
      document.body.append(pre);
    }, 3000);)js"),
                           {"--hide-scrollbars"});
  const Json found = results(seen);
  EXPECT_EQ(found["width"], 400);
  EXPECT_THAT(found["wide"], IsEmpty());
  EXPECT_GT(found["charts"].get<int>(), 5);
}

TEST_F(ReportInBrowser, hostile_names_stay_text) {
  const std::string attack = "</script><img src=x onerror=alert(1)>\"'{{data}}<!-- é\u2028,=1+1";
  const auto one = write_run(dir / "1", {.name = attack, .kind = attack, .maps = 1});
  const auto two = write_run(dir / "2", {.name = "b</title>", .layers = 2});
  const Visit page = visit(dir, with_script(page_of({one, two}, attack), kUser));
  EXPECT_THAT(page.console, IsEmpty());
  const Json seen = results(page);
  EXPECT_EQ(seen["images"].size(), 2u) << "those of attention";
  EXPECT_EQ(seen["charts"].size(), 3u);
  EXPECT_EQ(tables(page.dom, "summary")[0][0][0], attack);
}

TEST_F(ReportInBrowser, an_error_in_a_page_would_be_noticed) {
  const Visit seen = visit(dir, "<body><script>console.error('broken')</script></body>");
  EXPECT_THAT(seen.console, testing::Contains(HasSubstr("broken")));
}

}  // namespace
}  // namespace difftape::study
