#pragma once
// A run directory: its configuration (config.yaml), the program and machine that ran it (env.json),
// and its progress (status.json). The files are replaced atomically.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/names.h"
#include "core/real.h"
#include "train/run/config/config.h"

namespace difftape::run {

/// Returns true if a new run may write its files in `dir`: it does not exist, or is empty, or holds
/// `lock` and otherwise only files of a run that was killed before its first status.json, which
/// are replaced.
bool may_begin_in(const std::filesystem::path& dir);

/// Creates the directory of a new run and its parents. Throws OutputError if it exists and no run
/// may begin in it, or if it cannot be created.
void create_run_dir(const std::filesystem::path& dir);

/// Returns the first of `dir`, `dir`-2, `dir`-3, ... that does not exist or is empty.
std::filesystem::path free_run_dir(const std::filesystem::path& dir);

/// Removes the temporary files of the run and of its checkpoints, which a killed process left. The
/// caller must hold the lock. Ignores files that cannot be removed.
void remove_temporary_files(const std::filesystem::path& dir);

/// Throws MissingInput unless `dir` is a directory with a status.json. `remedy` ends the message if
/// `dir` does not exist.
void require_run_dir(const std::filesystem::path& dir,
                     const char* remedy = "give a run directory, the --out of difftape train");

/// State of a run. status.json never contains `queued`, which waits in a sweep, or `killed`, whose
/// status.json says running although no process holds its lock.
enum class RunState { queued, running, finished, diverged, stopped, failed, killed };

constexpr auto names_of(RunState) {
  using enum RunState;
  return std::to_array<Named<RunState>>({{"queued", queued},
                                         {"running", running},
                                         {"finished", finished},
                                         {"diverged", diverged},
                                         {"stopped", stopped},
                                         {"failed", failed},
                                         {"killed", killed}});
}

/// Returns true if the run is over and cannot be resumed.
constexpr bool is_complete(RunState state) {
  return state == RunState::finished || state == RunState::diverged;
}

/// The first value of a run that is not finite.
struct Divergence {
  Index step = 0;
  std::string quantity;   ///< a metric name, for example "train/loss"
  std::string parameter;  ///< the first parameter by name that is not finite; empty if all are
  std::string op = {};    ///< the first op whose value or gradient is not finite, as
                          ///< "<op> in <layer>, forward" or "... backward"; empty if all are
};

struct RunStatus {
  RunState state = RunState::running;
  Index step = 0;   ///< completed steps
  Index steps = 0;  ///< train.steps
  std::optional<Divergence> diverged = {};
  std::string started = {};  ///< UTC, ISO 8601; the first write sets it
  std::string updated = {};  ///< UTC, ISO 8601; every write sets it
  std::optional<int> exit_code = {};
  Index parameters = 0;
  Index tokens_per_step = 0;
};

/// Writes status.json and sets `started` (once) and `updated` of `status`. Throws OutputError.
void write_status(const std::filesystem::path& dir, RunStatus& status);
/// Returns the status of a run. The step of a running or killed run is its last logged one, because
/// its status.json is as old as its last checkpoint. Throws MissingInput if there is no
/// status.json, DataError if it is malformed.
RunStatus read_status(const std::filesystem::path& dir);

/// Writes env.json and returns the object that read_env reads: the command line, the time, the
/// sections of `facts` (such as "build" and "data"), the processor and the threads. Does not add
/// the names of the user or the machine. Throws OutputError.
nlohmann::ordered_json write_env(const std::filesystem::path& dir,
                                 std::span<const std::string> command,
                                 const nlohmann::ordered_json& facts);
/// Reads env.json. Throws MissingInput if there is none, DataError if it is damaged.
nlohmann::ordered_json read_env(const std::filesystem::path& dir);

/// Returns the configuration of a run directory. Throws MissingInput and ConfigError.
Config config_of_run(const std::filesystem::path& dir);

/// The contents of status.json, env.json and config.yaml of a run directory.
struct RunDir {
  std::filesystem::path dir;
  RunStatus status = {};
  nlohmann::ordered_json env = nlohmann::ordered_json::object();
  Config config = {};

  std::filesystem::path metrics_file() const { return dir / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return dir / "checkpoints"; }
};

/// Reads a run directory. Throws MissingInput if `dir` is not one, and the errors of read_status,
/// read_env and config_of_run.
RunDir open_run(const std::filesystem::path& dir);

/// Returns the name of the program that computes in `precision`, "f32" or "f64".
const char* program_of(std::string_view precision);
/// Throws DataError unless this program computes in `precision`, in which `made` was computed. The
/// message suggests the other program for the action `verb`, such as "resume".
void require_precision(const std::filesystem::path& made, std::string_view precision,
                       std::string_view verb);

/// Returns the model name of the processor, or "unknown".
std::string cpu_model();
/// Returns the current time in UTC as ISO 8601 to the second: "2025-01-31T12:00:00Z".
std::string utc_now();

}  // namespace difftape::run
