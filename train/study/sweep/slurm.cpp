#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "train/study/sweep/sweep.h"
#include "train/system/child.h"
#include "train/system/files.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

constexpr const char* kJobsFile = "jobs";  ///< holds the job id of the last submitted array
constexpr std::size_t kMostTasks = 1000;   ///< Slurm's MaxArraySize is 1001 by default

std::string shell_line(const std::vector<std::string>& words, const char* last) {
  std::vector<std::string> parts = mapped(words, system::in_shell_quotes);
  parts.emplace_back(last);
  return fmt::format("{}", fmt::join(parts, " "));
}

/// Escapes a path so that Slurm substitutes nothing in it.
std::string literal(const fs::path& path) {
  std::string text;
  for (const char c : fs::absolute(path).string()) text += c == '%' ? "%%" : std::string(1, c);
  return text;
}

struct Answer {
  bool ok;
  std::string out, err;
};

/// Runs a command of Slurm and returns its output. Throws MissingInput if it is not installed.
Answer ask(const std::vector<std::string>& command) {
  const system::File in(std::fopen("/dev/null", "r")), out(std::tmpfile()), err(std::tmpfile());
  if (!in || !out || !err)
    throw OutputError(fmt::format("cannot create a temporary file: {}", std::strerror(errno)));
  system::Child child(command, {fileno(in.get()), fileno(out.get()), fileno(err.get())});
  const system::ExitStatus& status = child.wait();
  return {status.exit == 0 && status.signal == 0, system::contents_of(out.get()),
          system::last_line(system::contents_of(err.get()))};
}

/// Submits a script. Returns the job id.
std::string submit(const fs::path& script, std::vector<std::string> options) {
  options.insert(options.begin(), {"sbatch", "--parsable"});
  options.push_back(script.string());
  const Answer answer = ask(options);
  if (!answer.ok) throw OutputError(fmt::format("Slurm rejected the jobs: {}", answer.err));
  return answer.out.substr(0, answer.out.find_first_of(";\n"));  // "12;cluster"
}

/// Throws OutputError while jobs of this sweep are queued or running.
void require_none_queued(const fs::path& jobs) {
  if (!system::is_there(jobs)) return;
  const std::string job = system::last_line(system::read_text(jobs));
  const Answer answer = ask({"squeue", "--noheader", "--jobs=" + job});
  if (answer.ok && !answer.out.empty()) {
    throw OutputError(
        fmt::format("job array {0} of this sweep is still in the queue; wait for it (squeue "
                    "--jobs={0}), or cancel it (scancel {0})",
                    job));
  }
}

/// Returns the options of sbatch that every job has: its name and its log file.
std::vector<std::string> options_of(const SweepConfig& sweep, const std::string& name,
                                    const std::string& log) {
  const std::string dir = literal(fs::path(sweep.out) / "slurm");
  return {"--job-name=" + name, "--output=" + dir + "/" + log, "--open-mode=append"};
}

}  // namespace

std::string slurm_script(const std::vector<std::string>& runs, const SlurmRequest& request) {
  std::string names;
  for (const std::string& run : runs) names += "  " + system::in_shell_quotes(run) + "\n";
  // A task that gets the signal for its time limit requeues itself. Slurm requeues preempted tasks;
  // canceled tasks must not be requeued.
  constexpr const char* kTrain = R"(#!/bin/bash
runs=(
{})
export OMP_NUM_THREADS=${{SLURM_CPUS_PER_TASK:-${{OMP_NUM_THREADS:-1}}}}
stopped= again= failed=0
stop() {{ stopped=1; kill -TERM "$child" 2>/dev/null; }}
trap 'again=1; stop' USR1
trap stop TERM
for ((i = SLURM_ARRAY_TASK_ID; i < ${{#runs[@]}}; i += SLURM_ARRAY_TASK_COUNT)); do
  [ -z "$stopped" ] || break
  {} "${{runs[i]}}" &
  child=$!
  while wait "$child"; code=$?; kill -0 "$child" 2>/dev/null; do :; done
  [ "$code" -eq 0 ] || [ "$code" -eq 86 ] || failed=$code
done
[ -z "$again" ] || scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
[ -z "$stopped" ] || exit 75
exit "$failed"
)";
  return fmt::format(fmt::runtime(kTrain), names, shell_line(request.sweep, "--run"));
}

void submit_to_slurm(const SweepConfig& sweep, const SlurmRequest& request) {
  const fs::path dir = fs::path(sweep.out) / "slurm";
  const std::vector<std::string> left = start_elsewhere(sweep);
  if (left.empty()) {
    *request.console << "all runs are trained; nothing to submit\n";
    return;
  }
  system::make_folder(dir);
  require_none_queued(dir / kJobsFile);
  system::replace_text(dir / "train.sh", slurm_script(left, request));
  system::replace_text(dir / "compare.sh",
                       "#!/bin/bash\nexec " + shell_line(request.sweep, "--compare") + "\n");
  std::vector<std::string> options = options_of(sweep, sweep.name, "%A_%a.log");
  options.insert(options.end(),
                 {"--requeue", "--signal=B:USR1@60",
                  fmt::format("--array=0-{}", std::min(left.size(), kMostTasks) - 1)});
  options.insert(options.end(), request.options.begin(), request.options.end());
  const std::string array = submit(dir / "train.sh", options);
  system::replace_text(dir / kJobsFile, array + "\n");
  *request.console << fmt::format("submitted {} runs as job array {}\n", left.size(), array)
                   << std::flush;
  std::vector<std::string> behind = options_of(sweep, sweep.name + "-compare", "compare.log");
  behind.push_back("--dependency=afterany:" + array);
  const std::string compare = submit(dir / "compare.sh", behind);
  *request.console << fmt::format("submitted their comparison as job {}; scripts and logs: {}\n",
                                  compare, dir.string());
}

}  // namespace difftape::study
