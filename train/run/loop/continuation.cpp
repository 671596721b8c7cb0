#include "train/run/loop/continuation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/digest.h"
#include "core/error.h"
#include "core/real.h"
#include "optim/schedule.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/fields.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/records/metrics.h"
#include "train/run/records/run_files.h"
#include "train/system/child.h"
#include "train/system/files.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

/// Returns the first of `steps` steps with a different learning rate; `steps` if there is none.
Index first_other_rate(const Config& made, const Config& wanted, Index steps) {
  const Schedule before(made.optim, made.train.steps), now(wanted.optim, wanted.train.steps);
  Index step = 0;
  while (step < steps && before.lr(step) == now.lr(step)) ++step;
  return step;
}

}  // namespace

std::vector<KeyDifference> result_differences(const Config& made, const Config& wanted) {
  return differences(made, wanted, kOfResult);
}

FlatConfig result_config(const Config& config) {
  Config resolved = config;
  if (!config.train.init_from.empty()) resolved.train.init_from = digest_of(config.train.init_from);
  return flat_config(resolved, kOfNumbers);
}

std::string result_digest(const Config& config) {
  Digest digest;
  digest.add(kRealName);
  for (const auto& [key, value] : result_config(config)) digest.add(key + ": " + value + "\n");
  return digest.hex();
}

std::string why_other_run(const std::filesystem::path& dir, const Config& config) {
  try {
    return in_words(result_differences(config_of_run(dir), config), " there");
  } catch (const Error& error) {
    return error.what();
  }
}

std::string why_not_continued(const Config& made, const Config& wanted, Index steps) {
  std::vector<std::string> reasons;
  for (const KeyDifference& each : result_differences(made, wanted)) {
    if (has_flag(each.key, kNamesData)) continue;
    const bool longer = each.key == "train.steps" && wanted.train.steps >= steps;
    if (!longer) {
      reasons.push_back(in_words({each}));
      continue;
    }
    const Index other = first_other_rate(made, wanted, steps);
    if (other < steps) {
      reasons.push_back(
          fmt::format("train.steps is {}, not {}: with the latter, step {} would have had another "
                      "learning rate",
                      each.a, each.b, other + 1));
    } else if (made.train.gradient_ramp != 1) {
      reasons.push_back(
          fmt::format("train.steps is {}, not {}: train.gradient_ramp is {}, and the ramp depends "
                      "on the number of steps",
                      each.a, each.b, made.train.gradient_ramp));
    }
  }
  return fmt::format("{}", fmt::join(reasons, "; "));
}

std::string resume_command(const fs::path& dir) {
  return system::shell_command(std::vector<std::string>{
      program_of(kRealName), "train", dir.empty() ? "." : dir.string(), "--resume"});
}

namespace {

/// Returns the remedy: the command that forks from an earlier checkpoint, or the command that
/// resumes with the configuration `made`, for `wanted.train.steps` steps if it can.
std::string remedy(const Config& made, const Config& wanted, Index steps, const fs::path& where) {
  const fs::path directory = where.parent_path();
  for (const auto& [step, file] : checkpoints_in(directory)) {
    if (!why_not_continued(made, wanted, step).empty()) continue;
    return fmt::format(
        "; to continue from its checkpoint of step {} in a new directory: {} --set train.steps={} "
        "--out DIR",
        step,
        system::shell_command(std::vector<std::string>{
            program_of(kRealName), "train", directory.parent_path(), "--fork-from", file}),
        wanted.train.steps);
  }
  Config longer = made;
  longer.train.steps = std::max(made.train.steps, wanted.train.steps);
  const bool can = longer.train.steps > made.train.steps;
  return fmt::format(
      "; to keep the configuration of the run: {}{}; to use another configuration, start a new run "
      "with --out DIR",
      resume_command(system::is_folder(where) ? where : directory.parent_path()),
      can && why_not_continued(made, longer, steps).empty()
          ? fmt::format(" --set train.steps={}", longer.train.steps)
          : "");
}

void copy_one(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (fs::copy_file(from, to, error)) return;
  throw OutputError(
      fmt::format("cannot copy {} to {}: {}", from.string(), to.string(), error.message()));
}

}  // namespace

void require_continued(const Config& made, const Config& wanted, Index steps,
                       const fs::path& where) {
  const std::string why = why_not_continued(made, wanted, steps);
  if (!why.empty()) {
    throw ConfigError(fmt::format("{}: has a different configuration: {}{}", where.string(), why,
                                  remedy(made, wanted, steps, where)));
  }
}

void branch_run(const fs::path& checkpoint, const Config& wanted, const fs::path& out) {
  RunDir run = open_run(fs::absolute(checkpoint).parent_path().parent_path());
  const Checkpoint saved(checkpoint);
  const Index step = saved.meta().step;
  require_continued(config_from_yaml(saved.meta().config_yaml, checkpoint.string()), wanted, step,
                    checkpoint);
  std::error_code ignored;  // StagedDirectory reports a missing parent
  fs::create_directories(system::without_slash(out).parent_path(), ignored);
  system::StagedDirectory staged(out);
  const fs::path& made = staged.path();
  for (const char* file : {"config.yaml", "env.json", "metrics.jsonl"})
    if (fs::exists(run.dir / file)) copy_one(run.dir / file, made / file);
  if (fs::exists(made / "metrics.jsonl")) truncate_metrics(made / "metrics.jsonl", step);
  fs::create_directory(made / "checkpoints");
  copy_one(checkpoint, made / "checkpoints" / step_file_name(step));
  system::replace_text(made / "checkpoints" / kLatest, step_file_name(step) + "\n");
  run.status.state = RunState::stopped;
  run.status.step = step;
  run.status.diverged.reset();
  run.status.exit_code.reset();
  write_status(made, run.status);
  staged.publish();
}

}  // namespace difftape::run
