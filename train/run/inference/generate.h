#pragma once
// Text generation: samples one token after the other.

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/names.h"
#include "layers/language_model.h"

namespace difftape::run {

/// Filters of the token distribution, applied in this order. Remaining tokens are renormalized.
struct Sampling {
  double temperature = 1;  ///< divides the logits; 0: greedy decoding
  Index top_k = 0;         ///< keeps the k most likely tokens; 0: all
  /// Keeps the most likely tokens with this total probability (Holtzman et al. 2020, "nucleus").
  double top_p = 1;
  /// Keeps tokens of at least this fraction of the largest probability (Nguyen et al. 2024,
  /// "min-p").
  double min_p = 0;
};

/// Samples one of the tokens [0, logits.size()) by the uniform number `u` in (0, 1). Of equal
/// logits the first counts as the most likely. Throws DataError if a logit is not finite.
std::int32_t sample(std::span<const real> logits, const Sampling& sampling, double u);

struct GenerateRequest {
  std::vector<std::int32_t> prompt;  ///< at least one token
  Index max_tokens = 200;
  Sampling sampling{};
  std::uint64_t seed = 1;
  std::uint64_t stream = 0;  ///< number of the prompt, which has its own random stream
  Index known = 0;           ///< only tokens below this are sampled; 0: all
  Index eos_token_id = -1;   ///< ends generation; attention stays within documents; -1: none
  /// Returns true if the generation ends with the generated tokens; called after each token.
  std::function<bool(std::span<const std::int32_t>)> is_stop = [](std::span<const std::int32_t>) {
    return false;
  };
  /// Receives each sampled token; returning false ends the generation.
  std::function<bool(std::int32_t)> on_token = [](std::int32_t) { return true; };
};

/// Reason why a generation ended: a stop condition or end of document; max_tokens; the context
/// length of the model; on_token returned false.
enum class FinishReason { stop, length, context, cancelled };

constexpr auto names_of(FinishReason) {
  using enum FinishReason;
  return std::to_array<Named<FinishReason>>(
      {{"stop", stop}, {"length", length}, {"context", context}, {"cancelled", cancelled}});
}

struct Generated {
  std::vector<std::int32_t> tokens;  ///< after the prompt, including the one that ended it
  FinishReason finish_reason = FinishReason::length;
};

/// Throws DataError if the prompt is empty or longer than model.max_seq_len, or has a token outside
/// the vocabulary.
void require_prompt(std::span<const std::int32_t> prompt, const ModelConfig& model);

/// Generates tokens after the prompt. The result depends on the model and the request only, not on
/// threads: number i of the random stream samples token i. Throws as require_prompt and sample do.
Generated generate(LanguageModel& model, const GenerateRequest& request);

}  // namespace difftape::run
