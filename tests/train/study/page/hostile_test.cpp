// Reports of hostile run directories, in chromium.
#include <sys/stat.h>

#include "tests/train/study/page/browser.h"

namespace difftape::study {
namespace {

using namespace test;
using testing::Contains;
using Json = nlohmann::json;

/// Returns elements and events on the page that text alone cannot create.
constexpr const char* kWitness = R"js(
  const all = [...document.querySelectorAll('*')];
  leave({
    ran: window.ran ?? false,
    scripts: document.querySelectorAll('script:not([nonce]):not([type="application/json"])').length,
    handlers: all.filter(e => e.getAttributeNames().some(name => name.startsWith('on'))).length,
    foreign: document.querySelectorAll('iframe, object, embed, form, base, link, audio, video').length,
    images: document.images.length,
    links: [...document.links].filter(link => !/^(file|data):/.test(link.protocol)).length,
    drawn: document.querySelectorAll('canvas').length});)js";

void expect_text_alone(const Visit& page) {
  const Json seen = results(page);
  EXPECT_FALSE(seen["ran"]);
  for (const char* count : {"scripts", "handlers", "foreign", "images", "links"})
    EXPECT_EQ(seen[count], 0) << count;
}

/// Returns the inputs of tests/fuzz/report.cpp as run directories.
std::vector<fs::path> write_fuzzed(const fs::path& folder) {
  std::vector<fs::path> runs;
  const fs::path corpus = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "tests/fuzz/corpus/report";
  for (const auto& entry : fs::directory_iterator(corpus)) {
    const fs::path run = folder / entry.path().filename();
    fs::create_directories(run);
    std::string rest = contents(entry.path());
    for (const char* name : {"status.json", "env.json", "config.yaml", "metrics.jsonl"}) {
      const std::size_t end = std::min(rest.find("%%%%\n"), rest.size());
      put(run / name, rest.substr(0, end));
      rest.erase(0, end + 5);
    }
    runs.push_back(run);
  }
  return runs;
}

TEST_F(ReportInBrowser, fuzzed_run_directories_yield_only_text_and_numbers) {
  std::vector<fs::path> runs = write_fuzzed(dir / "runs");
  ASSERT_GT(runs.size(), 40u);
  ASSERT_GE(collect_runs(runs).runs.size(), 20u) << "most can be compared";
  const Visit page = visit(dir, with_script(page_of(runs), kWitness));
  EXPECT_THAT(page.console, IsEmpty());
  expect_text_alone(page);
  EXPECT_GT(results(page)["drawn"], 3);
}

TEST_F(ReportInBrowser, symbolic_links_and_pipes_in_a_run_directory_are_harmless) {
  const fs::path sound = write_run(dir / "runs/sound", {.maps = 1}), secret = dir / "secret";
  put(secret, "the key of somebody");
  const auto run_without = [&](const std::string& name) {
    const fs::path run = dir / "runs" / ("without " + name);
    fs::copy(sound, run, fs::copy_options::recursive);
    fs::remove(run / name);
    return run / name;
  };
  fs::create_symlink(secret, run_without("metrics.jsonl"));
  fs::create_symlink("/dev/zero", run_without("env.json"));
  fs::create_symlink("env.json", run_without("status.json"));
  ASSERT_EQ(mkfifo(run_without("attention_maps.h5").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo(run_without("lock").c_str(), 0600), 0);
  ASSERT_EQ(mkfifo((dir / "runs/runs.csv").c_str(), 0600), 0);
  fs::create_directory_symlink("..", dir / "runs/above");
  fs::create_directory_symlink("round", dir / "runs/round");
  EXPECT_THROW(page_of({dir / "runs"}), Error) << "runs.csv is a pipe";
  fs::remove(dir / "runs/runs.csv");
  const std::string html = page_of({dir / "runs"});
  EXPECT_EQ(html.find("the key of"), html.npos);
  expect_text_alone(visit(dir, with_script(html, kWitness)));
}

TEST_F(ReportInBrowser, injected_scripts_are_blocked_by_the_policy) {
  std::string page = page_of({write_run(dir / "1", {})});
  page.insert(page.rfind("</main>"),
              "<script>ran = 1</script><script nonce=\"0\">ran = 1</script>"
              "<img src=x onerror=\"ran = 1\"><svg onload=\"ran = 1\"></svg>"
              "<iframe srcdoc=\"<script>parent.ran = 1</script>\"></iframe>"
              "<a id=\"lure\" href=\"javascript:void(ran = 1)\">more</a>");
  const Visit seen = visit(dir, with_script(page, std::string("lure.click();") + kWitness));
  EXPECT_FALSE(results(seen)["ran"]);
  EXPECT_EQ(results(seen)["handlers"], 2) << "what a text alone could not make would be seen";
  EXPECT_THAT(seen.console, Contains(HasSubstr("Content Security Policy")));
  const Visit open =
      visit(dir, with_script("<body><img src=x onerror=\"ran = 1\"></body>",
                             std::string("setTimeout(() => {") + kWitness + "}, 500);"));
  EXPECT_EQ(results(open)["ran"], 1) << "without the policy it runs";
}

}  // namespace
}  // namespace difftape::study
