// The page of runs one line each, in the browser.
#include <gmock/gmock.h>

#include "tests/train/study/page/report_in_browser.h"
#include "train/study/compare/listing.h"

namespace difftape::study {
namespace {

using namespace test;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Json = nlohmann::json;

class RunListInBrowser : public ReportInBrowser {
 protected:
  std::string page(int refresh_seconds) {
    RunList list;
    list.read(std::vector{dir / "runs"});
    write_run_list(list, dir / "list.html", "<b>runs</b>", refresh_seconds);
    return contents(dir / "list.html");
  }
};

TEST_F(RunListInBrowser, says_how_far_each_run_is_and_links_to_its_files) {
  write_run(dir / "runs/a", {.name = "a", .floor = 2, .steps = 100});
  write_run(dir / "runs/<script>alert(1)<", {.steps = 100, .diverge_at = 42});
  put(dir / "runs/a/stdout.log", "log");
  const Visit seen = visit(dir, page(0));
  EXPECT_THAT(seen.console, IsEmpty());
  const std::vector<Rows> found = tables(seen.dom, "summary");
  ASSERT_EQ(found.size(), 1u);
  ASSERT_EQ(found[0].size(), 2u);
  EXPECT_THAT(unescape(found[0][0][0]), testing::EndsWith("<script>alert(1)<"));
  EXPECT_EQ(found[0][0][1], "diverged");
  EXPECT_EQ(found[0][1][2], "100/100");
  EXPECT_THAT(seen.dom, HasSubstr("<a href=\"runs/a/stdout.log\">"));
  EXPECT_THAT(seen.dom, HasSubstr("<p class=\"answer\">1 finished, 1 diverged</p>"));
}

TEST_F(RunListInBrowser, keeps_its_order_when_it_loads_itself_again) {
  write_run(dir / "runs/a", {.name = "a", .floor = 2, .steps = 100});
  write_run(dir / "runs/b", {.name = "b", .floor = 1, .steps = 100});
  const Json seen = results(visit(dir, with_script(page(5), R"js(
    const names = () =>
      [...document.querySelector('table.summary').tBodies[0].rows].map(row => row.cells[0].textContent.at(-1));
    const loads = Number(sessionStorage.getItem('loads')) + 1;
    sessionStorage.setItem('loads', loads);
    if (loads > 1) for (let timer = 1; timer < 1000; ++timer) clearInterval(timer);
    leave({loads, names: names()});
    [...document.querySelectorAll('table.summary th button')].find(made => made.textContent === 'val').click();
    )js")));
  EXPECT_EQ(seen["loads"], 2);
  EXPECT_EQ(seen["names"], Json({"b", "a"}));
}

}  // namespace
}  // namespace difftape::study
