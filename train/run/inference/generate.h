#pragma once
// Text that a model writes: tokens drawn one after the other, each from all before it.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/names.h"
#include "layers/language_model.h"

namespace difftape::run {

/// Applied in this order. What is left out has probability 0, the rest is drawn in proportion.
struct Sampling {
  double temperature = 1;  ///< logits are divided by it; 0: always the likeliest token
  Index top_k = 0;         ///< the so many likeliest tokens; 0: all
  /// The likeliest tokens that together have this probability (Holtzman et al. 2020, "nucleus").
  double top_p = 1;
  /// Tokens of this share of the largest probability or more (Nguyen et al. 2024, "min-p").
  double min_p = 0;
};

/// Draws one of the tokens [0, logits.size()) by the number `u` in (0, 1). Of equal logits the
/// first is the likeliest. Throws DataError if a logit is not finite.
std::int32_t sample(std::span<const real> logits, const Sampling& sampling, double u);

struct GenerateRequest {
  std::vector<std::int32_t> prompt;  ///< at least one token
  Index max_tokens = 200;
  Sampling sampling{};
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  ///< which of several texts of a seed
  Index known = 0;           ///< only tokens below this are written; 0: all
  Index eos_token_id = -1;   ///< ends the text; attention stays within documents; -1: none
  /// Whether the tokens written, the last of them new, are a text that ends.
  std::function<bool(std::span<const std::int32_t>)> is_stop = [](std::span<const std::int32_t>) {
    return false;
  };
  /// Sees each token when it is drawn; false ends the text.
  std::function<bool(std::int32_t)> on_token = [](std::int32_t) { return true; };
};

/// Why a text ended: at a stop or the end of the document; as long as it may be; at the end of the
/// context of the model; because whoever saw the tokens wanted no more.
enum class FinishReason { stop, length, context, cancelled };

constexpr auto names_of(FinishReason) {
  using enum FinishReason;
  return std::to_array<Named<FinishReason>>(
      {{"stop", stop}, {"length", length}, {"context", context}, {"cancelled", cancelled}});
}

struct Generated {
  std::vector<std::int32_t> tokens;  ///< after the prompt, with what ended it
  FinishReason finish_reason = FinishReason::length;
};

/// Throws DataError if the prompt is empty or longer than model.max_seq_len, or has a token that
/// the model does not know.
void require_prompt(std::span<const std::int32_t> prompt, const ModelConfig& model);

/// A function of the model and the request alone, whatever the threads. Draws with number i of the
/// stream what token i of the text is. Throws what require_prompt and sample throw.
Generated generate(LanguageModel& model, const GenerateRequest& request);

}  // namespace difftape::run
