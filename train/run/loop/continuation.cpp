#include "train/run/loop/continuation.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "core/real.h"
#include "train/run/config/fields.h"
#include "train/run/config/writer.h"
#include "train/run/records/run_files.h"
#include "train/system/child.h"

namespace difftape::run {

namespace fs = std::filesystem;

std::vector<KeyDifference> result_differences(const Config& made, const Config& wanted) {
  return differences(made, wanted, kOfResult);
}

std::string why_other_run(const std::filesystem::path& dir, const Config& config) {
  try {
    return in_words(result_differences(config_of_run(dir), config), " there");
  } catch (const Error& error) {
    return error.what();
  }
}

std::string why_not_continued(const Config& made, const Config& wanted) {
  std::vector<KeyDifference> others = result_differences(made, wanted);
  const bool constant = made.optim.schedule == ScheduleKind::constant &&
                        made.train.gradient_ramp == 1;  // which depends on the number of steps
  std::erase_if(others, [&](const KeyDifference& each) {
    const bool longer = each.key == "train.steps" && wanted.train.steps > made.train.steps;
    return has_flag(each.key, kNamesData) || (longer && constant);
  });
  return in_words(others);
}

std::string resume_command(const fs::path& dir) {
  return system::shell_command(std::vector<std::string>{
      program_of(kRealName), "train", dir.empty() ? "." : dir.string(), "--resume"});
}

void require_continued(const Config& made, const Config& wanted, const fs::path& dir) {
  const std::string why = why_not_continued(made, wanted);
  if (why.empty()) return;
  Config longer = made;
  longer.train.steps = std::max(made.train.steps, wanted.train.steps);
  const bool can = longer.train.steps > made.train.steps && why_not_continued(made, longer).empty();
  throw ConfigError(fmt::format(
      "{}: has a different configuration: {}; to keep the configuration of the run: {}{}; to use "
      "another configuration, start a new run with --out DIR",
      dir.string(), why, resume_command(dir),
      can ? fmt::format(" --set train.steps={}", longer.train.steps) : ""));
}

}  // namespace difftape::run
