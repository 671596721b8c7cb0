#include "train/study/sweep/together.h"

#include <fcntl.h>

#include <algorithm>
#include <filesystem>
#include <ostream>

#include "core/processes.h"
#include "train/study/sweep/layout.h"
#include "train/study/sweep/worker.h"
#include "train/system/files.h"

namespace difftape::study {

namespace {

namespace fs = std::filesystem;

/// Makes the folder of what is taken, without what an earlier launch took.
void forget_taken(const fs::path& dir) {
  std::error_code error;
  fs::remove_all(dir, error);
  if (!error) fs::create_directories(dir, error);
  if (error) throw OutputError(fmt::format("cannot write {}: {}", dir.string(), error.message()));
}

/// Whether this process is the one that made the file, which NFS too lets one alone do.
bool takes(const fs::path& file) {
  return system::Descriptor(file, O_WRONLY | O_CREAT | O_EXCL).is_open();
}

/// Trains runs that no other process takes, until none is left. Returns the code of the first that
/// failed here.
system::Exit train_what_is_taken(const SweepConfig& sweep, const SweepRequest& request,
                                 const fs::path& taken, const system::StopRequest& stop) {
  std::vector<RunProgress> progress;
  std::vector<const run::Config*> waiting;
  for (const SweepRun& run : sweep.runs) {
    progress.push_back(inspect(run));
    if (progress.back().waits()) waiting.push_back(&run.config());
  }
  if (waiting.empty()) return system::Exit::ok;
  const int jobs = std::max(1, request.jobs);
  const Layout layout =
      choose_layout(*waiting.front(), waiting.size(), jobs, jobs_with_memory(waiting, jobs),
                    request.program, *request.console);
  StatusTable table(*request.console, {});
  Pool pool(sweep, progress, layout, request.command, request.program,
            [&](const std::string& run) { return takes(taken / run); });
  pool.train(stop, table, [](std::size_t) {});
  const auto failed = std::ranges::find_if(
      progress, [](const RunProgress& run) { return run.exit != system::Exit::ok; });
  return failed == progress.end() ? system::Exit::ok : failed->exit;
}

/// The first that is not ok, in the order of the processes.
system::Exit first_of_all(system::Exit mine) {
  const std::vector<int> one{static_cast<int>(mine)};
  const std::vector<int> all = processes::all_of(std::span<const int>(one));
  const auto first = std::ranges::find_if(all, [](int exit) { return exit != 0; });
  return first == all.end() ? system::Exit::ok : static_cast<system::Exit>(*first);
}

}  // namespace

system::Exit run_sweep_together(const SweepConfig& sweep, const SweepRequest& request) {
  const fs::path taken = fs::path(sweep.out) / "mpi";
  const system::StopRequest stop;
  const bool first = processes::rank() == 0;
  if (first) {
    const std::size_t left = start_elsewhere(sweep).size();
    forget_taken(taken);
    *request.console << fmt::format("{} runs are left to {} processes\n", left, processes::count())
                     << std::flush;
  }
  processes::ready();
  const system::Exit failed = first_of_all(train_what_is_taken(sweep, request, taken, stop));
  if (const system::Exit stopped = first_of_all(stop.received()); stopped != system::Exit::ok) {
    if (first) *request.console << "sweep stopped; the same command continues it\n";
    return stopped;
  }
  const system::Exit compared = first ? compare_sweep(sweep, request) : system::Exit::ok;
  return first_of_all(failed != system::Exit::ok ? failed : compared);
}

}  // namespace difftape::study
