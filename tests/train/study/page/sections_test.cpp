// Sections with text and tables.
#include "train/study/page/sections.h"

#include <rapidcheck/gtest.h>

#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "tests/train/study/compare/synthetic_study.h"
#include "train/study/compare/claims/output.h"
#include "train/study/figures/figures.h"
#include "train/study/page/frame.h"
#include "train/system/json.h"

namespace difftape::study::page {
namespace {

using test::SyntheticRun;
using test::write_run;
using testing::AnyOf;

/// Returns the section of runs, in a page in this folder.
std::string runs_html_of(const std::vector<Row>& runs, const fs::path& folder = "") {
  return runs_section(make_studies(runs), folder);
}

TEST(RunsSection, links_the_files_that_each_run_has) {
  const ScratchDir dir;
  const auto run = write_run(dir / "runs/a b#1", {.steps = 50});
  put(run / "stdout.log", "step 1\n");
  const std::vector<Row> runs{load_run(run)};
  fs::remove(run / "config.yaml");
  EXPECT_THAT(runs_html_of(runs, dir / "pages"),
              HasSubstr("<td class=\"left files\"><a href=\"../runs/a%20b%231/metrics.jsonl\">"
                        "metrics</a><a href=\"../runs/a%20b%231/stdout.log\">log</a></td></tr>"))
      << "there is no config.yaml";
}

TEST(RunsSection, marks_each_row_of_a_study_with_the_color_of_its_arm) {
  const std::vector<Row> runs =
      records({{.arm = "diff"}, {.arm = "diff", .seed = 3}, {.arm = "diff_v2", .seed = 2}});
  EXPECT_THAT(runs_html_of(runs), AllOf(HasSubstr("arm-0\"></span>diff</th>"),
                                        HasSubstr("arm-1\"></span>diff_v2</th>")));
}

TEST(RunsSection, explains_the_columns_of_each_table) {
  std::vector<Result> results;
  for (const int seed : {1, 2, 3}) {
    results.push_back({.seed = seed, .loss = 2.3 + 0.01 * seed});
    results.push_back({.arm = "diff_v2", .seed = seed, .loss = 2.2 + 0.02 * seed});
  }
  const std::vector<Row> runs = records(results);
  const std::string html = runs_html_of(runs);
  const std::size_t details = html.find("<details>");
  ASSERT_NE(details, html.npos);
  EXPECT_THAT(
      html.substr(0, details),
      AllOf(HasSubstr("<p class=\"muted note\">Each row is an arm"), HasSubstr("+- is half"),
            HasSubstr("paired by seed"), Not(HasSubstr("train is the mean"))));
  EXPECT_THAT(html.substr(details),
              AllOf(HasSubstr("train is the mean"), Not(HasSubstr("+- is half"))));
}

TEST(LrSection, needs_an_arm_with_two_learning_rates) {
  std::vector<Result> results = {{.lr = 1e-2}, {.arm = "diff_v2", .lr = 2e-2}};
  const auto section = [&] {
    const std::vector<Row> runs = records(results);
    return lr_section(make_studies(runs));
  };
  EXPECT_EQ(section(), "") << "it would be a curve over arms";
  results.push_back({.lr = 2e-2});
  EXPECT_THAT(section(), HasSubstr("<svg"));
}

TEST(VerdictsSection, gives_each_verdict_its_words_and_the_mark_of_the_forest_plot) {
  std::vector<Result> results;
  for (const int seed : {1, 2, 3, 4, 5, 6}) {
    results.push_back({.seed = seed, .loss = 2.3 + 0.001 * (seed % 2)});
    results.push_back(
        {.arm = "diff_v2", .attention = {{"kind", "diff_v2"}}, .seed = seed, .loss = 2});
  }
  const std::vector<Row> runs = records(results);
  const Study study = make_study(runs);
  const JudgedClaims claims(some_claims(), study.runs());
  const std::string html = verdicts_section(claims);
  ASSERT_EQ(claims.results[0].verdict.finding, Finding::supported);
  const std::string icon = svg::verdict_icon(svg::look_of({Finding::supported, true}));
  EXPECT_THAT(html, HasSubstr("<td class=\"left\" data-label=\"verdict\"><span class=\"verdict\">" +
                              icon + "exploratory: supported</span></td>"));
  EXPECT_THAT(html, HasSubstr("data-label=\"measured\">final loss: diff_v2 "));
  EXPECT_THAT(html, HasSubstr("<details><summary>2 claims that these runs do not test</summary>"));
  EXPECT_THAT(svg::verdict_icon(svg::look_of({Finding::contradicted})),
              AllOf(HasSubstr("<svg class=\"icon\""), HasSubstr("aria-hidden=\"true\""),
                    HasSubstr("<polygon points=\"7,0.76 13.24,7 7,13.24 0.76,7\"")));
}

/// Returns a study of runs of the given kind.
struct Runs {
  explicit Runs(const std::vector<SyntheticRun>& all) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      records.push_back(load_run(write_run(dir / std::to_string(i), all[i])));
    }
    study = make_study(records);
  }
  ScratchDir dir;
  std::vector<Row> records;
  Study study;
};

TEST(Settings, shows_differing_keys_and_folds_the_others_away) {
  const std::vector<std::string> runs = {"one", "<two>"};
  const std::string html =
      differences({{"optim.lr", {"1e-3", "1e-2"}}, {"run.seed", {"1", "1"}}}, runs);
  EXPECT_THAT(html, HasSubstr("&lt;two&gt;"));
  EXPECT_THAT(html,
              HasSubstr("<tr><th scope=\"row\">optim.lr</th><td>1e-3</td><td>1e-2</td></tr>"));
  EXPECT_THAT(html, HasSubstr("1 equal in every arm"));
  EXPECT_LT(html.find("optim.lr"), html.find("<details>"));
  EXPECT_GT(html.find("run.seed"), html.find("<details>"));
}

TEST(Settings, of_equal_runs_have_no_differences) {
  const std::vector<std::string> two = {"a", "b"}, one = {"a"};
  EXPECT_THAT(differences({{"run.seed", {"1", "1"}}}, two), HasSubstr("No differences."));
  EXPECT_THAT(differences({{"run.seed", {"1"}}}, one), Not(HasSubstr("No differences.")));
}

TEST(Settings, of_an_arm_are_listed_where_its_runs_differ) {
  std::vector<SyntheticRun> all;
  for (int seed = 1; seed <= 10; ++seed) {
    all.push_back({.name = "a" + std::to_string(seed),
                   .steps = 20,
                   .arm = "a",
                   .lr = fmt::format("{:g}", 0.001 * seed)});
  }
  all.push_back({.name = "b1", .steps = 20, .seed = 1, .arm = "b", .lr = "0.01"});
  const Runs runs(all);
  for (const auto& [key, values] : configs(runs.study)) {
    EXPECT_NE(key, "run.name");
    if (key == "optim.lr") {
      EXPECT_EQ(values, (std::vector<std::string>{"0.001, …, 0.01 (10 values)", "0.01"}));
    }
  }
}

TEST(Settings, notices_mention_only_what_is_missing) {
  Runs runs({{.steps = 20}, {.name = "b", .steps = 20}});
  EXPECT_EQ(notices(runs.study, {}), "");
  runs.records[1].status.state = run::RunState::running;
  const std::vector<std::string> notes = {"left out: <c>"};
  EXPECT_EQ(notices(runs.study, notes),
            "<p class=\"notice\">left out: &lt;c&gt;</p>\n"
            "<p class=\"notice\">1 of 2 runs is not finished; charts show them, but statistics do "
            "not count them.</p>\n");
}

TEST(EscapeHtml, leaves_nothing_that_could_open_a_tag_or_end_an_attribute) {
  EXPECT_EQ(escape_html("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
}

RC_GTEST_PROP(JsonForScript, reads_back_and_never_ends_the_script, (const std::string& text)) {
  const nlohmann::ordered_json json = {{"text", text + "</script><!--"}};
  const std::string safe = json_for_script(json);
  RC_ASSERT(safe.find('<') == std::string::npos);
  const auto valid = nlohmann::ordered_json::parse(
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  RC_ASSERT(system::parse_json(safe) == valid);
}

TEST(CsvLink, contains_the_data) {
  EXPECT_EQ(csv_link("a.csv", "x,1\n<é"),
            "<a class=\"csv\" download=\"a.csv\" "
            "href=\"data:text/csv;charset=utf-8,x,1%0A%3C%C3%A9\">CSV</a>");
}

TEST(MarkedTable, marks_a_diverged_run_and_escapes_names) {
  const system::Table table{
      {{"", "run", true}, {"loss", "train"}, {"loss", "val"}, {"", "state", true}},
      {{"<a>", "1", "2", "diverged at step 3"}}};
  const std::vector<RowMark> diverged{{.arm = 9, .diverged = true}};
  const std::string html = marked_table(table, diverged);
  EXPECT_THAT(html, HasSubstr("<th scope=\"colgroup\" colspan=\"2\">loss</th>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch arm-1 hollow\"></span>&lt;a&gt;</th>"
                              "<td class=\"number\">1</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"left diverged\">diverged at step 3</td>"));
  const std::vector<RowMark> plain(1);
  EXPECT_THAT(marked_table(table, plain),
              Not(AnyOf(HasSubstr("left diverged"), HasSubstr("swatch"))));
}

TEST(MarkedTable, has_no_line_of_groups_without_groups) {
  const system::Table table{{{"", "arm", true}, {"", "lr"}}, {{"a", "1"}}};
  const std::vector<RowMark> marks(1);
  EXPECT_THAT(marked_table(table, marks), Not(HasSubstr("<td></td>")));
}

}  // namespace
}  // namespace difftape::study::page
