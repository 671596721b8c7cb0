// `difftape runs`: which runs there are.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "train/app/commands.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/listing.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;

struct RunsArguments {
  std::vector<std::string> dirs;
  bool json = false;
};

/// One after the other, since the metrics of many runs need much memory.
void list_runs(const RunsArguments& a) {
  std::vector<fs::path> dirs(a.dirs.begin(), a.dirs.end());
  if (dirs.empty()) dirs.emplace_back("runs");
  system::Table table = study::run_list();
  std::vector<std::string> left_out;
  std::size_t read = 0;
  for (const fs::path& dir : study::run_directories(dirs)) {
    try {
      const study::RunRecord run = study::load_run(dir);
      ++read;
      if (a.json) {
        fmt::print("{}\n", system::json_text(study::run_object(run)));
      } else {
        table.rows.push_back(study::run_line(run, dir.string()));
      }
    } catch (const Error& error) {
      left_out.emplace_back(error.what());
    }
  }
  if (read == 0) throw DataError(fmt::format("{}", fmt::join(left_out, "\n")));
  if (!a.json) fmt::print("{}", to_text(table));
  for (const std::string& what : left_out) say("left out: " + system::printable(what));
}

}  // namespace

Command runs_command(Context&) {
  auto a = std::make_shared<RunsArguments>();
  return {.name = "runs",
          .help = "List runs: state, steps, losses, spikes",
          .options = {{.name = "DIR",
                       .target = &a->dirs,
                       .help = "Run directories, or directories that hold them (default: runs)"},
                      {"--json", &a->json, "Print one JSON object a line and run"}},
          .run = [a] { list_runs(*a); },
          .examples = {"runs", "runs runs/sweep --json"}};
}

}  // namespace difftape::app
