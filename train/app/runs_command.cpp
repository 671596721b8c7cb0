// `difftape runs` and `difftape diff`: lists runs with their progress, and compares two runs.

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <memory>
#include <set>

#include "train/app/commands.h"
#include "train/run/records/metrics_difference.h"
#include "train/run/records/run_files.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/row.h"
#include "train/system/files.h"
#include "train/system/json.h"
#include "train/system/number.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

struct RunsArguments {
  std::vector<std::string> dirs{"runs"};
  bool json = false;
};

void list_runs(const RunsArguments& a) {
  throw_if<MissingInput>(a.dirs == RunsArguments().dirs && !system::is_there(a.dirs.front()),
                         "no runs in ./{} yet; train one with difftape train CONFIG",
                         a.dirs.front());
  const std::vector<std::filesystem::path> dirs(a.dirs.begin(), a.dirs.end());
  const study::RunList list = study::list_runs(dirs);
  if (list.runs.empty()) throw DataError(fmt::to_string(fmt::join(list.left_out, "\n")));
  if (!a.json) fmt::print("{}", to_text(study::table_of(list.runs)));
  for (const study::ListedRun& run : list.runs)
    if (a.json) fmt::print("{}\n", system::json_text(run.object));
  for (const std::string& what : list.left_out) say("left out: " + system::printable(what));
}

}  // namespace

void runs_command(CLI::App& program, Context&) {
  auto a = std::make_shared<RunsArguments>();
  CLI::App& command = add_command(program, "runs", "List runs: state, steps, losses, spikes",
                                  {"runs", "runs runs/sweep --json"});
  add_option(command, "DIR", a->dirs, "Run directories, or folders of runs (default: runs)");
  command.add_flag("--json", a->json, "Print one JSON object per run and line");
  command.callback([a] { list_runs(*a); });
}

namespace {

struct DiffArguments {
  std::string a, b;
  bool all = false, exit_code = false;
};

using Json = nlohmann::ordered_json;
using run::KeyDifference;

/// Returns env.json without the command, flattened to paths.
Json environment_of(const run::RunDir& run) {
  Json env = run.env, flat = Json::object();
  env.erase("command");
  if (env.empty()) return flat;  // nlohmann would return null without a path
  const Json paths = env.flatten();
  for (const auto& [path, value] : paths.items()) flat[path.substr(1)] = value;
  return flat;
}

/// Returns the keys in which two flat objects differ, "-" for a missing one: in the order of `a`,
/// then keys that only `b` has.
std::vector<KeyDifference> different_values(const Json& a, const Json& b) {
  const auto text = [](const Json& object, const std::string& key) -> std::string {
    const auto found = object.find(key);
    if (found == object.end()) return "-";
    return found->is_string() ? found->get<std::string>() : system::json_text(*found);
  };
  std::vector<KeyDifference> found;
  for (const auto& [key, value] : a.items())
    if (!b.contains(key) || b.at(key) != value) found.push_back({key, text(a, key), text(b, key)});
  for (const auto& [key, value] : b.items())
    if (!a.contains(key)) found.push_back({key, "-", text(b, key)});
  return found;
}

void print_values(const char* head, const std::vector<KeyDifference>& values) {
  if (values.empty()) {
    fmt::print("{}: equal\n\n", head);
    return;
  }
  system::Table table{{{"", head, true}, {"", "A", true}, {"", "B", true}}, {}};
  for (const auto& [key, a, b] : values) table.rows.push_back({key, a, b});
  fmt::print("{}\n", to_text(table));
}

/// Prints differing metrics: the first of each family, or `all`.
void print_metrics(const run::MetricsDifference& found, bool all) {
  fmt::print("{} steps in both, {} only in A, {} only in B\n", found.common_steps, found.only_in_a,
             found.only_in_b);
  if (found.common_steps > 0 && found.metrics.empty())
    fmt::print("all metrics of both are bitwise equal at these steps\n");
  system::Table table{
      {{"", "differs first at step"}, {"", "metric", true}, {"", "A", true}, {"", "B", true}}, {}};
  std::set<std::string> seen;
  for (const auto& [name, step, a, b] : found.metrics) {
    if (!seen.insert(run::family_of(name)).second && !all) continue;
    table.rows.push_back(
        {std::to_string(step), name, system::json_number(a), system::json_number(b)});
  }
  if (!table.rows.empty()) fmt::print("{}", to_text(table));
  if (const std::size_t more = found.metrics.size() - table.rows.size(); more > 0)
    fmt::print("and {} of other layers, heads and parameters; --all shows them\n", more);
}

/// Prints the names of metrics that only one run logged: of families, or `all`.
void print_names(const char* run, const std::vector<std::string>& names, bool all) {
  std::set<std::string> shown;
  for (const std::string& name : names) shown.insert(all ? name : run::family_of(name));
  std::string line = fmt::format("logged only in {}:", run);
  for (const std::string& name : shown) line += " " + system::printable(name);
  if (!shown.empty()) fmt::print("{}", system::wrapped(line, system::kTextWidth, ""));
}

void compare_runs(const DiffArguments& arguments, Context& context) {
  for (const std::string& dir : {arguments.a, arguments.b}) run::require_run_dir(dir);
  const study::LoadedRun a = study::load_directory(arguments.a),
                         b = study::load_directory(arguments.b);
  const run::MetricsDifference found = difference(a.metrics, b.metrics);
  print_values("configuration", run::differences(a.config, b.config));
  print_values("environment", different_values(environment_of(a), environment_of(b)));
  print_metrics(found, arguments.all);
  print_names("A", found.metrics_of_a, arguments.all);
  print_names("B", found.metrics_of_b, arguments.all);
  study::ListedRun ends[] = {study::listed(reduced(a)), study::listed(reduced(b))};
  ends[0].cells[0] = "A";
  ends[1].cells[0] = "B";
  fmt::print("\n{}", to_text(study::table_of(ends)));
  if (arguments.exit_code && !found.same_numbers()) context.exit = system::Exit::check_failed;
}

}  // namespace

void diff_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<DiffArguments>();
  CLI::App& command = add_command(program, "diff", "Show how two runs differ, and from which step",
                                  {"diff runs/mine runs/mine-2"});
  add_option(command, "RUN_A", a->a, "Run directory")->required();
  add_option(command, "RUN_B", a->b, "Run directory")->required();
  command.add_flag("--all", a->all,
                   "Show every layer, head and parameter instead of the first of each metric");
  command.add_flag("--exit-code", a->exit_code,
                   "Exit with 1 if any bit of the logged numbers differs");
  command.callback([a, &context] { compare_runs(*a, context); });
}

}  // namespace difftape::app
