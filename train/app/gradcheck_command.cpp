#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <regex>
#include <span>
#include <type_traits>

#include "core/parallel.h"
#include "train/app/commands.h"
#include "train/app/gradcheck/cases.h"

namespace difftape::app {
namespace {

/// Executes difftape-f64, the same program in double precision, in the folder of this one. Returns
/// only on failure, with an exception.
[[maybe_unused]] void hand_over_to_f64(const std::vector<std::string>& command_line) {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path f64 = self.string() + "-f64";
  std::vector<char*> arguments;
  for (const std::string& word : command_line) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(f64.c_str(), arguments.data());
  throw MissingInput(
      fmt::format("{}: {}; this program checks gradients in double precision and must be in the "
                  "folder of {}",
                  f64.string(), std::strerror(errno), self.filename().string()));
}

std::regex filter_regex(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("--filter: '{}' is not a valid regular expression: {}", text, error.what()));
  }
}

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

GradcheckResult run_case(const GradcheckCase& c) {
  try {
    return c.run();
  } catch (const std::exception& error) {
    GradcheckResult result;
    result.failure = error.what();
    return result;
  }
}

/// Totals over cases.
struct Tally {
  Index cases = 0, elements = 0, zeros = 0, failures = 0;
  double worst = 0, seconds = 0;

  void add(const Tally& more) {
    cases += more.cases;
    elements += more.elements;
    zeros += more.zeros;
    failures += more.failures;
    if (!(more.worst <= worst)) worst = more.worst;
    seconds += more.seconds;
  }
};

/// Checks the cases of one group, and prints their row and the failures.
Tally check_group(std::span<const GradcheckCase> group) {
  struct Outcome {
    GradcheckResult result;
    double seconds = 0;
  };
  std::vector<Outcome> outcomes(group.size());
  parallel_for(std::ssize(group), [&](Index i) {
    const auto start = std::chrono::steady_clock::now();
    outcomes[i].result = run_case(group[i]);
    outcomes[i].seconds = seconds_since(start);
  });
  Tally sum;
  std::string failures;
  for (std::size_t i = 0; i < group.size(); ++i) {
    const auto& [result, seconds] = outcomes[i];
    sum.add(
        {1, result.elements, result.zeros, result.passed() ? 0 : 1, result.worst_error, seconds});
    if (!result.passed()) failures += fmt::format("  {}: {}\n", group[i].name, result.failure);
  }
  fmt::print("{:<28}{:>7}{:>11}{:>9}{:>13.1e}{:>9.2f}  {}\n{}", group.front().group, sum.cases,
             sum.elements, sum.zeros, sum.worst, sum.seconds,
             sum.failures == 0 ? "ok" : fmt::format("{} failed", sum.failures), failures);
  std::fflush(stdout);
  return sum;
}

/// Inline, so that the f32 program, which has no cases, does not compile it.
[[maybe_unused]] inline system::Exit check(const std::string& filter) {
  std::vector<GradcheckCase> cases = gradcheck_cases();
  const std::size_t all = cases.size();
  std::erase_if(cases, [wanted = filter_regex(filter)](const GradcheckCase& c) {
    return !std::regex_search(c.name, wanted);
  });
  throw_if<UsageError>(
      cases.empty(),
      "--filter: no case matches '{}'; run gradcheck without --filter to list the groups", filter);
  fmt::print("{:<28}{:>7}{:>11}{:>9}{:>13}{:>9}  {}\n", "op, layer or model", "cases", "elements",
             "zero", "worst error", "seconds", "verdict");
  const auto started = std::chrono::steady_clock::now();
  Tally total;
  for (auto first = cases.begin(); first != cases.end();) {
    const auto of_other = [&](const GradcheckCase& c) { return c.group != first->group; };
    const auto end = std::find_if(first, cases.end(), of_other);
    total.add(check_group({first, end}));
    first = end;
  }
  fmt::print(
      "{} cases, {} elements, worst relative error {:.1e}, tolerance {:.0e}, {} failed, {:.1f} s\n",
      total.cases, total.elements, total.worst, kGradcheckTolerance, total.failures,
      seconds_since(started));
  if (filter == kSelectedCases) fmt::print("selected from {} cases; --all checks all\n", all);
  return total.failures == 0 ? system::Exit::ok : system::Exit::check_failed;
}

}  // namespace

void gradcheck_command(CLI::App& program, Context& context) {
  auto filter = std::make_shared<std::string>();
  auto all = std::make_shared<bool>(false);
  CLI::App& command =
      add_command(program, "gradcheck", "Check every gradient against finite differences in f64",
                  {"gradcheck", "gradcheck --filter cross_entropy"});
  CLI::Option* pattern = add_option(command, "--filter", *filter,
                                    "Regular expression that selects from all cases by name");
  command.add_flag("--all", *all,
                   "Check all cases: every combination of heads, masks, positions and sizes");
  command.callback([filter, all, pattern, &context] {
    if constexpr (std::is_same_v<real, double>)
      context.exit = check(*all || pattern->count() > 0 ? *filter : kSelectedCases);
    else
      hand_over_to_f64(context.command_line);
  });
}

}  // namespace difftape::app
