// `difftape runs`: which runs there are, and how far.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>

#include "train/app/commands.h"
#include "train/study/compare/collection.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

struct RunsArguments {
  std::vector<std::string> dirs{"runs"};
  bool json = false;
};

void list_runs(const RunsArguments& a) {
  const std::vector<std::filesystem::path> dirs(a.dirs.begin(), a.dirs.end());
  const study::RunList list = study::list_runs(dirs);
  if (list.runs.empty()) throw DataError(fmt::to_string(fmt::join(list.left_out, "\n")));
  if (!a.json) fmt::print("{}", to_text(study::table_of(list.runs)));
  for (const study::ListedRun& run : list.runs) {
    if (a.json) fmt::print("{}\n", system::json_text(run.object));
  }
  for (const std::string& what : list.left_out) say("left out: " + system::printable(what));
}

}  // namespace

void runs_command(CLI::App& program, Context&) {
  auto a = std::make_shared<RunsArguments>();
  CLI::App& command = add_command(program, "runs", "List runs: state, steps, losses, spikes",
                                  {"runs", "runs runs/sweep --json"});
  add_option(command, "DIR", a->dirs,
             "Run directories, or directories that hold them (default: runs)");
  command.add_flag("--json", a->json, "Print one JSON object a line and run");
  command.callback([a] { list_runs(*a); });
}

}  // namespace difftape::app
