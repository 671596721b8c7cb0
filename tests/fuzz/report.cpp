// An untrusted run directory: its status.json, env.json, config.yaml, metrics.jsonl and
// the runs.csv above it. Compared with a sound run and listed, on pages in which all of it stays
// text.
#include "train/study/page/report.h"

#include <stdexcept>

#include "tests/fuzz/contract.h"
#include "tests/support/scratch.h"
#include "tests/train/study/compare/synthetic_run.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/study.h"

using namespace difftape;

namespace {

const std::filesystem::path& sound_run() {
  static const std::filesystem::path dir =
      test::write_run(fuzz::folder() / "runs" / "sound", {.steps = 20});
  return dir;
}

/// The number of script elements of an untampered page: data, dygraphs, synchronizer, own.
constexpr std::size_t kMostScripts = 4;

std::size_t scripts_in(std::string_view page) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = page.find("<script", at)) != page.npos; ++at) ++found;
  return found;
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto parts = fuzz::parts_of(fuzz::text_of(data, size), 5);
  const std::filesystem::path runs = sound_run().parent_path();
  std::filesystem::create_directories(runs / "other");
  fuzz::put("runs/other/status.json", parts[0]);
  fuzz::put("runs/other/env.json", parts[1]);
  fuzz::put("runs/other/config.yaml", parts[2]);
  fuzz::put("runs/other/metrics.jsonl", parts[3]);
  fuzz::put("runs/runs.csv", parts[4]);
  fuzz::expect_an_error_at_most(1, [&] {
    const study::Collection found = study::collect_runs(std::vector{runs});
    study::write_report(study::make_studies(found.runs), fuzz::folder() / "report.html", "fuzzed",
                        {.notes = found.notes});
    study::list_runs(std::vector{runs});
    if (scripts_in(test::contents(fuzz::folder() / "report.html")) > kMostScripts)
      throw std::logic_error("text became a script");
  });
  return 0;
}
