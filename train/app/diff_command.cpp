// `difftape diff`: what two runs differ in.
#include <fmt/core.h>

#include <memory>
#include <set>

#include "train/app/commands.h"
#include "train/run/records/run_files.h"
#include "train/study/compare/listing.h"
#include "train/study/compare/run_difference.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

struct DiffArguments {
  std::string a, b;
  bool all = false, exit_code = false;
};

std::string or_dash(const std::optional<std::string>& text) { return text.value_or("-"); }

void print_values(const char* head, const std::vector<study::DifferentValue>& values) {
  if (values.empty()) {
    fmt::print("{}: the same\n\n", head);
    return;
  }
  system::Table table{{{"", head, true}, {"", "A", true}, {"", "B", true}}, {}};
  for (const auto& [key, a, b] : values) table.rows.push_back({key, or_dash(a), or_dash(b)});
  fmt::print("{}\n", to_text(table));
}

/// The first of each family, unless `all` are asked for.
void print_metrics(const study::RunDifference& found, bool all) {
  fmt::print("{} steps in both, {} in A alone, {} in B alone\n", found.common_steps,
             found.only_in_a, found.only_in_b);
  if (found.common_steps > 0 && found.metrics.empty())
    fmt::print("no metric of both differs in any bit at these steps\n");
  system::Table table{
      {{"", "differs first at step"}, {"", "metric", true}, {"", "A", true}, {"", "B", true}}, {}};
  std::set<std::string> seen;
  for (const auto& [name, step, a, b] : found.metrics) {
    if (!seen.insert(run::family_of(name)).second && !all) continue;
    table.rows.push_back({std::to_string(step), name, run::number_text(a), run::number_text(b)});
  }
  if (!table.rows.empty()) fmt::print("{}", to_text(table));
  if (const std::size_t more = found.metrics.size() - table.rows.size(); more > 0)
    fmt::print("and {} of other layers, heads and parameters; --all shows them\n", more);
}

/// The names, of families unless `all` are asked for.
void print_names(const char* run, const std::vector<std::string>& names, bool all) {
  std::set<std::string> shown;
  for (const std::string& name : names) shown.insert(all ? name : run::family_of(name));
  std::string line = fmt::format("logged in {} alone:", run);
  for (const std::string& name : shown) line += " " + system::printable(name);
  if (!shown.empty()) fmt::print("{}", system::wrapped(line, system::kTextWidth, ""));
}

void compare_runs(const DiffArguments& arguments, Context& context) {
  for (const std::string& dir : {arguments.a, arguments.b}) run::require_run_dir(dir);
  const study::RunRecord a = study::load_run(arguments.a), b = study::load_run(arguments.b);
  const study::RunDifference found = difference(a, b);
  print_values("configuration", found.config);
  print_values("environment", found.environment);
  print_metrics(found, arguments.all);
  print_names("A", found.metrics_of_a, arguments.all);
  print_names("B", found.metrics_of_b, arguments.all);
  study::ListedRun ends[] = {study::listed(a), study::listed(b)};
  ends[0].cells[0] = "A";
  ends[1].cells[0] = "B";
  fmt::print("\n{}", to_text(study::table_of(ends)));
  if (arguments.exit_code && !found.same_numbers()) context.exit = system::Exit::check_failed;
}

}  // namespace

void diff_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<DiffArguments>();
  CLI::App& command = add_command(
      program, "diff",
      "What two runs differ in: configuration, environment, and from which step on numbers",
      {"diff runs/mine runs/mine-2"});
  add_option(command, "RUN_A", a->a, "Run directory")->required();
  add_option(command, "RUN_B", a->b, "Run directory")->required();
  command.add_flag("--all", a->all,
                   "Show every layer, head and parameter, not the first of each metric alone");
  command.add_flag("--exit-code", a->exit_code,
                   "Exit with 1 if the runs logged other numbers, in any bit (default: 0)");
  command.callback([a, &context] { compare_runs(*a, context); });
}

}  // namespace difftape::app
