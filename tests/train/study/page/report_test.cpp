#include "train/study/page/report.h"

#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"
#include "train/study/page/frame.h"

namespace difftape::study {
namespace {

using test::SyntheticRun;
using test::write_run;
using Ordered = nlohmann::ordered_json;

constexpr std::size_t kLimit = 2'000'000;

std::string report_of(const ScratchDir& dir, const std::vector<SyntheticRun>& runs,
                      const std::string& title = "A comparison") {
  std::vector<fs::path> dirs;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    dirs.push_back(write_run(dir / std::to_string(i), runs[i]));
  }
  const std::vector<Row> records = collect_runs(dirs).runs;
  const Study study = make_study(records);
  const JudgedClaims claims(some_claims(), study.runs());
  write_report(std::vector{study}, dir / "report.html", title,
               {.claims = study.arms.size() > 1 ? &claims : nullptr});
  return contents(dir / "report.html");
}

/// Returns the text between two markers, which must exist.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const std::size_t from = text.find(begin);
  if (from == std::string::npos) return ADD_FAILURE() << "no " << begin, "";
  return text.substr(from + begin.size(), text.find(end, from) - from - begin.size());
}

Ordered data_of(const std::string& page) {
  return Ordered::parse(
      between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

TEST(Report, loads_no_external_resources) {
  const ScratchDir dir;
  const std::string with_links = report_of(dir, {{}, {.name = "diff_v2", .kind = "diff_v2"}});
  // A license comment may contain a URL; elements that load may not.
  // Links to the files of runs load only after a click.
  std::string page = with_links;
  for (std::size_t at; (at = page.find("<a href=\"0/")) != std::string::npos ||
                       (at = page.find("<a href=\"1/")) != std::string::npos;) {
    page.erase(at, page.find('>', at) - at);
  }
  ASSERT_LT(page.size(), with_links.size());
  const std::regex loads(
      R"re((src|href)\s*=\s*["'](?!data:|#)|\burl\(|@import|<link|<iframe|import\s*\(|fetch\s*\(|sourceMappingURL)re",
      std::regex::icase);
  std::smatch found;
  EXPECT_FALSE(std::regex_search(page, found, loads)) << found.str();
  EXPECT_THAT(page, testing::ContainsRegex(
                        "Content-Security-Policy\" content=\"default-src 'none'; "
                        "base-uri 'none'; form-action 'none'; "
                        "style-src 'unsafe-inline'; script-src 'nonce-[0-9a-f]{32}'\">"));
}

TEST(Report, inlines_styles_scripts_and_data_once_without_breaking_out) {
  const ScratchDir dir;
  const std::string page = report_of(dir, {{}});
  EXPECT_EQ(count(page, "<script"), 4u) << "data, dygraphs, its synchronizer, the page's own";
  EXPECT_EQ(count(page, "</script"), 4u);
  EXPECT_EQ(count(page, "</style"), 1u);
  EXPECT_THAT(page, HasSubstr("Dygraph.synchronize = synchronize"));
  for (const std::string_view script :
       {assets::dygraph_js(), assets::synchronizer_js(), assets::page_js()}) {
    EXPECT_GT(script.size(), 1000u);
    EXPECT_EQ(script.find("<!--"), std::string_view::npos);
  }
}

TEST(Report, is_readable_without_javascript) {
  const ScratchDir dir;
  std::string page = report_of(dir, {{.command = {"difftape", "train", "a b.yaml"}},
                                     {.name = "diff_v1", .kind = "diff_v1", .diverge_at = 400}});
  page = page.substr(0, page.find("<script"));
  EXPECT_THAT(page, HasSubstr("<title>A comparison</title>"));
  EXPECT_THAT(page, HasSubstr("<h1>A comparison</h1>"));
  EXPECT_THAT(page, HasSubstr("820,224"));
  EXPECT_THAT(page, HasSubstr("diverged at step 400 (train/loss)"));
  EXPECT_THAT(page, HasSubstr("<th scope=\"row\">model.attention.kind</th><td>softmax</td>"
                              "<td>diff_v1</td>"));
  EXPECT_EQ(page.find("<th scope=\"row\">run.name"), std::string::npos)
      << "a name is not a difference";
}

TEST(Report, begins_with_the_design_then_shows_runs_curves_and_verdicts) {
  const ScratchDir dir;
  const std::string page =
      report_of(dir, {{.floor = 2.3}, {.name = "diff_v2", .kind = "diff_v2", .floor = 2.2}});
  const std::vector<std::string> order = {
      "<p>2 runs: 2 arms. None diverged. Baseline: softmax.</p>", "<section id=\"runs\">",
      "<section id=\"curves\">", "<section id=\"verdicts\">", "<section id=\"config\">"};
  for (std::size_t at = 0; const std::string& part : order) {
    const std::size_t found = page.find(part, at);
    ASSERT_NE(found, std::string::npos) << part;
    at = found;
  }
  EXPECT_EQ(count(page, "<table class=\"verdicts\">"), 0u) << "one seed tests nothing";
  EXPECT_THAT(between(page, "<section id=\"verdicts\">", "</section>"),
              HasSubstr("<details><summary>3 claims that these runs do not test</summary>"));
}

TEST(Report, of_a_single_run_has_no_baseline_and_no_verdicts) {
  const ScratchDir dir;
  const std::string page = report_of(dir, {{}});
  EXPECT_THAT(page, HasSubstr("<p>1 run. None diverged.</p>"));
  EXPECT_THAT(page, Not(HasSubstr("id=\"verdicts\"")));
  EXPECT_THAT(page, Not(HasSubstr("Baseline:")));
}

TEST(Report, draws_the_logged_curves_with_spikes_and_divergence) {
  const ScratchDir dir;
  const Ordered data = data_of(
      report_of(dir, {{.spike_at = 300}, {.name = "diff_v1", .steps = 500, .diverge_at = 400}}));
  EXPECT_EQ(data["arms"].dump(), R"(["softmax","diff_v1"])");
  EXPECT_EQ(data["conditions"][0]["diverged"].dump(), "[]");
  EXPECT_EQ(data["conditions"][1]["diverged"].dump(), "[400]");
  ASSERT_EQ(data["charts"].size(), 3u);
  const Ordered &loss = data["charts"][0], &val = data["charts"][1], &grad = data["charts"][2];
  EXPECT_EQ(loss["metric"], "train/loss");
  EXPECT_EQ(val["metric"], "val/loss");
  EXPECT_EQ(grad["metric"], "optim/grad_norm");
  EXPECT_FALSE(loss["log"]);
  EXPECT_TRUE(grad["log"]);
  EXPECT_EQ(loss["lines"][0]["step"].size(), 500u);
  EXPECT_EQ(loss["lines"][1]["step"].back(), 399) << "the value at 400 is not finite";
  EXPECT_EQ(val["lines"][0]["step"].dump(), "[50,100,150,200,250,300,350,400,450,500]");
  EXPECT_EQ(grad["lines"][0]["spike_step"].dump(), "[300]");
  EXPECT_EQ(grad["lines"][1]["spike_step"].dump(), "[]");
  const double written =
      run::read_metrics(dir / "0/metrics.jsonl").columns.at("optim/grad_norm")[299];
  EXPECT_NEAR(grad["lines"][0]["spike_value"][0].get<double>(), written, 1e-5 * written);
}

TEST(Report, stays_below_2_mb_for_many_long_runs_and_keeps_their_peaks) {
  const ScratchDir dir;
  std::vector<SyntheticRun> runs;
  for (int i = 0; i < 12; ++i) {
    runs.push_back({.name = "run" + std::to_string(i), .steps = 5000, .spike_at = 3456});
  }
  const std::string page = report_of(dir, runs);
  EXPECT_LT(page.size(), kLimit);
  const Ordered data = data_of(page);
  for (const Ordered& curve : data["charts"][2]["lines"]) {
    EXPECT_THAT(curve["step"].get<std::vector<int>>(), testing::Contains(3456));
    EXPECT_THAT(curve["spike_step"].get<std::vector<int>>(), testing::Contains(3456));
  }
}

TEST(Report, says_how_many_attention_maps_it_omits) {
  const ScratchDir dir;
  std::vector<SyntheticRun> runs;
  for (int i = 0; i < 18; ++i)
    runs.push_back({.name = "run" + std::to_string(i), .steps = 50, .layers = 1, .maps = 1});
  const std::string page = report_of(dir, runs);
  EXPECT_EQ(data_of(page)["attention"].size(), 16u);
  EXPECT_THAT(page, HasSubstr("The attention maps of 2 more arms are omitted"));
}

TEST(Report, without_curves_contains_no_library_of_charts) {
  const ScratchDir dir;
  Row run = record({});
  metrics_of(run) = {};  // as a line of runs.csv
  const std::vector<Row> runs{run};
  write_report(make_studies(runs), dir / "row.html", "a row");
  EXPECT_LT(contents(dir / "row.html").size(), 60'000u) << "dygraphs alone has 125 kB";
}

TEST(Report, stays_below_2_mb_with_all_sections) {
  const ScratchDir dir;
  std::vector<SyntheticRun> twelve;
  for (int i = 0; i < 12; ++i) {
    twelve.push_back({.name = "run" + std::to_string(i),
                      .steps = 2000,
                      .layers = 12,
                      .maps = 3,
                      .answers = true});
  }
  const std::string page = report_of(dir, twelve);
  EXPECT_LT(page.size(), kLimit);
  EXPECT_EQ(data_of(page)["attention"].size(), 12u) << "one head of each";
  EXPECT_EQ(data_of(page)["maps"]["layers"][0]["panels"].size(), 12u);
}

TEST(Report, of_a_sweep_of_63_runs_stays_below_2_mb) {
  const ScratchDir dir;
  const auto dirs = test::write_sweep(dir.path(), 7, 3, 1000);
  const std::vector<Row> runs = collect_runs(dirs).runs;
  write_report(make_studies(runs), dir / "report.html", "sweep");
  const std::string page = contents(dir / "report.html");
  EXPECT_LT(page.size(), kLimit);
  const Ordered data = data_of(page);
  EXPECT_EQ(data["lrs"].dump(), R"(["3e-4","1e-3","3e-3","0.01","0.03","0.1","0.3"])");
  EXPECT_EQ(data["lr"], 2) << "where the baseline is best";
  EXPECT_EQ(data["charts"][0]["levels"].dump(), R"([{"name":"best achievable","y":1.9}])");
  EXPECT_EQ(data["conditions"].size(), 21u);
  EXPECT_EQ(data["conditions"][6]["diverged"].dump(), "[333,333]");
  EXPECT_EQ(data["charts"][0]["lines"].size(), 21u);
  EXPECT_GT(data["charts"][0]["lines"][0]["low"].size(), 300u);
  EXPECT_THAT(page, HasSubstr("63 runs: 3 arms, 7 peak learning rates, 3 seeds. 5 diverged."));
}

TEST(Report, notes_unreadable_attention_maps_and_continues) {
  const ScratchDir dir;
  const auto run = write_run(dir / "a", {.steps = 50});
  put(run / "attention_maps.h5", "not HDF5");
  const std::vector<Row> runs{load_run(run)};
  write_report(make_studies(runs), dir / "r.html", "");
  EXPECT_THAT(contents(dir / "r.html"), HasSubstr("a/attention_maps.h5"));
}

TEST(Report, of_a_task_draws_accuracy_below_the_best_achievable_and_exact_matches) {
  const ScratchDir dir;
  const std::string page = report_of(dir, {{.answers = true, .best_accuracy = 0.96}});
  const Ordered data = data_of(page);
  EXPECT_EQ(data["charts"][3]["levels"].dump(), R"([{"name":"best achievable","y":0.96}])");
  EXPECT_EQ(data["charts"][0]["levels"].dump(), "[]");
  EXPECT_EQ(data["charts"][3]["title"], "Validation accuracy");
  EXPECT_EQ(data["charts"][3]["unit"], "fraction of scored targets");
  EXPECT_EQ(data["charts"][4]["title"], "Exact match");
  EXPECT_EQ(data["charts"][4]["levels"].dump(), "[]");
  EXPECT_THAT(page, HasSubstr("<section id=\"accuracy\">"));
}

TEST(Comparison, of_a_sweep_has_all_files_and_removes_those_of_an_earlier_one) {
  const ScratchDir dir;
  const auto dirs = test::write_sweep(dir / "sweep", 3, 1, 100);
  const std::vector<Row> runs = collect_runs(dirs).runs;
  require_comparison_folder(dir / "out");
  write_comparison(make_studies(runs), "title", {}, dir / "out");
  EXPECT_THAT(contents(dir / "out/lr_curve.svg"), StartsWith("<svg xmlns="));
  EXPECT_THAT(contents(dir / "out/lr_optimum.csv"), StartsWith("arm,model.d_model,"));
  EXPECT_TRUE(fs::exists(dir / "out/summary.txt"));
  EXPECT_FALSE(fs::exists(dir / "out/verdicts.csv")) << "there are no claims";
  const std::vector<Row> one_rate{runs[0], runs[4]};
  write_comparison(make_studies(one_rate), "title", {}, dir / "out");
  EXPECT_FALSE(fs::exists(dir / "out/lr_optimum.csv"));
}

TEST(Comparison, replaces_nothing_in_a_folder_of_other_files) {
  const ScratchDir dir;
  fs::create_directory(dir / "mine");
  put(dir / "mine/lr_optimum.csv", "precious");
  EXPECT_THAT(
      [&] { require_comparison_folder(dir / "mine"); },
      ThrowsMessage<OutputError>(HasSubstr("contains files, but no report.html of difftape")));
  put(dir / "mine/report.html", "my own report");
  EXPECT_THROW(require_comparison_folder(dir / "mine"), OutputError);
  require_comparison_folder(dir / "new");
  EXPECT_TRUE(fs::is_directory(dir / "new"));
}

/// Two arms of three seeds at their own rates, and a claim in a user's words.
struct UsersWords : testing::Test {
  std::vector<Row> runs = [] {
    std::vector<Result> results;
    for (const int seed : {1, 2, 3}) {
      results.push_back({.arm = "v2", .lr = 2e-3, .seed = seed, .loss = 2 + 0.1 * seed});
      results.push_back({.arm = "softmax", .seed = seed, .loss = 2.1 + 0.11 * seed});
    }
    return records(results);
  }();
  ClaimsFile file = claims_from_text(
      "claims: {c: {statement: V2 leads by the published 0.02 nats per token, arm: v2, reference: "
      "softmax, metric: val_loss, lr: own}}\nlearning_rates: lr_star.csv\n",
      "c.yaml");
};

TEST_F(UsersWords, are_not_rewritten_on_the_page_and_in_figures) {
  file.claims[0].own_lr.clear();
  for (Row& run : runs) run.lr = 1e-3;
  const ScratchDir dir;
  const Study study = make_study(runs);
  const JudgedClaims claims(file, study.runs());
  write_comparison(std::vector{study}, "nats per token", {{}, &claims}, dir.path());
  for (const char* name : {"report.html", "forest.svg", "summary.txt"}) {
    const std::string text = contents(dir / name);
    EXPECT_THAT(text, testing::ContainsRegex("published[^<]*0.02")) << name;
    EXPECT_THAT(text, Not(testing::ContainsRegex("0.02 nats per byte"))) << name;
    EXPECT_THAT(text, HasSubstr("nats per byte")) << name << ": its own words have the unit";
  }
  EXPECT_THAT(contents(dir / "report.html"), HasSubstr("<h1>nats per token</h1>"));
}

TEST(Report, text_from_a_run_stays_text) {
  const ScratchDir dir;
  const std::string attack = "</script><script>alert(1)</script>{data}{{";
  const std::string page = report_of(dir, {{.arm = attack}}, attack);
  EXPECT_EQ(count(page, "<script"), 4u);
  EXPECT_EQ(data_of(page)["arms"][0], attack);
  EXPECT_THAT(page, HasSubstr("<h1>&lt;/script&gt;&lt;script&gt;alert(1)&lt;/script&gt;"));
}

TEST(Report, needs_a_place_to_write) {
  const ScratchDir dir;
  const std::vector<Row> runs{load_run(write_run(dir / "a", {}))};
  EXPECT_THAT(
      [&] { write_report(make_studies(runs), "/nowhere/r.html", ""); },
      ThrowsMessage<OutputError>("cannot write /nowhere/r.html: No such file or directory"));
}

}  // namespace
}  // namespace difftape::study
