#include <fmt/core.h>

#include <cstdio>
#include <memory>

#include "train/app/analyze/gradient_flow.h"
#include "train/app/analyze/kinds.h"
#include "train/app/analyze/snr.h"
#include "train/app/commands.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"

namespace difftape::app {

namespace {

namespace fs = std::filesystem;

struct FlowArguments {
  std::string config, out;
  std::vector<std::string> overrides;
  FlowRequest request;
};

/// What the user left open: V1 and V2 and the configuration's own kind, its seed, and steps as far
/// as the run goes.
void fill_in(const run::Config& config, FlowRequest& request) {
  if (request.kinds.empty()) {
    request.kinds = {"diff_v1", "diff_v2"};
    const std::string own = name_of_configured(config.model);
    if (own != baseline_kind() && std::ranges::find(request.kinds, own) == request.kinds.end()) {
      request.kinds.push_back(own);
    }
  }
  if (request.steps.empty()) {
    for (const Index step : {0, 100, 300}) {
      if (step <= config.train.steps) request.steps.push_back(step);
    }
  }
  if (request.seeds.empty()) request.seeds = {static_cast<Index>(config.run.seed)};
}

system::Exit run_gradient_flow(FlowArguments& arguments) {
  const run::Config config = run::load_config(arguments.config, arguments.overrides).config;
  if (!arguments.out.empty()) {
    require_h5_output(arguments.out, "analyze gradient-flow", {"norm", "ratio"},
                      {arguments.config});
  }
  fill_in(config, arguments.request);
  arguments.request.say = [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  };
  const GradientFlow flow = measure_gradient_flow(config, arguments.request);
  fmt::print("\n{}", describe_gradient_flow(flow));
  if (!arguments.out.empty()) {
    write_gradient_flow(arguments.out, flow, to_yaml(config));
    fmt::print("written: {}\n", arguments.out);
  }
  bool diverged = !flow.baseline.diverged.empty();
  for (const KindFlow& kind : flow.kinds) diverged = diverged || !kind.diverged.empty();
  return diverged ? system::Exit::diverged : system::Exit::ok;
}

Command gradient_flow_command(Context& context) {
  auto a = std::make_shared<FlowArguments>();
  FlowRequest& request = a->request;
  return {.name = "gradient-flow",
          .help =
              "Train attention kinds and the softmax baseline on the same data and compare the "
              "norms of their gradients, layer by layer",
          .options = {config_argument(a->config),
                      set_option(a->overrides),
                      list_option("--kinds", &request.kinds,
                                  "Attention kinds to compare with softmax (default: diff_v1, "
                                  "diff_v2 and that of CONFIG)"),
                      list_option("--steps", &request.steps,
                                  "Steps of training done before a gradient is taken; 0 is "
                                  "initialisation (default: 0,100,300 up to train.steps)"),
                      list_option("--seeds", &request.seeds,
                                  "Seeds; several give means with 95 % t-intervals (default: "
                                  "run.seed)"),
                      {"--out", &a->out, "HDF5 file to write (.h5)"}},
          .run = [a, &context] { context.exit = run_gradient_flow(*a); },
          .examples = {"analyze gradient-flow my.yaml --kinds diff_v2 --steps 0,5"}};
}

struct SnrArguments {
  SnrRequest request;
  std::string out;
};

void run_snr(const SnrArguments& arguments) {
  const fs::path out = arguments.out;
  const bool csv = out.extension() == ".csv";
  if (!out.empty() && !csv && out.extension() != ".h5") {
    throw UsageError(fmt::format("--out: {} is neither .csv nor .h5", out.string()));
  }
  require_measurable(arguments.request);
  if (csv) require_csv_output(out, "analyze snr", kSnrHeader);
  if (!out.empty() && !csv) require_h5_output(out, "analyze snr", {"snr", "gain", "crossover"});
  fmt::print("{}", describe_snr(arguments.request));
  std::fflush(stdout);
  const SnrResult result = measure_snr(arguments.request);
  fmt::print("{}", snr_tables(result));
  if (out.empty()) return;
  (csv ? write_snr_csv : write_snr_h5)(out, result);
  fmt::print("\nwritten: {}\n", out.string());
}

Command snr_command() {
  auto a = std::make_shared<SnrArguments>();
  SnrRequest& r = a->request;
  const auto number = [](const char* name, Target target, const char* help) {
    return Option{
        .name = name, .target = target, .help = help, .show_default = true, .refuse_empty = true};
  };
  return {
      .name = "snr",
      .help =
          "Find a needle in noise: signal-to-noise ratio of one softmax map and of the "
          "difference of two, over noise, its correlation and lambda; trains nothing",
      .options = {number("--tokens", &r.needle.tokens, "Positions of a row, the needle among them"),
                  number("--signal", &r.needle.signal, "Score of the needle in the first map"),
                  number("--second-signal", &r.needle.second_signal,
                         "Score of the needle in the subtracted map"),
                  list_option(
                      "--noise", &r.noise,
                      "Standard deviations of the other scores, ascending, separated by commas"),
                  list_option(
                      "--correlation", &r.correlation,
                      "Correlations of the noise of the two maps, 0 to 1, separated by commas"),
                  number("--lambdas", &r.lambdas, "How many lambdas from 0 to 1"),
                  number("--trials", &r.trials, "Rows drawn for each measurement"),
                  number("--seed", &r.seed, "Seed of the noise"),
                  number("--threshold", &r.threshold, "Ratio below which a map counts as unusable"),
                  {"--out", &a->out, "File for all lambdas: .csv or .h5"}},
      .run = [a] { run_snr(*a); },
      .examples = {"analyze snr --trials 100 --out snr.csv"}};
}

}  // namespace

Command analyze_command(Context& context) {
  return {.name = "analyze",
          .help = "Measure what is claimed of differential attention: gradient flow, noise",
          .commands = {gradient_flow_command(context), snr_command()},
          .examples = {"analyze snr --trials 100"}};
}

}  // namespace difftape::app
