#pragma once
// Which activations a training step keeps for backward, and which it computes again.

#include <string>
#include <vector>

namespace difftape {

enum class Recompute {
  none,   ///< all are kept
  blocks  ///< of each transformer block only the input; backward runs the block once more
};

/// What the configuration calls them.
inline std::vector<std::string> recompute_words() { return {"none", "blocks"}; }
/// `word` is one of them.
inline Recompute recompute_named(const std::string& word) {
  return word == "blocks" ? Recompute::blocks : Recompute::none;
}

}  // namespace difftape
