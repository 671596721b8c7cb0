#pragma once
// A decoder-only transformer over tokens, with the parameter names of Llama in Hugging Face
// transformers.

#include <deque>
#include <optional>

#include "layers/block.h"
#include "layers/model_config.h"

namespace difftape {

/// Token ids of B sequences, row-major (B, T), and where their documents begin.
struct TokenBatch {
  std::span<const std::int32_t> ids;
  Index batch, seq;
  DocumentOffsets document_offsets{};
};

class LanguageModel {
 public:
  /// Declares all parameters; nothing is allocated until parameters().initialize(seed).
  explicit LanguageModel(const ModelConfig& config);

  const ModelConfig& config() const { return config_; }
  ParameterSet& parameters() { return parameters_; }
  const ParameterSet& parameters() const { return parameters_; }

  /// The attention of the first block; all blocks are alike.
  const Attention& attention() const { return blocks_.front().attention(); }

  /// Mean cross-entropy in nats per token, plus the z-loss; `targets` holds the token after each of
  /// `tokens`, or kIgnoreIndex where it is not scored. The gradients are bitwise the same with
  /// checkpointing. `terms`, if given, is what the loss is made of; an observer, if given, sees
  /// every layer, with checkpointing twice.
  Var loss(Tape& tape, const TokenBatch& tokens, std::span<const std::int32_t> targets,
           ActivationCheckpointing activations = ActivationCheckpointing::none,
           LossTerms* terms = nullptr, Observer* observer = nullptr);
  /// (B, T, V)
  Var logits(Tape& tape, const TokenBatch& tokens);
  /// Both from one pass, bitwise the same.
  struct LossAndLogits {
    Var loss, logits;
    LossTerms terms;
  };
  LossAndLogits loss_and_logits(Tape& tape, const TokenBatch& tokens,
                                std::span<const std::int32_t> targets);
  /// An empty cache for sequences of at most `capacity` tokens. Throws ConfigError for a kind with
  /// a context rule of its own (layers/attention/context.h), which reads none.
  ModelKvCache make_cache(Index batch, Index capacity) const;
  /// Logits of the token after the last one of each sequence, (B, V); `tokens` follow those in the
  /// cache, and are added to it. On an inference tape. Throws ShapeError if they do not fit.
  Var next_logits(Tape& tape, const TokenBatch& tokens, ModelKvCache& cache);
  /// Runs all but the head and shows every layer to the observer, the first layer first.
  void observe(Tape& tape, const TokenBatch& tokens, Observer& observer);

 private:
  /// (B, T, C), after the norm
  Var hidden(Tape& tape, const TokenBatch& tokens, ActivationCheckpointing activations,
             Observer* observer = nullptr, ModelKvCache* cache = nullptr);
  Var head(Tape& tape);                            // (V, C)
  Var logits_of(const Var& x, const Var& weight);  // (B, T, V)
  LossOptions loss_options() const { return {config_.z_loss_weight, config_.final_logit_softcap}; }

  ModelConfig config_;
  ParameterSet parameters_;
  Parameter* embedding_;
  std::deque<TransformerBlock> blocks_;
  std::optional<RmsNorm> embedding_norm_, norm_;
  Parameter* head_;
};

/// The configuration with `match_params` carried out: d_ff shrinks to the multiple of 4 that brings
/// the number of parameters nearest to that of the softmax kind, unless it is nearest as it is.
/// Throws ConfigError if nothing is left for the feed-forward layers.
ModelConfig matched(const ModelConfig& config);

}  // namespace difftape
