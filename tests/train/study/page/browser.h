#pragma once
// Opens pages, such as reports of synthetic runs, in headless chromium.

#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"

namespace difftape::test {

/// Returns the path of chromium; empty if it is not installed.
std::string find_browser();

struct Visit {
  std::string dom;  ///< the document at the end, as HTML
  std::vector<std::string>
      console;  ///< console messages of the page, including errors and warnings
};

/// Opens a page from a file and lets its timers run. Throws std::runtime_error if chromium fails.
Visit visit(const ScratchDir& dir, const std::string& html,
            const std::vector<std::string>& options = {});

/// Appends a script that the policy of the page allows. It may call leave(value) once.
std::string with_script(std::string page, const std::string& script);
/// Returns the value that the script left.
nlohmann::json results(const Visit& visit);

/// Returns the cells of all tables of a class: [table][row][column], without the rows of <thead>.
using Rows = std::vector<std::vector<std::string>>;
std::vector<Rows> tables(const std::string& dom, const std::string& table_class);
/// Replaces entities such as &lt; by characters.
std::string unescape(std::string html);

}  // namespace difftape::test

namespace difftape::study {

/// JavaScript that uses all controls of the page and leaves its observations.
extern const char* const kUser;

struct ReportInBrowser : testing::Test {
  void SetUp() override {
    if (!test::find_browser().empty()) return;
    if (std::getenv("DIFFTAPE_TEST_BROWSER")) {
      FAIL() << "no chromium in PATH; ./dev test installs it";
    } else {
      GTEST_SKIP() << "no chromium in PATH";
    }
  }

  std::string page_of(const std::vector<fs::path>& dirs,
                      const std::string& title = "A comparison") const {
    const std::vector<Row> runs = collect_runs(dirs).runs;
    const Study study = make_study(runs);
    const JudgedClaims claims(some_claims(), study.runs());
    write_report(std::vector{study}, dir / "report.html", title, {.claims = &claims});
    return contents(dir / "report.html");
  }

  /// Returns the value that a script leaves at the end of a page that logs nothing.
  nlohmann::json look(const std::string& html, const std::string& script,
                      const std::vector<std::string>& options = {}) const {
    const test::Visit visit = test::visit(dir, test::with_script(html, script), options);
    EXPECT_THAT(visit.console, IsEmpty());
    return test::results(visit);
  }

  const ScratchDir dir;
};

}  // namespace difftape::study
