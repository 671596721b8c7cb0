#include "train/run/loop/text_samples.h"

#include "core/error.h"
#include "train/run/inference/generate.h"

namespace difftape::run {

namespace {

Tokenizer tokenizer_of_data(const TrainState& state) {
  if (state.config.data.type == DataKind::text) return byte_tokenizer();
  const TokenizerFile file = state.data->tokenizer();
  if (!file.is_known()) {
    throw ConfigError(
        "log.sample_interval: samples are text, and the tokenizer of data.path is not known; train "
        "on "
        "tokens that have theirs with them, as `difftape data prepare` writes it, or write 0");
  }
  return tokenizer_of(file);
}

}  // namespace

TextSamples::TextSamples(const TrainState& state)
    : tokenizer_(tokenizer_of_data(state)),
      prompt_(tokenizer_.encode(state.config.log.sample_prompt)) {
  try {
    require_prompt(prompt_, state.config.model);
  } catch (const DataError& error) {
    throw ConfigError(fmt::format("log.sample_prompt: {}", error.what()));
  }
}

std::string TextSamples::write(TrainState& state) const {
  const Config& config = state.config;
  GenerateRequest request{.prompt = prompt_,
                          .max_tokens = config.log.sample_tokens,
                          .seed = config.run.seed,
                          .stream = static_cast<std::uint64_t>(state.step),
                          .eos_token_id = config.data.eos_token_id};
  request.known = known_tokens(tokenizer_, request.eos_token_id, config.model.vocab_size);
  std::vector<std::int32_t> text = prompt_;
  std::ranges::copy(generate(state.model, request).tokens, std::back_inserter(text));
  return tokenizer_.decode(text);
}

}  // namespace difftape::run
