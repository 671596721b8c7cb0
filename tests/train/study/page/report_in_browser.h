#pragma once
// Pages of made-up runs, opened in chromium.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/train/study/compare/claims/some_claims.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "tests/train/study/page/browser.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"

namespace difftape::study {

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

  const test::ScratchDir dir;
};

}  // namespace difftape::study
