#pragma once
// A run directory: what it was made with (config.yaml), what ran and on what (env.json), how far it
// got (status.json). The files are replaced in one piece, never half-written.

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

/// Makes the directory of a new run, with its parents. An empty directory is accepted. Throws
/// OutputError if anything else is there already, or with the path and the reason if it cannot.
void create_run_dir(const std::filesystem::path& dir);

/// The first of `dir`, `dir`-2, `dir`-3, ... where create_run_dir can make a run.
std::filesystem::path free_run_dir(const std::filesystem::path& dir);

/// True if `dir` is not empty and holds nothing but what a run writes before its first status.json:
/// some of `lock`, config.yaml, env.json, stdout.log, an empty metrics.jsonl, and their
/// temporary names. DirectoryLock tells whether the process still runs.
bool is_partial_start(const std::filesystem::path& dir);

/// Empties such a directory, so that a new run can be made there. Throws OutputError if it holds
/// anything else, if a process holds its lock, or if a file cannot be removed.
void remove_partial_start(const std::filesystem::path& dir);

/// Removes files that a process left half written: those with a temporary name, of the run and of
/// its checkpoints. For who holds the lock. What cannot be removed stays.
void remove_temporary_files(const std::filesystem::path& dir);

/// Checks that a run to resume is there. Throws MissingInput.
void require_run_dir(const std::filesystem::path& dir);

/// Two of them status.json never has: `queued` waits in a sweep; `killed` has a status.json that
/// says running and no process that holds its lock.
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

/// Nothing more will come.
constexpr bool is_complete(RunState state) {
  return state == RunState::finished || state == RunState::diverged;
}

/// Where a run reached the first value that is not finite.
struct Divergence {
  Index step = 0;
  std::string quantity;   ///< a metric name, for example "train/loss"
  std::string parameter;  ///< the first parameter by name that is not finite; empty if all are
  std::string op = {};  ///< the first op whose value or gradient is not: "<op> in <layer>, forward"
                        ///< or backward; empty if none is
};

struct RunStatus {
  RunState state = RunState::running;
  Index step = 0;   ///< steps done
  Index steps = 0;  ///< steps asked for
  std::optional<Divergence> diverged = {};
  std::string started = {};  ///< UTC, ISO 8601; empty: the time of the first write
  std::string updated = {};  ///< set by every write
  std::optional<int> exit_code = {};
  Index parameters = 0;
  Index tokens_per_step = 0;
};

/// Writes status.json and stamps `started` (once) and `updated` into `status`. Throws OutputError.
void write_status(const std::filesystem::path& dir, RunStatus& status);
/// Returns how far a run is. Of one under way or killed, whose status.json is of its last
/// checkpoint, the steps are those that it logged. Throws MissingInput if there is no status.json
/// and DataError if it is not one.
RunStatus read_status(const std::filesystem::path& dir);

/// Writes env.json and returns what read_env reads: the command line, the time, the sections of the
/// object `facts` (for example "build" and "data"), processor and threads. Nothing added here names
/// the user or the machine. Throws OutputError.
nlohmann::ordered_json write_env(const std::filesystem::path& dir,
                                 std::span<const std::string> command,
                                 const nlohmann::ordered_json& facts);
/// Throws MissingInput if there is no env.json and DataError if it is not a JSON object or of
/// another format.
nlohmann::ordered_json read_env(const std::filesystem::path& dir);

/// Returns the configuration that a run directory was made with. Throws MissingInput, ConfigError,
/// and DataError for a run of another format.
Config config_of_run(const std::filesystem::path& dir);

/// What the small files of a run directory say.
struct RunDir {
  std::filesystem::path dir;
  RunStatus status = {};
  nlohmann::ordered_json env = nlohmann::ordered_json::object();
  Config config = {};

  std::filesystem::path metrics_file() const { return dir / "metrics.jsonl"; }
  std::filesystem::path checkpoints() const { return dir / "checkpoints"; }
};

/// Reads them. Throws MissingInput if `dir` is not a run directory, and what read_status, read_env
/// and config_of_run throw.
RunDir open_run(const std::filesystem::path& dir);

/// Adds an object to the list `continued` of env.json, unless the last one there has the same
/// digest `config`: a process that was killed before it replaced config.yaml wrote it. Throws
/// OutputError.
void add_continuation(RunDir& run, const nlohmann::ordered_json& continued);

/// Throws DataError unless `precision`, in which `made` was computed, is that of this program.
/// `verb` is what the other program does with it: "resume".
void require_precision(const std::filesystem::path& made, std::string_view precision,
                       std::string_view verb);

/// Model name of the processor, or "unknown".
std::string cpu_model();
/// The time now in UTC as ISO 8601 to the second: "2025-01-31T12:00:00Z".
std::string utc_now();

}  // namespace difftape::run
