#pragma once
// Texts that a model writes while it trains, as log.sample_* say.

#include <string>
#include <vector>

#include "train/run/data/prepare/tokenizer.h"
#include "train/run/loop/train_state.h"

namespace difftape::run {

class TextSamples {
 public:
  /// For the model of a run. Throws ConfigError if the tokenizer of its tokens is not known, or the
  /// prompt is empty or longer than the context.
  explicit TextSamples(const TrainState& state);

  /// The prompt and what the model writes after it now; another text at every step.
  std::string write(TrainState& state) const;

 private:
  Tokenizer tokenizer_;
  std::vector<std::int32_t> prompt_;
};

}  // namespace difftape::run
