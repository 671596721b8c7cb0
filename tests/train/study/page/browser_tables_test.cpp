// The tables of the page in chromium.
#include "tests/train/app/program.h"
#include "tests/train/study/page/browser.h"
#include "tests/train/study/page/run_row.h"
#include "train/study/compare/tables.h"

namespace difftape::study {
namespace {

using namespace test;
using Json = nlohmann::json;

class TablesInBrowser : public ReportInBrowser {};

TEST_F(TablesInBrowser, tables_of_really_trained_runs_equal_their_metrics) {
  const std::string root = DIFFTAPE_TEST_SOURCE_DIR;
  put(dir / "sweep.yaml", "base: " + root + R"(/configs/base/text_0.9m.yaml
model: {d_model: 16, num_layers: 1, num_heads: 2, d_ff: 32, max_seq_len: 32}
data: {seq_len: 32, batch_size: 2}
optim: {lr: 3.0e-3}
train: {steps: 120, eval_interval: 20, checkpoint_interval: 120}
sweep:
  arms:  # of several widths, so that no curve covers another
    softmax: {model.attention.kind: softmax}
    diff_v1: {model.attention.kind: diff_v1, model.d_ff: 128}
    diff_v2: {model.attention.kind: diff_v2, model.d_ff: 512}
)");
  const Outcome sweep =
      test::run({"sweep", (dir / "sweep.yaml").string(), "--out", (dir / "out").string()});
  ASSERT_EQ(sweep.exit, 0) << sweep.err;
  const Visit page = visit(dir, with_script(contents(dir / "out/report.html"), kUser));
  EXPECT_THAT(page.console, IsEmpty());
  const Json of_page = results(page);
  for (const Json& chart : of_page["charts"]) {
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

TEST_F(TablesInBrowser, tables_of_a_sweep_equal_the_tables_of_the_study) {
  const auto dirs = write_sweep(dir.path(), 3, 3, 200);
  const Visit page = visit(dir, page_of(dirs));
  const std::vector<Row> runs = collect_runs(dirs).runs;
  const Study study = make_study(runs);
  const std::vector<Rows> summaries = tables(page.dom, "summary");
  ASSERT_EQ(summaries.size(), 3u) << "runs of an arm, every run, own learning rates";
  EXPECT_EQ(summaries[0], arm_table(study, lr_curves(study)).rows);
  EXPECT_EQ(summaries[1].size(), 27u);
  EXPECT_EQ(summaries[2], lr_table(lr_curves(study)).rows);
  const std::vector<Rows> verdicts = tables(page.dom, "verdicts");
  ASSERT_EQ(verdicts.size(), 1u);
  const JudgedClaims claims(test::some_claims(), study.runs());
  EXPECT_EQ(verdicts[0], verdict_table(claims.results).rows);
  EXPECT_THAT(verdicts[0], Not(IsEmpty()));
}

TEST_F(TablesInBrowser, tables_are_sorted_by_the_clicked_header) {
  const auto dirs = write_sweep(dir.path(), 2, 3, 100);
  const Json seen = look(page_of(dirs), R"js(
    {
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
    leave(seen);
    })js");
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

}  // namespace
}  // namespace difftape::study
