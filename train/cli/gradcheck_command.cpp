#include <fmt/core.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <regex>

#include "core/build_info.h"
#include "layers/gradcheck_cases.h"
#include "train/cli/commands.h"

namespace difftape::cli {

namespace {

/// Continues as difftape-f64, which lies beside this program. Returns only on failure.
void hand_over_to_f64(const std::vector<std::string>& command_line) {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path f64 = self.parent_path() / "difftape-f64";
  std::vector<char*> arguments;
  for (const std::string& word : command_line) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(f64.c_str(), arguments.data());
  throw MissingInput(
      fmt::format("{}: {}; gradients are proven in double precision by this program, "
                  "which `./dev build` makes",
                  f64.string(), std::strerror(errno)));
}

std::regex filter_regex(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("--filter: '{}' is not a regular expression: {}", text, error.what()));
  }
}

Exit check(const std::string& filter) {
  std::vector<GradcheckCase> cases = gradcheck_cases();
  std::erase_if(cases, [wanted = filter_regex(filter)](const GradcheckCase& c) {
    return !std::regex_search(c.name, wanted);
  });
  if (cases.empty()) throw UsageError(fmt::format("--filter: no case matches '{}'", filter));
  Index failures = 0;
  double worst = 0;
  fmt::print("{:<44}{:>10}{:>14}{:>10}  {}\n", "case", "elements", "worst error", "ms", "verdict");
  for (const GradcheckCase& c : cases) {
    const auto started = std::chrono::steady_clock::now();
    const GradcheckResult result = c.run();
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - started;
    fmt::print("{:<44}{:>10}{:>14.1e}{:>10.1f}  {}\n", c.name, result.elements, result.worst_error,
               elapsed.count(), result.passed() ? "ok" : result.failure);
    failures += result.passed() ? 0 : 1;
    worst = std::max(worst, result.worst_error);
  }
  fmt::print("{} cases, worst relative error {:.1e}, gate {:.0e}, {} failed\n", cases.size(), worst,
             kGradcheckGate, failures);
  return failures == 0 ? Exit::ok : Exit::over_gate;
}

}  // namespace

void add_gradcheck(CLI::App& app, Context& context) {
  CLI::App* command = app.add_subcommand(
      "gradcheck", "Check every gradient against finite differences, in double precision");
  auto filter = std::make_shared<std::string>();
  command->add_option("--filter", *filter, "Only cases whose name matches this regular expression");
  command->callback([filter, &context] {
    if (build_info().precision != "f64") hand_over_to_f64(context.command_line);
    context.exit = check(*filter);
  });
}

}  // namespace difftape::cli
