#pragma once
// Who takes part in a race: difftape and its peers, as commands.

#include <filesystem>
#include <string>
#include <vector>

#include "bench/race.h"

namespace difftape::bench {

/// The words that choose contestants, difftape in single precision first.
std::vector<std::string> arm_words();

/// Where they are and which of them run.
struct Arms {
  std::vector<std::string> words = arm_words();
  std::filesystem::path programs;  ///< the directory of bench_serve and difftape
  std::string python;              ///< with PyTorch and NumPy; empty: no PyTorch
  std::string llmc;                ///< a checkout of llm.c; empty: no llm.c
};

/// Contestants of one race, and why others take no part.
struct Field {
  std::vector<Contestant> contestants;
  std::vector<std::string> left_out;  ///< "name: why"
};

/// A configuration to train, as files and overrides have it.
struct Training {
  std::string config;
  std::vector<std::string> overrides;
  std::string kind;  ///< attention in place of the configured one; empty: as it is
};

/// Whole training steps. Throws what the configuration throws.
run::Field training_field(const Training& training, const Arms& arms);

/// Softmax attention alone, forward and backward. Throws UsageError if `seq` does not divide
/// `tokens`.
struct AttentionSize {
  Index heads = 6, head_dim = 64, tokens = 4096, seq = 256;
};
run::Field attention_field(const AttentionSize& size, const Arms& arms);

/// From the start of the program to the end of the first step: `difftape train` with its run
/// directory `scratch`, and the peers.
run::Field start_field(const Training& training, const Arms& arms,
                       const std::filesystem::path& scratch);

/// Tokens that one step of the configuration trains on.
double tokens_of_step(const Training& training);

}  // namespace difftape::bench
