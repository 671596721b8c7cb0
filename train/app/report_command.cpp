// `difftape report`: compares runs.
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <span>

#include "core/error.h"
#include "train/app/commands.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collection.h"
#include "train/study/compare/row.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"
#include "train/system/files.h"
#include "train/system/text_table.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;

struct ReportArguments {
  std::vector<std::string> runs;
  std::string baseline, claims, out = "report";

  std::vector<fs::path> dirs() const { return {runs.begin(), runs.end()}; }
};

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

/// Returns the claims to judge: the named file, or else the copy in the directory of the first
/// sweep that has one. A single arm has no claims unless they are named.
std::unique_ptr<const study::JudgedClaims> judged_claims(const ReportArguments& arguments,
                                                         study::Collection& collection) {
  const std::vector<fs::path> copies = claims_copies(arguments);
  const bool named = !arguments.claims.empty();
  const bool one_arm = std::ranges::all_of(collection.runs, [&](const study::Row& run) {
    return run.arm == collection.runs.front().arm;
  });
  if (!named && (copies.empty() || one_arm)) return nullptr;
  const std::string path = named ? arguments.claims : copies.front().string();
  if (const std::string note = named ? "" : left_claims(copies); !note.empty())
    collection.notes.push_back(note);
  return std::make_unique<study::JudgedClaims>(study::load_claims(path), collection.pointers());
}

void report(const ReportArguments& arguments) {
  study::Collection collection = study::collect_runs(arguments.dirs());
  const std::vector<study::Study> studies = make_studies(
      collection.runs, arguments.baseline.empty() ? known_arm(collection.runs, collection.baseline)
                                                  : arguments.baseline);
  const auto claims = judged_claims(arguments, collection);
  for (const std::string& note : collection.notes) say(note);
  study::require_comparison_folder(arguments.out);
  write_comparison(studies, "difftape", {collection.notes, claims.get()}, arguments.out);
  fmt::print(
      "{}\nreport: {}\n",
      study_text(studies, system::terminal_width(STDOUT_FILENO, system::kTextWidth), claims.get()),
      (fs::path(arguments.out) / study::kPage).string());
}

}  // namespace

void report_command(CLI::App& program, Context&) {
  auto a = std::make_shared<ReportArguments>();
  CLI::App& command =
      add_command(program, "report", "Compare runs: tables and verdicts, curves in an HTML page",
                  {"report runs/sweep", "report runs/sweep --baseline softmax --out comparison"});
  add_option(command, "RUN_DIR", a->runs,
             "Run directories, folders of runs such as a sweep, or the runs.csv of a sweep")
      ->required();
  add_option(command, "--baseline", a->baseline,
             "Reference arm (default: the baseline of the sweep, or the arm of the first run)");
  add_option(command, "--claims", a->claims,
             "Claims to judge (default: the claims of the first sweep that has any)");
  add_option(command, "--out", a->out, "Folder to write: report.html, summary.txt and more")
      ->capture_default_str();
  command.callback([a] { report(*a); });
}

}  // namespace difftape::app
