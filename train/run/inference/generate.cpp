#include "train/run/inference/generate.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/error.h"
#include "core/parallel.h"
#include "core/random.h"

namespace difftape::run {
namespace {

void require_finite(std::span<const real> logits) {
  const auto bad = std::ranges::find_if(logits, [](real x) { return !std::isfinite(x); });
  if (bad != logits.end()) {
    throw DataError(
        fmt::format("the logit of token {} is {}, but must be finite; the weights have "
                    "diverged, use an earlier checkpoint",
                    bad - logits.begin(), static_cast<double>(*bad)));
  }
}

bool leaves_out(const Sampling& sampling) {
  return sampling.top_k > 0 || sampling.top_p < 1 || sampling.min_p > 0;
}

/// Returns how many of the sorted probabilities top_p and min_p keep, at least one.
size_t count_allowed(const std::vector<double>& probabilities, const Sampling& sampling) {
  const double total = std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  size_t count = 0;
  double before = 0;
  for (const double p : probabilities) {
    if (count > 0 &&
        (before >= sampling.top_p * total || p < sampling.min_p * probabilities.front()))
      break;
    before += p;
    ++count;
  }
  return count;
}

}  // namespace

std::int32_t sample(std::span<const real> logits, const Sampling& sampling, double u) {
  require_finite(logits);
  const auto likeliest = std::ranges::max_element(logits);
  if (sampling.temperature == 0) return static_cast<std::int32_t>(likeliest - logits.begin());
  std::vector<std::int32_t> tokens(logits.size());
  std::iota(tokens.begin(), tokens.end(), 0);
  const auto logit = [&](std::int32_t token) { return logits[token]; };
  if (leaves_out(sampling)) std::ranges::stable_sort(tokens, std::ranges::greater(), logit);
  if (sampling.top_k > 0)
    tokens.resize(std::min(tokens.size(), static_cast<size_t>(sampling.top_k)));
  std::vector<double> probabilities;
  for (const std::int32_t token : tokens) {
    const double below = static_cast<double>(logit(token)) - static_cast<double>(*likeliest);
    probabilities.push_back(std::exp(below / sampling.temperature));
  }
  if (leaves_out(sampling)) probabilities.resize(count_allowed(probabilities, sampling));
  double left = u * std::accumulate(probabilities.begin(), probabilities.end(), 0.0);
  size_t drawn = 0;
  while (drawn + 1 < probabilities.size() && left >= probabilities[drawn])
    left -= probabilities[drawn++];
  return tokens[drawn];
}

void require_prompt(std::span<const std::int32_t> prompt, const ModelConfig& model) {
  const auto length = std::ssize(prompt);
  throw_if<DataError>(length == 0,
                      "the prompt is empty, but must have at least one token; write one");
  throw_if<DataError>(length > model.max_seq_len,
                      "the prompt is {} tokens long, but must be at most {} "
                      "(model.max_seq_len); shorten it",
                      length, model.max_seq_len);
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < model.vocab_size) continue;
    throw DataError(fmt::format("token {} of the prompt is {}, but must be in [0, {}]", i,
                                prompt[i], model.vocab_size - 1));
  }
}

namespace {

/// Below these numbers of weights (which fit the caches) and products per pass, generation uses one
/// thread. Threads synchronize about 30 times per pass, which would cost more than they save.
constexpr Index kSerialWeights = Index{1} << 22;
constexpr Index kSerialProducts = Index{1} << 25;

/// Returns the largest number of tokens that the model will read.
Index capacity_of(const ModelConfig& model, const GenerateRequest& request) {
  const Index prompt = std::ssize(request.prompt);
  return prompt + std::min(request.max_tokens, model.max_seq_len - prompt);
}

/// One generated text: its tokens, and a cache of the tokens that the model has read. Attention
/// kinds with a custom context rule have no cache and read all tokens again for every new one.
class Text {
 public:
  Text(LanguageModel& model, const GenerateRequest& request)
      : model_(model),
        request_(request),
        capacity_(capacity_of(model.config(), request)),
        unread_(request.prompt),
        rng_(request.seed, fmt::format("generate/{}", request.stream)) {
    if (fields_of(model.config().attention).context.empty())
      cache_ = model.make_cache(1, capacity_);
  }

  /// Samples the next token.
  std::int32_t next() {
    std::optional<SerialScope> serial;
    const Index weights = model_.parameters().count();
    if (weights < kSerialWeights && weights * std::ssize(unread_) < kSerialProducts)
      serial.emplace();
    Tape tape(Tape::Mode::inference);
    const TokenBatch tokens{unread_, 1, std::ssize(unread_), documents_of_unread()};
    const Tensor logits =
        (cache_ ? model_.next_logits(tape, tokens, *cache_) : model_.logits(tape, tokens)).value();
    const auto vocab_size = static_cast<size_t>(model_.config().vocab_size);
    const std::int32_t token = sample(known_of(logits.values().last(vocab_size)), request_.sampling,
                                      rng_.uniform(written_.size()));
    written_.push_back(token);
    if (cache_) unread_.clear();
    unread_.push_back(token);
    return token;
  }

  bool stopped() const {
    return written_.back() == request_.eos_token_id || request_.is_stop(written_);
  }
  /// Returns true if the context of the model is full.
  bool full() const { return tokens_read() + std::ssize(unread_) > capacity_; }

  const std::vector<std::int32_t>& written() const { return written_; }

 private:
  Index tokens_read() const { return cache_ ? cache_->length() : 0; }

  std::span<const real> known_of(std::span<const real> logits) const {
    return request_.known > 0 ? logits.first(request_.known) : logits;
  }

  DocumentOffsets documents_of_unread() {
    if (request_.eos_token_id < 0) return nullptr;
    std::vector<std::int32_t> begins;
    auto position = static_cast<std::int32_t>(tokens_read());
    if (position == 0) document_ = 0;
    for (const std::int32_t token : unread_) {
      begins.push_back(document_);
      ++position;
      if (token == request_.eos_token_id) document_ = position;
    }
    return std::make_shared<const std::vector<std::int32_t>>(std::move(begins));
  }

  LanguageModel& model_;
  const GenerateRequest& request_;
  Index capacity_;
  std::optional<ModelKvCache> cache_;
  std::vector<std::int32_t> unread_, written_;
  std::int32_t document_ = 0;  ///< position at which the current document begins
  RandomStream rng_;
};

}  // namespace

Generated generate(LanguageModel& model, const GenerateRequest& request) {
  require_prompt(request.prompt, model.config());
  Text text(model, request);
  const auto ended = [&](FinishReason why) { return Generated{text.written(), why}; };
  while (std::ssize(text.written()) < request.max_tokens) {
    if (text.full()) return ended(FinishReason::context);
    if (!request.on_token(text.next())) return ended(FinishReason::cancelled);
    if (text.stopped()) return ended(FinishReason::stop);
  }
  return ended(FinishReason::length);
}

}  // namespace difftape::run
