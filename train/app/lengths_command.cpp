// `difftape lengths`: measures the accuracy of runs on a task at several sequence lengths.
#include <fmt/core.h>

#include <memory>

#include "train/app/commands.h"
#include "train/app/length_grid.h"
#include "train/system/files.h"

namespace difftape::app {

namespace {

struct LengthsArguments {
  LengthGridRequest request;
  std::string csv, svg;
};

void measure_and_print(const LengthsArguments& a) {
  if (!a.csv.empty()) require_csv_output(a.csv, "lengths", kLengthGridHeader);
  require_directory_of(a.svg);
  if (!a.svg.empty()) require_output_file(a.svg, ".svg");
  const LengthGrid grid = measure_lengths(a.request);
  fmt::print("{}", length_table(grid));
  if (!a.csv.empty()) system::replace_text(a.csv, length_grid_csv(grid));
  if (!a.svg.empty()) system::replace_text(a.svg, length_grid_svg(grid));
}

}  // namespace

void lengths_command(CLI::App& program, Context&) {
  auto a = std::make_shared<LengthsArguments>();
  CLI::App& command =
      add_command(program, "lengths", "Measure the accuracy on a task at several sequence lengths",
                  {"lengths runs/needles --lengths 32,64 --rope-scaling yarn --svg lengths.svg"});
  add_option(command, "RUN_OR_CKPT", a->request.models,
             std::string(kModelHelp) + "; several runs are averaged by arm")
      ->required();
  add_list(command, "--lengths", a->request.lengths, "Tokens per sequence, such as 256,512,1024")
      ->required();
  add_option(command, "--rope-scaling", a->request.rope_scaling,
             "Scaling of rotary frequencies above the run's data.seq_len, by the ratio of lengths")
      ->check(CLI::IsMember(names<RopeScalingKind>()))
      ->capture_default_str();
  add_option(command, "--batches", a->request.batches,
             "Number of batches at each length (default: one validation)");
  add_option(command, "--csv", a->csv, "Write the accuracies of each run");
  add_option(command, "--svg", a->svg, "Draw the mean accuracies as heat maps");
  add_set(command, a->request.overrides);
  command.callback([a] { measure_and_print(*a); });
}

}  // namespace difftape::app
