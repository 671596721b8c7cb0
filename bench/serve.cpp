// The difftape candidate of bench_peers: takes steps on request and answers with their times.
// bench/README.md has the protocol.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "bench/attention_call.h"
#include "bench/measure.h"
#include "core/distributed.h"
#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/platform.h"
#include "train/app/plan.h"
#include "train/run/config/reader.h"
#include "train/run/inference/generate.h"
#include "train/run/loop/data_parallel.h"
#include "train/run/loop/step.h"

namespace difftape::bench {
namespace {

using nlohmann::json;

/// Reads the number of steps that a line asks for; 0 at the end of the input.
Index read_request() {
  std::string word;
  Index count = 0;
  if (!(std::cin >> word)) return 0;
  std::cin >> count;
  if (word != "step" || count < 1)
    throw UsageError(fmt::format("serve: '{} {}' is not a request; need 'step N'", word, count));
  return count;
}

/// Returns the request that process 0 reads. The others look for it a thousand times per second,
/// since waiting in MPI would take a core from the next candidate.
Index next_request() {
  constexpr Index kNone = -1;
  Index count = distributed::rank() == 0 ? read_request() : kNone;
  const std::span one(&count, 1);
  if (distributed::rank() > 0) distributed::receive(std::as_writable_bytes(one), 0, 0);
  for (Index to = 1; distributed::rank() == 0 && to < distributed::count(); ++to)
    distributed::send(std::as_bytes(one), to, 0);
  while (count == kNone) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    distributed::progress();
  }
  distributed::wait();
  return count;
}

/// Returns the maximum over all processes.
double largest(double here) {
  return std::ranges::max(distributed::all_of(std::span<const double>(&here, 1)));
}

/// `ready` extends the first line, after name and memory; `step` takes a step and returns its
/// seconds.
void serve(json ready, double idle_bytes, const std::function<double()>& step) {
  const BuildInfo build = build_info();
  ready["version"] = fmt::format("difftape {} ({}), {}, {}", build.version, build.commit,
                                 build.precision, gemm_backend());
  ready["idle_bytes"] = idle_bytes;
  const bool answers = distributed::rank() == 0;
  if (answers) std::cout << ready << std::endl;
  while (const Index count = next_request()) {
    const std::uint64_t before = distributed::bytes_sent();
    json seconds = json::array();
    for (Index i = 0; i < count; ++i) seconds.push_back(step());
    const auto sent = static_cast<double>(distributed::bytes_sent() - before);
    const json answer{{"seconds", seconds},
                      {"peak_bytes", largest(process_memory().peak)},
                      {"sent_bytes", largest(sent / static_cast<double>(count))}};
    if (answers) std::cout << answer << std::endl;
  }
  distributed::leave();
}

run::Config config_of(const std::string& path, const std::vector<std::string>& overrides,
                      const std::string& kind) {
  run::Config config = run::load_config(path, overrides).config;
  if (!kind.empty()) config.model = app::with_kind(config.model, kind);
  require_supported(path, config.model);
  return config;
}

void serve_training(const run::Config& config) {
  distributed::join();
  run::require_shares(config, distributed::count());
  const double idle = process_memory().now;
  run::TrainState state(config);
  serve({{"parameters", state.model.parameters().count()}}, idle, [&] {
    const run::Step step = train_step(state);
    if (step.diverged) throw DataError(fmt::format("step {}: diverged", step.step));
    return step.seconds;
  });
}

/// One step generates `count` tokens greedily after a prompt.
void serve_texts(const run::Config& config, Index count) {
  constexpr Index kPrompt = 16;
  const double idle = process_memory().now;
  LanguageModel model(config.model);
  model.parameters().initialize(config.run.seed);
  run::GenerateRequest request{.prompt = std::vector<std::int32_t>(kPrompt), .max_tokens = count};
  std::iota(request.prompt.begin(), request.prompt.end(), 0);
  request.sampling.temperature = 0;
  serve({{"parameters", model.parameters().count()}}, idle,
        [&] { return seconds_of([&] { generate(model, request); }); });
}

struct AttentionSizes {
  Index heads = 6, head_dim = 64, batch = 1, seq = 256;
};
void serve_attention(const std::string& kind, const AttentionSizes& sizes, bool bf16) {
  const double idle = process_memory().now;
  AttentionCall call = attention_call(kind, sizes.heads, sizes.head_dim, sizes.batch, sizes.seq);
  if (bf16) call.in.precision = Precision::bf16;
  serve(json::object(), idle, [&] { return seconds_of([&] { call.run(); }); });
}

}  // namespace
}  // namespace difftape::bench

int main(int argc, char** argv) {
  using namespace difftape;
  CLI::App app("a candidate of bench_peers: takes steps when a line asks for them");
  app.require_subcommand(1);
  std::string config, kind;
  std::vector<std::string> overrides;
  const auto add_model = [&](const char* name, const char* help) {
    CLI::App* command = app.add_subcommand(name, help);
    command->add_option("CONFIG", config)->required();
    command->add_option("--kind", kind, "attention in place of the configured one")
        ->check(CLI::IsMember(attention_kinds()));
    command->add_option("--set", overrides)->allow_extra_args(false)->take_all();
    return command;
  };
  const CLI::App* step = add_model("step", "whole training steps");
  CLI::App* generate = add_model("generate", "text generation");
  Index tokens = 200;
  generate->add_option("--tokens", tokens, "of a text, after the prompt")
      ->check(CLI::PositiveNumber);

  bench::AttentionSizes sizes;
  bool bf16 = false;
  std::string kernel = "softmax";
  CLI::App* attention = app.add_subcommand("attention", "the attention kernel, both directions");
  attention->add_option("--kind", kernel)->check(CLI::IsMember(attention_kinds()));
  attention->add_option("--heads", sizes.heads)->check(CLI::PositiveNumber);
  attention->add_option("--head-dim", sizes.head_dim)->check(CLI::PositiveNumber);
  attention->add_option("--batch", sizes.batch)->check(CLI::PositiveNumber);
  attention->add_option("--seq", sizes.seq)->check(CLI::PositiveNumber);
  attention->add_flag("--bf16", bf16, "operands in bfloat16");
  return bench::run_program(app, argc, argv, [&] {
    if (step->parsed()) bench::serve_training(bench::config_of(config, overrides, kind));
    if (generate->parsed()) bench::serve_texts(bench::config_of(config, overrides, kind), tokens);
    if (attention->parsed()) bench::serve_attention(kernel, sizes, bf16);
  });
}
