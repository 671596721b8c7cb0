// Races of processes: difftape against PyTorch, llm.c and its own kinds and precisions.
//   step       whole training steps of a configuration
//   attention  softmax attention alone, forward and backward
//   start      from the start of the program to the end of the first step
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>

#include "bench/contestants.h"
#include "bench/measure.h"
#include "bench/standings.h"
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
  Arms arms;
  RaceRules rules;
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
  const run::Config config = run::load_config(training.config, training.overrides).config;
  const ModelConfig& m = config.model;
  fmt::print("d_model {}, {} layers, {} heads, d_ff {}, vocabulary {}, T {}, batch {}, match {}\n",
             m.d_model, m.num_layers, m.num_heads, m.d_ff, m.vocab_size, config.data.seq_len,
             config.data.batch_size, m.match_params ? "parameters" : "none");
  std::fflush(stdout);
}

run::Field merged(run::Field a, const run::Field& b) {
  a.contestants.insert(a.contestants.end(), b.contestants.begin(), b.contestants.end());
  a.left_out.insert(a.left_out.end(), b.left_out.begin(), b.left_out.end());
  return a;
}

Heat run_heat(const std::string& label, double tokens, const run::Field& field,
              const RaceRules& rules) {
  Heat heat{label, tokens, race(field.contestants, rules)};
  heat.result.left_out.insert(heat.result.left_out.begin(), field.left_out.begin(),
                              field.left_out.end());
  return heat;
}

void race_steps(const Arguments& arguments) {
  const auto heat_of = [&](const Training& training) {
    run::Field field;
    if (arguments.kinds.empty()) field = training_field(training, arguments.arms);
    for (const std::string& kind : arguments.kinds) {
      Training of_kind = training;
      of_kind.kind = kind;
      field = merged(field, training_field(of_kind, arguments.arms));
    }
    const run::Config config = run::load_config(training.config, training.overrides).config;
    return run_heat(std::to_string(config.data.seq_len), tokens_of_step(training), field,
                    arguments.rules);
  };
  describe(arguments.training);
  std::vector<Heat> heats;
  if (arguments.seqs.empty()) heats.push_back(heat_of(arguments.training));
  const Index tokens = arguments.tokens > 0
                           ? arguments.tokens
                           : static_cast<Index>(tokens_of_step(arguments.training));
  for (const Index seq : arguments.seqs)
    heats.push_back(heat_of(at_length(arguments.training, seq, tokens)));
  fmt::print("\n{}", standings(heats, "T"));
}

void race_attention(const Arguments& arguments) {
  AttentionSize size = arguments.attention;
  fmt::print("softmax attention, {} heads of {}, {} tokens in all, forward + backward\n",
             size.heads, size.head_dim, size.tokens);
  std::fflush(stdout);
  std::vector<Heat> heats;
  for (const Index seq : arguments.seqs) {
    size.seq = seq;
    heats.push_back(run_heat(std::to_string(seq), static_cast<double>(size.tokens),
                             attention_field(size, arguments.arms), arguments.rules));
  }
  fmt::print("\n{}", standings(heats, "T"));
}

void race_starts(const Arguments& arguments) {
  const auto scratch =
      std::filesystem::temp_directory_path() / fmt::format("difftape_bench_start_{}", getpid());
  describe(arguments.training);
  const run::Field field = start_field(arguments.training, arguments.arms, scratch);
  RaceResult result = race_to_first_step(field.contestants, arguments.rules.rounds, scratch);
  result.left_out.insert(result.left_out.begin(), field.left_out.begin(), field.left_out.end());
  fmt::print("\n{}", start_standings(result));
}

/// Options that the races share.
void add_race_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--arms", arguments.arms.words, "who takes part")
      ->delimiter(',')
      ->check(CLI::IsMember(arm_words()))
      ->capture_default_str();
  command.add_option("--rounds", arguments.rules.rounds)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
}

void add_training_options(CLI::App& command, Arguments& arguments) {
  command.add_option("CONFIG", arguments.training.config)->required();
  command.add_option("--set", arguments.training.overrides)->allow_extra_args(false)->take_all();
}

void add_turn_options(CLI::App& command, Arguments& arguments) {
  command.add_option("--steps", arguments.rules.steps, "steps of a turn")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--warmup", arguments.rules.warmup, "steps before the first round")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command.add_option("--seq", arguments.seqs, "a heat for each of these lengths")
      ->delimiter(',')
      ->check(CLI::PositiveNumber);
}

int run(int argc, char** argv) {
  CLI::App app("difftape and its peers as processes that take turns");
  app.require_subcommand(1);
  Arguments arguments;
  arguments.arms.programs = std::filesystem::read_symlink("/proc/self/exe").parent_path();
  arguments.arms.python = environment("DIFFTAPE_PEER_PYTHON");
  arguments.arms.llmc = environment("DIFFTAPE_LLMC");

  CLI::App* step = app.add_subcommand("step", "whole training steps");
  add_training_options(*step, arguments);
  add_race_options(*step, arguments);
  add_turn_options(*step, arguments);
  step->add_option("--kinds", arguments.kinds, "attention kinds, in place of the configured one")
      ->delimiter(',')
      ->check(CLI::IsMember(attention_kinds()));
  step->add_option("--tokens", arguments.tokens, "tokens of a step at every --seq")
      ->check(CLI::PositiveNumber);
  step->add_option("--llmc", arguments.arms.llmc, "a checkout of llm.c");

  CLI::App* attention = app.add_subcommand("attention", "softmax attention alone");
  add_race_options(*attention, arguments);
  add_turn_options(*attention, arguments);
  attention->get_option("--seq")->required();
  attention->add_option("--tokens", arguments.attention.tokens, "tokens of all sequences together")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();

  CLI::App* start = app.add_subcommand("start", "from the start to the end of the first step");
  add_training_options(*start, arguments);
  add_race_options(*start, arguments);

  return run_program(app, argc, argv, [&] {
    print_environment();
    if (step->parsed()) race_steps(arguments);
    if (attention->parsed()) race_attention(arguments);
    if (start->parsed()) race_starts(arguments);
  });
}

}  // namespace
}  // namespace difftape::bench

int main(int argc, char** argv) { return difftape::bench::run(argc, argv); }
