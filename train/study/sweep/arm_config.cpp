#include "train/study/sweep/arm_config.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "train/run/config/sweep_settings.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {

namespace {

/// Whether a file, or one of its bases, has the section `sweep`; what is wrong with it is found by
/// those who read it.
bool is_sweep(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return false;
  run::ConfigErrors errors;
  run::Assignments given(errors, run::sweep_keys());
  given.add_file(path);
  return std::ranges::any_of(
      given.all(), [](const run::Assignment& each) { return each.key.starts_with("sweep."); });
}

std::vector<std::string> arms_of(const SweepConfig& sweep) {
  std::vector<std::string> arms;
  for (const SweepRun& run : sweep.runs) {
    if (std::ranges::find(arms, run.base_arm) == arms.end()) arms.push_back(run.base_arm);
  }
  return arms;
}

}  // namespace

run::ResolvedConfig config_of_arm(const std::string& path,
                                  const std::vector<std::string>& overrides,
                                  const std::string& name) {
  if (!is_sweep(path)) {
    if (!name.empty()) throw UsageError(fmt::format("--arm: {} is no sweep; leave it out", path));
    return run::load_config(path, overrides);
  }
  const SweepConfig sweep = load_sweep(path, overrides);
  const std::vector<std::string> arms = arms_of(sweep);
  if (name.empty() && arms.size() > 1) {
    throw UsageError(fmt::format("{} is a sweep: say which arm with --arm; it has {}", path,
                                 fmt::join(arms, ", ")));
  }
  const auto found = std::ranges::find_if(sweep.runs, [&](const SweepRun& run) {
    return name.empty() || run.base_arm == name || run.config().run.name == name;
  });
  if (found == sweep.runs.end()) throw UsageError("--arm: " + no_arm(name, arms));
  return found->resolved;
}

}  // namespace difftape::study
