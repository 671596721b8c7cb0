// `difftape runs`: which runs there are, and how far.
#include <fmt/core.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "train/app/commands.h"
#include "train/app/watch.h"
#include "train/run/records/progress.h"
#include "train/study/compare/listing.h"
#include "train/study/page/report.h"
#include "train/study/sweep/run_progress.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;

/// The table of runs that are watched is no longer than a terminal.
constexpr std::size_t kMostLines = 20;

struct RunsArguments {
  std::vector<std::string> names{"runs"};
  bool json = false, watch = false;
  std::string out;

  std::vector<fs::path> dirs() const { return {names.begin(), names.end()}; }
  std::string title() const { return fmt::to_string(fmt::join(names, ", ")); }
};

void say_left_out(const study::RunList& list) {
  for (const std::string& what : list.left_out()) say("left out: " + system::printable(what));
}

void list_runs(const RunsArguments& a) {
  study::RunList list;
  list.read(a.dirs());
  if (list.runs().empty()) throw DataError(fmt::to_string(fmt::join(list.left_out(), "\n")));
  if (!a.json) fmt::print("{}", to_text(list.table()));
  for (const study::ListedRun& run : list.runs()) {
    if (a.json) fmt::print("{}\n", system::json_text(run.object));
  }
  if (!a.out.empty()) write_run_list(list, a.out, a.title());
  say_left_out(list);
}

/// Those that run before those that ended last, which is what somebody who watches looks for.
std::vector<std::string> lines_of(const study::RunList& list) {
  system::Table table = list.table();
  const auto running = [](const auto& row) { return row[1] == "running"; };
  std::ranges::stable_sort(table.rows, [&](const auto& a, const auto& b) {
    return running(a) != running(b) ? running(a) : !running(a) && a.back() > b.back();
  });
  const std::size_t hidden = table.rows.size() - std::min(table.rows.size(), kMostLines);
  table.rows.resize(table.rows.size() - hidden);
  std::vector<std::string> lines{list.states()};
  std::istringstream text(to_text(table));
  for (std::string line; std::getline(text, line);) lines.push_back(line);
  if (hidden > 0) lines.push_back(fmt::format("and {} more", hidden));
  return lines;
}

/// On a terminal a table in place, elsewhere a line whenever a state changes.
system::Exit watch(const RunsArguments& a) {
  study::StatusTable console(std::cout, run::console_style(STDOUT_FILENO));
  study::RunList list;
  std::string said;
  const system::Exit exit = watch_runs(a.dirs(), [&] {
    try {
      list.read(a.dirs());
    } catch (const MissingInput&) {  // no run has begun
      if (said.empty()) console.line(said = "waiting for the first run");
      return Seen::nothing;
    }
    if (!a.out.empty()) write_run_list(list, a.out, a.title(), kRefreshSeconds);
    const std::string states = list.states();
    if (!console.live() && states != said) console.line(said = states);
    console.draw(lines_of(list));
    return list.any_running() ? Seen::some_go_on : Seen::all_have_ended;
  });
  if (!list.runs().empty()) {
    console.line(to_text(list.table()));
    if (!a.out.empty()) write_run_list(list, a.out, a.title());
    say_left_out(list);
  }
  return exit;
}

}  // namespace

Command runs_command(Context& context) {
  auto a = std::make_shared<RunsArguments>();
  return {.name = "runs",
          .help = "List runs: state, steps, losses, spikes",
          .options = {{.name = "DIR",
                       .target = &a->names,
                       .help = "Run directories, or directories that hold them (default: runs)"},
                      {"--json", &a->json, "Print one JSON object a line and run"},
                      {"--watch", &a->watch,
                       "Go on while they are trained, until all have ended or Ctrl-C"},
                      {"--out", &a->out, "A page to write, which with --watch is rewritten"}},
          .run =
              [a, &context] {
                if (!a->out.empty()) require_output_file(a->out, ".html");
                if (a->watch && a->json)
                  throw UsageError("--watch, --json: an object a run is of one moment; choose one");
                if (a->watch) {
                  context.exit = watch(*a);
                } else {
                  list_runs(*a);
                }
              },
          .examples = {"runs", "runs runs/sweep --json", "runs runs/sweep --out runs.html"}};
}

}  // namespace difftape::app
