#pragma once
// Text that a model writes: tokens drawn one after the other, each from all before it.

#include <functional>
#include <string>
#include <vector>

#include "layers/language_model.h"
#include "train/run/inference/sampling.h"

namespace difftape::run {

struct GenerateRequest {
  std::vector<std::int32_t> prompt;  ///< at least one token
  Index max_tokens = 200;
  Sampling sampling{};
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  ///< which of several texts of a seed
  Index eos_token_id = -1;   ///< ends the text; attention stays within documents; -1: none
  /// Any of these, as tokens, ends the text too.
  std::vector<std::vector<std::int32_t>> stop{};
  /// Sees each token when it is drawn; false ends the text.
  std::function<bool(std::int32_t)> on_token = [](std::int32_t) { return true; };
};

/// Why a text ended: it is as long as it may be, or as the context of the model; a stop or the end
/// of the document; or whoever saw the tokens wanted no more.
enum class TextEnd { max_tokens, context, stop, cancelled };

struct Generated {
  std::vector<std::int32_t> tokens;  ///< after the prompt, with what ended it
  TextEnd end = TextEnd::max_tokens;
};

/// A function of the model and the request alone, whatever the threads. Draws with number i of the
/// stream what token i of the text is. Throws DataError if the prompt is empty or longer than
/// model.max_seq_len, or has a token that the model does not know.
Generated generate(LanguageModel& model, const GenerateRequest& request);

}  // namespace difftape::run
