#pragma once
// Pages opened in chromium without a window, among them reports of made-up runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/scratch.h"
#include "tests/train/study/compare/claims/two_arms.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"

namespace difftape::test {

/// Path of chromium; empty if there is none.
std::string find_browser();

struct Visit {
  std::string dom;                   ///< the document at the end, as HTML
  std::vector<std::string> console;  ///< what the page logged, errors and warnings too
};

/// Opens a page from a file and lets its timers run. Throws std::runtime_error if chromium fails.
Visit visit(const ScratchDir& dir, const std::string& html,
            const std::vector<std::string>& options = {});

/// The page with a script at its end, which the policy of the page allows. It may call
/// leave(anything) once.
std::string with_script(std::string page, const std::string& script);
/// What the script left.
nlohmann::json results(const Visit& visit);

/// Cells of the tables of a class, as text: [table][row][column], without the rows of <thead>.
using Rows = std::vector<std::vector<std::string>>;
std::vector<Rows> tables(const std::string& dom, const std::string& table_class);
/// &lt; and the like as characters.
std::string unescape(std::string html);

}  // namespace difftape::test

namespace difftape::study {

/// A reader of the page as JavaScript: uses everything on it and leaves what it saw.
extern const char* const kUser;

class ReportInBrowser : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::find_browser().empty()) return;
    if (std::getenv("DIFFTAPE_TEST_BROWSER")) {
      FAIL() << "no chromium in PATH; ./dev test installs it";
    } else {
      GTEST_SKIP() << "no chromium in PATH";
    }
  }

  std::string page_of(const std::vector<std::filesystem::path>& dirs,
                      const std::string& title = "A comparison") const {
    const std::vector<RunRecord> runs = collect_runs(dirs).runs;
    const Study study = make_study(runs);
    const JudgedClaims claims(test::some_claims(), study.runs());
    write_report(study, dir / "report.html", title, {.claims = &claims});
    return test::contents(dir / "report.html");
  }

  /// What a script leaves at the end of a page that logs nothing.
  nlohmann::json look(const std::string& html, const std::string& script,
                      const std::vector<std::string>& options = {}) const {
    const test::Visit visit = test::visit(dir, test::with_script(html, script), options);
    EXPECT_THAT(visit.console, testing::IsEmpty());
    return test::results(visit);
  }

  const test::ScratchDir dir;
};

}  // namespace difftape::study
