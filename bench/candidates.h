#pragma once
// The candidates of a benchmark: difftape and its peers, as commands.

#include <filesystem>
#include <string>
#include <vector>

#include "bench/interleaved.h"

namespace difftape::bench {

/// The names that choose candidates, difftape in single precision first.
std::vector<std::string> candidate_names();

/// The locations of the candidates, and the names of those to run.
struct Selection {
  std::vector<std::string> names = candidate_names();
  std::filesystem::path programs;  ///< the directory of bench_serve and difftape
  std::string python;              ///< with PyTorch and NumPy; empty: no PyTorch
  std::string llmc;                ///< a checkout of llm.c; empty: no llm.c
  Index processes = 1;             ///< over 1: also as so many processes, which share the threads
};

/// Candidates of one benchmark, and why others are left out.
struct Entries {
  std::vector<Candidate> candidates;
  std::vector<std::string> left_out;  ///< "name: why"
};

/// A configuration to train, as a file and overrides.
struct Training {
  std::string config;
  std::vector<std::string> overrides;
  std::string kind;  ///< replaces the configured attention unless empty
};

/// Makes candidates that take whole training steps. Throws the errors of the configuration.
Entries training_entries(const Training& training, const Selection& selection);

/// Softmax attention alone, forward and backward. Throws UsageError if `seq` does not divide
/// `tokens`.
struct AttentionSize {
  Index heads = 6, head_dim = 64, tokens = 4096, seq = 256;
};
Entries attention_entries(const AttentionSize& size, const Selection& selection);

/// Generation of `tokens` tokens one by one in single precision. PyTorch has as many threads as
/// difftape, and one thread, which is faster for small steps.
Entries text_entries(const Training& training, Index tokens, const Selection& selection);

/// The time from program start to the end of the first step: `difftape train` with run directory
/// `scratch`, and the peers.
Entries start_entries(const Training& training, const Selection& selection,
                      const std::filesystem::path& scratch);

/// Tokens that one step of the configuration trains on.
double tokens_of_step(const Training& training);

}  // namespace difftape::bench
