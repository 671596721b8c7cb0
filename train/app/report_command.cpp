#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "train/app/commands.h"
#include "train/run/records/progress.h"
#include "train/study/compare/claims/output.h"
#include "train/study/compare/collect.h"
#include "train/study/compare/study.h"
#include "train/study/page/report.h"
#include "train/system/files.h"

namespace difftape::app {

namespace {

/// Where the output is no terminal.
constexpr std::size_t kWidth = 100;

struct Arguments {
  std::vector<std::string> runs;
  std::string baseline, out = "report.html", svg, verdicts;
};

std::size_t output_width() {
  const run::ConsoleStyle style = run::console_style(STDOUT_FILENO);
  return style.tty ? static_cast<std::size_t>(style.width) : kWidth;
}

void report(const Arguments& arguments) {
  require_output_file(arguments.out, ".html");
  if (!arguments.svg.empty()) require_output_file(arguments.svg, ".svg");
  if (!arguments.verdicts.empty())
    require_csv_output(arguments.verdicts, "report", study::kVerdictsHeader);
  const std::vector<std::filesystem::path> dirs(arguments.runs.begin(), arguments.runs.end());
  const study::Collection collection = study::collect_runs(dirs);
  for (const std::string& note : collection.notes) fmt::print(stderr, "difftape: {}\n", note);
  const study::Study study = make_study(collection.runs, arguments.baseline);
  fmt::print("{}", study_text(study, output_width()));
  write_report(study, arguments.out, "difftape", collection.notes);
  fmt::print("\nreport: {}\n", arguments.out);
  if (!arguments.svg.empty()) {
    write_lr_curve(study, arguments.svg);
    fmt::print("learning-rate curve: {}\n", arguments.svg);
  }
  if (arguments.verdicts.empty()) return;
  system::replace_text(arguments.verdicts, verdicts_csv(evaluate(study)));
  fmt::print("verdicts: {}\n", arguments.verdicts);
}

}  // namespace

Command report_command(Context&) {
  auto a = std::make_shared<Arguments>();
  return {
      .name = "report",
      .help = "Compare runs: tables and verdicts here, curves in an HTML page",
      .options =
          {{.name = "RUN_DIR",
            .target = &a->runs,
            .help = "Run directories, or directories that hold them, such as that of a sweep",
            .required = true},
           {"--baseline", &a->baseline,
            "The arm that the others are compared with; default: that of the first run"},
           {.name = "--out", .target = &a->out, .help = "The page to write", .show_default = true},
           {"--svg", &a->svg, "Also write the learning-rate curve, as SVG"},
           {"--verdicts", &a->verdicts, "A CSV file to write with the numbers of every claim"}},
      .run = [a] { report(*a); }};
}

}  // namespace difftape::app
