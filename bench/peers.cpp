// Interleaved benchmarks of processes: difftape against PyTorch, llm.c and its own kinds and
// precisions.
//   step       whole training steps of a configuration
//   attention  softmax attention alone, forward and backward
//   generate   generation token by token
//   start      time from program start to the end of the first step
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

#include "bench/candidates.h"
#include "bench/measure.h"
#include "bench/results_table.h"
#include "core/error.h"
#include "layers/attention/fields.h"
#include "train/run/config/reader.h"

namespace difftape::bench {
namespace {

struct Arguments {
  Training training;
  std::vector<std::string> kinds;
  std::vector<Index> seqs;
  Index tokens = 0;  ///< of one step; 0: as configured
  AttentionSize attention;
  Selection selection;
  Interleaving rules;
};

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The configuration at another length, with as many sequences as make `tokens` tokens.
Training at_length(Training training, Index seq, Index tokens) {
  if (tokens % seq != 0)
    throw UsageError(fmt::format("step: --seq {} does not divide --tokens {}", seq, tokens));
  training.overrides.push_back(fmt::format("data.seq_len={}", seq));
  training.overrides.push_back(fmt::format("model.max_seq_len={}", seq));
  training.overrides.push_back(fmt::format("data.batch_size={}", tokens / seq));
  return training;
}

void describe(const Training& training) {
  fmt::print("{}\n", bench::describe(run::load_config(training.config, training.overrides).config));
  std::fflush(stdout);
}

Entries merged(Entries a, const Entries& b) {
  a.candidates.insert(a.candidates.end(), b.candidates.begin(), b.candidates.end());
  a.left_out.insert(a.left_out.end(), b.left_out.begin(), b.left_out.end());
  return a;
}

CandidateGroup run_group(const std::string& label, double tokens, const Entries& entries,
                         const Interleaving& rules) {
  CandidateGroup group{label, tokens, run_interleaved(entries.candidates, rules)};
  group.result.left_out.insert(group.result.left_out.begin(), entries.left_out.begin(),
                               entries.left_out.end());
  return group;
}

void benchmark_steps(const Arguments& arguments) {
  const auto group_of = [&](const Training& training) {
    Entries entries;
    if (arguments.kinds.empty()) entries = training_entries(training, arguments.selection);
    for (const std::string& kind : arguments.kinds) {
      Training of_kind = training;
      of_kind.kind = kind;
      entries = merged(entries, training_entries(of_kind, arguments.selection));
    }
    const run::Config config = run::load_config(training.config, training.overrides).config;
    return run_group(std::to_string(config.data.seq_len), tokens_of_step(training), entries,
                     arguments.rules);
  };
  describe(arguments.training);
  std::vector<CandidateGroup> groups;
  if (arguments.seqs.empty()) groups.push_back(group_of(arguments.training));
  const Index tokens = arguments.tokens > 0
                           ? arguments.tokens
                           : static_cast<Index>(tokens_of_step(arguments.training));
  for (const Index seq : arguments.seqs)
    groups.push_back(group_of(at_length(arguments.training, seq, tokens)));
  fmt::print("\n{}", results_table(groups, "T"));
}

void benchmark_attention(const Arguments& arguments) {
  AttentionSize size = arguments.attention;
  fmt::print("softmax attention, {} heads of {}, {} tokens in all, forward + backward\n",
             size.heads, size.head_dim, size.tokens);
  std::fflush(stdout);
  std::vector<CandidateGroup> groups;
  for (const Index seq : arguments.seqs) {
    size.seq = seq;
    groups.push_back(run_group(std::to_string(seq), static_cast<double>(size.tokens),
                               attention_entries(size, arguments.selection), arguments.rules));
  }
  fmt::print("\n{}", results_table(groups, "T"));
}

void benchmark_texts(const Arguments& arguments) {
  describe(arguments.training);
  fmt::print("a step is a text of {} tokens after a prompt of 16\n", arguments.tokens);
  std::vector<CandidateGroup> groups;
  for (const std::string& kind : arguments.kinds) {
    Training of_kind = arguments.training;
    of_kind.kind = kind;
    groups.push_back(run_group(kind, static_cast<double>(arguments.tokens),
                               text_entries(of_kind, arguments.tokens, arguments.selection),
                               arguments.rules));
  }
  fmt::print("\n{}", results_table(groups, "kind"));
}

void benchmark_starts(const Arguments& arguments) {
  const auto scratch =
      std::filesystem::temp_directory_path() / fmt::format("difftape_bench_start_{}", getpid());
  describe(arguments.training);
  const Entries entries = start_entries(arguments.training, arguments.selection, scratch);
  BenchmarkResult result = time_to_first_step(entries.candidates, arguments.rules.rounds, scratch);
  result.left_out.insert(result.left_out.begin(), entries.left_out.begin(), entries.left_out.end());
  fmt::print("\n{}", start_table(result));
}

/// The options that all commands have.
void add_common_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--candidates", arguments.selection.names, "what to measure")
      ->delimiter(',')
      ->check(CLI::IsMember(candidate_names()))
      ->capture_default_str();
  command.add_option("--rounds", arguments.rules.rounds)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void add_training_options(CLI::App& command, Arguments& arguments) {
  command.add_option("CONFIG", arguments.training.config)->required();
  command.add_option("--set", arguments.training.overrides)->allow_extra_args(false)->take_all();
}

void add_round_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--steps", arguments.rules.steps, "steps of a round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--warmup", arguments.rules.warmup, "steps before the first round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

CLI::Option* add_seq_option(CLI::App& command, Arguments& arguments) {
  return command.add_option("--seq", arguments.seqs, "a group for each of these lengths")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
}

int run(int argc, char** argv) {
  CLI::App app("difftape and its peers as processes, a few steps of each in every round");
  app.require_subcommand(1);
  Arguments arguments;
  arguments.selection.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  arguments.selection.python = environment("DIFFTAPE_PEER_PYTHON");
  arguments.selection.llmc = environment("DIFFTAPE_LLMC");

  CLI::App* step = app.add_subcommand("step", "whole training steps");
  add_training_options(*step, arguments);
  add_common_options(*step, arguments);
  add_round_options(*step, arguments);
  add_seq_option(*step, arguments);
  step->add_option("--kinds", arguments.kinds, "attention kinds, in place of the configured one")
      ->delimiter(',')
      ->check(CLI::IsMember(attention_kinds()));
  step->add_option("--tokens", arguments.tokens, "tokens of a step at every --seq")
      ->check(CLI::PositiveNumber);
  step->add_option("--processes", arguments.selection.processes,
                   "also as so many processes of mpirun, which share the threads")
      ->check(CLI::PositiveNumber);
  step->add_option("--llmc", arguments.selection.llmc, "a checkout of llm.c");

  CLI::App* generate = app.add_subcommand("generate", "text generation, token by token");
  add_training_options(*generate, arguments);
  add_common_options(*generate, arguments);
  add_round_options(*generate, arguments);
  generate->add_option("--kinds", arguments.kinds, "attention kinds")
      ->delimiter(',')
      ->required()
      ->check(CLI::IsMember(attention_kinds()));
  generate->add_option("--tokens", arguments.tokens, "tokens of a text, after the prompt")
      ->required()
      ->check(CLI::PositiveNumber);

  CLI::App* attention = app.add_subcommand("attention", "softmax attention alone");
  add_common_options(*attention, arguments);
  add_round_options(*attention, arguments);
  add_seq_option(*attention, arguments)->required();
  attention->add_option("--tokens", arguments.attention.tokens, "tokens of all sequences together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();

  CLI::App* start = app.add_subcommand("start", "from the start to the end of the first step");
  add_training_options(*start, arguments);
  add_common_options(*start, arguments);

  return run_program(app, argc, argv, [&] {
    print_environment();
    if (step->parsed()) benchmark_steps(arguments);
    if (attention->parsed()) benchmark_attention(arguments);
    if (generate->parsed()) benchmark_texts(arguments);
    if (start->parsed()) benchmark_starts(arguments);
  });
}

}  // namespace
}  // namespace difftape::bench

int main(int argc, char** argv) { return difftape::bench::run(argc, argv); }
