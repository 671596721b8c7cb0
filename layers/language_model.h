#pragma once
// A decoder-only transformer with the parameter names of Llama in Hugging Face transformers.

#include <deque>
#include <optional>

#include "layers/block.h"
#include "layers/model_config.h"

namespace difftape {

/// Token ids of B sequences, row-major (B, T), and their document offsets.
struct TokenBatch {
  std::span<const std::int32_t> ids;
  Index batch, seq;
  DocumentOffsets document_offsets{};
};

class LanguageModel {
 public:
  /// Declares all parameters; parameters().initialize(seed) allocates them.
  explicit LanguageModel(const ModelConfig& config);

  const ModelConfig& config() const { return config_; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }

  /// Returns the mean cross-entropy in nats per token, plus the z-loss and the losses of routers.
  /// `targets` holds the token after each of `tokens`, or kIgnoreIndex. Checkpointing does not
  /// change a bit of the gradients. Fills `terms` if given; an observer sees every layer, twice
  /// with checkpointing.
  Var loss(Tape& tape, const TokenBatch& tokens, std::span<const std::int32_t> targets,
           ActivationCheckpointing activations = ActivationCheckpointing::none,
           LossTerms* terms = nullptr, Observer* observer = nullptr);
  /// Returns (B, T, V).
  Var logits(Tape& tape, const TokenBatch& tokens);
  /// Returns both from one pass, with the same bits.
  struct LossAndLogits {
    Var loss, logits;
    LossTerms terms;
  };
  LossAndLogits loss_and_logits(Tape& tape, const TokenBatch& tokens,
                                std::span<const std::int32_t> targets);
  /// Returns an empty cache for sequences of at most `capacity` tokens. Throws ConfigError for a
  /// kind with a context rule (layers/attention/context.h), which supports none.
  ModelKvCache make_cache(Index batch, Index capacity) const;
  /// Appends `tokens` to the cache and returns logits (B, V) of the token after the last one. A
  /// cross-decoder runs for the last token only. For inference tapes. Throws ShapeError if the
  /// cache is full.
  Var next_logits(Tape& tape, const TokenBatch& tokens, ModelKvCache& cache);
  /// Runs all layers except the head and shows them to the observer in order.
  void observe(Tape& tape, const TokenBatch& tokens, Observer& observer);

 private:
  /// (B, T, C) after the norm, with a cache (B, 1, C) of the last token, and the sum of the losses
  /// of routers, undefined without any.
  struct Hidden {
    Var x, router_loss{};
  };
  Hidden hidden(Tape& tape, const TokenBatch& tokens, ActivationCheckpointing activations,
                Observer* observer = nullptr, ModelKvCache* cache = nullptr);
  Var loss_of(const Hidden& hidden, const Var& weight, std::span<const std::int32_t> targets,
              LossTerms* terms);
  Var head(Tape& tape);                            // (V, C)
  Var logits_of(const Var& x, const Var& weight);  // (B, T, V)
  LossOptions loss_options() const { return {config_.z_loss_weight, config_.final_logit_softcap}; }

  ModelConfig config_;
  ParameterSet parameters_;
  Parameter* embedding_;
  std::deque<TransformerBlock> blocks_;
  std::optional<SharedKeyValues> shared_kv_;
  std::optional<RmsNorm> embedding_norm_, norm_;
  Parameter* head_;
};

/// Applies `match_params`: sets d_ff, or moe_intermediate_size, to the multiple of 4 whose
/// parameter count is nearest to the softmax baseline, unless it is nearest already. Throws
/// ConfigError if nothing is left for the feed-forward layers.
ModelConfig matched(const ModelConfig& config);

/// Returns the number of parameters of a model, exact below 2^53. It takes no time for any sizes.
/// Throws ConfigError like LanguageModel.
double parameter_count(const ModelConfig& config);

}  // namespace difftape
