#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <regex>
#include <span>
#include <type_traits>

#include "core/parallel.h"
#include "train/app/commands.h"
#include "train/app/gradcheck/cases.h"

namespace difftape::app {

namespace {

/// Continues as the same program in double precision, which lies beside this one: difftape-f64.
/// Returns only on failure.
[[maybe_unused]] void hand_over_to_f64(const std::vector<std::string>& command_line) {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const std::filesystem::path f64 = self.string() + "-f64";
  std::vector<char*> arguments;
  for (const std::string& word : command_line) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(f64.c_str(), arguments.data());
  throw MissingInput(
      fmt::format("{}: {}; gradients are proven in double precision by this program, "
                  "which is built and installed beside {}",
                  f64.string(), std::strerror(errno), self.filename().string()));
}

std::regex filter_regex(const std::string& text) {
  try {
    return std::regex(text);
  } catch (const std::regex_error& error) {
    throw UsageError(
        fmt::format("--filter: '{}' is not a regular expression: {}", text, error.what()));
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

/// Sums over cases.
struct Tally {
  Index cases = 0, elements = 0, zeros = 0, failures = 0;
  double worst = 0, seconds = 0;

  void add(const GradcheckResult& result, double took) {
    ++cases;
    elements += result.elements;
    zeros += result.zeros;
    failures += result.passed() ? 0 : 1;
    if (!(result.worst_error <= worst)) worst = result.worst_error;
    seconds += took;
  }
};

/// Collects results in any order and prints the row of each group, in order, when the groups up to
/// it are complete.
class Rows {
 public:
  explicit Rows(std::span<const GradcheckCase> cases) : cases_(cases), outcomes_(cases.size()) {}

  /// Any thread may call.
  void add(size_t i, GradcheckResult result, double seconds) {
    const std::lock_guard lock(mutex_);
    outcomes_[i] = Outcome{std::move(result), seconds};
    while (printed_ < cases_.size() && next_is_complete()) print_next();
  }
  const Tally& total() const { return total_; }

 private:
  struct Outcome {
    GradcheckResult result;
    double seconds;
  };

  size_t end_of_next() const {
    size_t end = printed_;
    while (end < cases_.size() && cases_[end].group == cases_[printed_].group) ++end;
    return end;
  }
  bool next_is_complete() const {
    const auto begin = outcomes_.begin();
    return std::all_of(begin + static_cast<std::ptrdiff_t>(printed_),
                       begin + static_cast<std::ptrdiff_t>(end_of_next()),
                       [](const auto& outcome) { return outcome.has_value(); });
  }
  void print_next() {
    const size_t end = end_of_next();
    Tally sum;
    std::string failures;
    for (size_t i = printed_; i < end; ++i) {
      const auto& [result, seconds] = *outcomes_[i];
      sum.add(result, seconds);
      total_.add(result, seconds);
      if (!result.passed()) failures += fmt::format("  {}: {}\n", cases_[i].name, result.failure);
    }
    fmt::print("{:<28}{:>7}{:>11}{:>9}{:>13.1e}{:>9.2f}  {}\n{}", cases_[printed_].group, sum.cases,
               sum.elements, sum.zeros, sum.worst, sum.seconds,
               sum.failures == 0 ? "ok" : fmt::format("{} failed", sum.failures), failures);
    std::fflush(stdout);
    printed_ = end;
  }

  std::span<const GradcheckCase> cases_;
  std::vector<std::optional<Outcome>> outcomes_;
  std::mutex mutex_;
  size_t printed_ = 0;  ///< cases in rows that are printed
  Tally total_;
};

[[maybe_unused]] system::Exit check(const std::string& filter) {
  std::vector<GradcheckCase> cases = gradcheck_cases();
  std::erase_if(cases, [wanted = filter_regex(filter)](const GradcheckCase& c) {
    return !std::regex_search(c.name, wanted);
  });
  if (cases.empty()) throw UsageError(fmt::format("--filter: no case matches '{}'", filter));
  fmt::print("{:<28}{:>7}{:>11}{:>9}{:>13}{:>9}  {}\n", "op, layer or model", "cases", "elements",
             "zero", "worst error", "seconds", "verdict");
  Rows rows(cases);
  const auto started = std::chrono::steady_clock::now();
  parallel_for(static_cast<Index>(cases.size()), [&](Index i) {
    const auto at = static_cast<size_t>(i);
    const auto start = std::chrono::steady_clock::now();
    GradcheckResult result = run_case(cases[at]);
    rows.add(at, std::move(result), seconds_since(start));
  });
  const Tally& total = rows.total();
  fmt::print(
      "{} cases, {} elements, worst relative error {:.1e}, tolerance {:.0e}, {} failed, {:.1f} s\n",
      total.cases, total.elements, total.worst, kGradcheckTolerance, total.failures,
      seconds_since(started));
  return total.failures == 0 ? system::Exit::ok : system::Exit::check_failed;
}

}  // namespace

void gradcheck_command(CLI::App& program, Context& context) {
  auto filter = std::make_shared<std::string>();
  CLI::App& command = add_command(
      program, "gradcheck", "Check every gradient against finite differences, in double precision",
      {"gradcheck --filter cross_entropy"});
  add_option(command, "--filter", *filter, "Only cases whose name matches this regular expression");
  command.callback([filter, &context] {
    if constexpr (std::is_same_v<real, double>) {
      context.exit = check(*filter);
    } else {
      hand_over_to_f64(context.command_line);
    }
  });
}

}  // namespace difftape::app
