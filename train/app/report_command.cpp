// `difftape report`: compares runs, once or while they are trained.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <thread>

#include "core/error.h"
#include "train/app/commands.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/lr_curves.h"
#include "train/study/compare/run_record.h"
#include "train/study/compare/study.h"
#include "train/study/compare/tables.h"
#include "train/study/page/report.h"
#include "train/system/exit.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> runs, charts;
  std::string baseline, claims, out = "report.html", svg, forest, verdicts;
  bool watch = false;

  std::vector<fs::path> dirs() const { return {runs.begin(), runs.end()}; }
};

void require_outputs(const ReportArguments& arguments) {
  for (const std::string& out : {arguments.out, arguments.svg, arguments.forest})
    require_directory_of(out);
  require_output_file(arguments.out, ".html");
  if (!arguments.svg.empty()) require_output_file(arguments.svg, ".svg");
  if (!arguments.forest.empty()) require_output_file(arguments.forest, ".svg");
  if (!arguments.verdicts.empty())
    require_csv_output(arguments.verdicts, "report", study::kVerdictsHeader);
}

/// Returns the copies of claims in the directories of sweeps.
std::vector<fs::path> claims_copies(const ReportArguments& arguments) {
  std::vector<fs::path> copies;
  for (const fs::path& input : arguments.dirs()) {
    const fs::path copy = study::folder_of(input) / study::kClaimsCopy;
    if (system::is_there(copy)) copies.push_back(copy);
  }
  return copies;
}

/// Returns a note that the first of several copies is judged, and how to judge the others. Empty if
/// all are equal.
std::string left_claims(std::span<const fs::path> copies) {
  const std::string judged = system::read_text(copies.front());
  std::string others;
  for (const fs::path& copy : copies.subspan(1)) {
    if (system::read_text(copy) == judged) continue;
    others += fmt::format("{} the claims of {} with --claims {}", others.empty() ? "; judge" : ",",
                          copy.parent_path().string(), copy.string());
  }
  if (others.empty()) return "";
  return fmt::format("judging the claims of {}{}", copies.front().parent_path().string(), others);
}

/// A study with its claims, and notes about its runs and the choice of the claims.
struct Asked {
  study::Collection collection;
  study::Study study;
  std::unique_ptr<const study::JudgedClaims> claims = nullptr;  ///< null without claims

  void write_page(const ReportArguments& arguments, int refresh_seconds = 0) const {
    write_report(study, arguments.out, "difftape",
                 {.notes = collection.notes,
                  .charts = arguments.charts,
                  .claims = claims.get(),
                  .refresh_seconds = refresh_seconds});
  }
};

/// Adds the claims to judge: the named file, or else the copy in the directory of the first sweep
/// that has one. A single arm has no claims unless they are named.
void add_claims(const ReportArguments& arguments, Asked& asked) {
  const std::vector<fs::path> copies = claims_copies(arguments);
  const bool named = !arguments.claims.empty();
  if (!named && (copies.empty() || asked.study.arms.size() < 2)) return;
  const std::string path = named ? arguments.claims : copies.front().string();
  asked.claims =
      std::make_unique<study::JudgedClaims>(study::load_claims(path), asked.study.runs());
  const std::string note = named ? "" : left_claims(copies);
  if (!note.empty()) asked.collection.notes.push_back(note);
}

/// Throws UsageError if files of verdicts are requested without claims.
void require_claims(const ReportArguments& arguments, const study::JudgedClaims* claims) {
  for (const auto& [option, value] :
       {std::pair("--verdicts", &arguments.verdicts), std::pair("--forest", &arguments.forest)}) {
    if (claims || value->empty()) continue;
    throw UsageError(
        fmt::format("{}: there are no claims to judge; name their file with --claims", option));
  }
}

/// Writes the requested files of verdicts.
void write_verdicts(const ReportArguments& arguments, const study::Study& study,
                    const study::JudgedClaims* claims) {
  if (!arguments.forest.empty()) {
    const bool written = write_forest(study, *claims, arguments.forest);
    fmt::print("forest plot: {}\n", written ? arguments.forest : "none, since no claim is tested");
  }
  if (!arguments.verdicts.empty()) {
    system::replace_text(arguments.verdicts, verdicts_csv(claims->results));
    fmt::print("verdicts: {}\n", arguments.verdicts);
  }
}

void report(const ReportArguments& arguments) {
  Asked asked{study::collect_runs(arguments.dirs()), {}};
  const std::vector<std::string>& notes = asked.collection.notes;
  const std::size_t of_runs = notes.size();
  for (const std::string& note : notes) say(note);
  asked.study = make_study(asked.collection.runs, arguments.baseline);
  add_claims(arguments, asked);
  for (std::size_t i = of_runs; i < notes.size(); ++i) say(notes[i]);
  const study::JudgedClaims* claims = asked.claims.get();
  const study::Study& study = asked.study;
  require_claims(arguments, claims);
  asked.write_page(arguments);
  fmt::print("{}\nreport: {}\n",
             study_text(study, system::terminal_width(STDOUT_FILENO, system::kTextWidth), claims),
             arguments.out);
  if (study.is_swept()) {
    const fs::path rates = fs::path(arguments.out).parent_path() / study::kLrOptimumFile;
    const bool replaced = system::is_there(rates);
    write_lr_optima(study, arguments.out);
    fmt::print("learning rates: {}{}\n", rates.string(), replaced ? " (replaced)" : "");
  }
  if (!arguments.svg.empty()) {
    write_lr_curve(study, arguments.svg);
    fmt::print("learning-rate curve: {}\n", arguments.svg);
  }
  write_verdicts(arguments, study, claims);
}

/// State of the watched runs.
enum class Seen { nothing, some_go_on, all_have_ended };

/// Reload interval of a page of runs in training.
constexpr int kRefreshSeconds = 5;

/// Calls `look` again and again, with pauses that leave the processor to the runs. Returns ok after
/// all runs have ended and no sweep has queued runs, or the code of a signal. Throws MissingInput
/// if a path is not a directory.
system::Exit watch_runs(const std::vector<fs::path>& dirs, const std::function<Seen()>& look) {
  using namespace std::chrono_literals;
  using Clock = std::chrono::steady_clock;
  // Minimum pause between two calls of `look`, and interval of checks for signals.
  constexpr Clock::duration kPause = 2s, kTick = 200ms;
  for (const fs::path& dir : dirs) {
    std::error_code ignored;
    throw_if<MissingInput>(!fs::is_directory(dir, ignored),
                           "--watch: {} is not a directory; give the directory of a run or a sweep",
                           dir.string());
  }
  const system::StopRequest stop;
  while (stop.received() == system::Exit::ok) {
    const auto begin = Clock::now();
    const Seen seen = look();
    std::fflush(stdout);
    if (seen == Seen::all_have_ended && !study::more_to_come(dirs)) break;
    const auto end = begin + std::max(kPause, 10 * (Clock::now() - begin));
    while (stop.received() == system::Exit::ok && Clock::now() < end) {
      std::this_thread::sleep_for(kTick);
    }
  }
  return stop.received();
}

/// Rewrites the page while runs are trained, and prints changes of the headline. At the end, writes
/// the page without reload.
system::Exit watch(const ReportArguments& arguments) {
  const std::vector<fs::path> dirs = arguments.dirs();
  std::string said;
  Seen seen = Seen::nothing;
  const system::Exit exit = watch_runs(dirs, [&] {
    std::optional<study::Collection> collection = study::collect_runs_so_far(dirs);
    if (!collection) {
      if (said.empty()) fmt::print("{}\n", said = "waiting for the first run");
      return seen = Seen::nothing;
    }
    Asked asked{std::move(*collection), {}};
    const std::vector<study::RunRecord>& runs = asked.collection.runs;
    asked.study = make_study_so_far(runs, arguments.baseline);
    add_claims(arguments, asked);
    asked.write_page(arguments, kRefreshSeconds);
    const std::string now =
        fmt::format("{}; {}", describe_states(asked.study.runs()), headline(asked.study));
    if (now != said) fmt::print("{}\n", said = now);
    const bool goes_on = std::ranges::any_of(runs, [](const study::RunRecord& run) {
      return run.status.state == run::RunState::running;
    });
    return seen = goes_on ? Seen::some_go_on : Seen::all_have_ended;
  });
  if (seen != Seen::nothing) report(arguments);
  return exit;
}

}  // namespace

void report_command(CLI::App& program, Context& context) {
  auto a = std::make_shared<ReportArguments>();
  CLI::App& command =
      add_command(program, "report", "Compare runs: tables and verdicts, curves in an HTML page",
                  {"report runs/sweep", "report runs/sweep --baseline softmax --out r.html",
                   "report runs/sweep --charts optim/lr,attn/entropy"});
  add_option(command, "RUN_DIR", a->runs,
             "Run directories, folders of runs such as a sweep, or the index.csv of a sweep")
      ->required();
  add_option(command, "--baseline", a->baseline,
             "Reference arm (default: the arm of the first run)");
  add_option(command, "--claims", a->claims,
             "Claims to judge (default: the claims of the first sweep that has any)");
  add_option(command, "--out", a->out, "HTML file to write")->capture_default_str();
  add_list(command, "--charts", a->charts,
           "Metrics to draw, separated by commas, such as optim/lr,attn/entropy,attn/entropy/3 "
           "(default: a selection)");
  add_option(command, "--svg", a->svg,
             "Also write the curves of loss against learning rate to this SVG file");
  add_option(command, "--forest", a->forest,
             "Also write the forest plot of the claims to this SVG file");
  add_option(command, "--verdicts", a->verdicts,
             "Also write the measurements and verdicts of all claims to this CSV file");
  command.add_flag("--watch", a->watch,
                   "Rewrite the page until all runs have ended, or until Ctrl-C");
  command.callback([a, &context] {
    require_outputs(*a);
    if (a->watch) {
      context.exit = watch(*a);
    } else {
      report(*a);
    }
  });
}

}  // namespace difftape::app
