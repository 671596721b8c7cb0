#include "layers/language_model.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/parallel.h"

namespace difftape {

LanguageModel::LanguageModel(const ModelConfig& config)
    : config_(matched(config)),
      embedding_(&parameters_.declare(
          "model.embed_tokens.weight", {config.vocab_size, config.d_model}, Role::embedding,
          Init::normal(init_rule(config).embedding()), {Component::embedding})) {
  const Module norms{parameters_, "model", {Component::norms}};
  if (config_.embedding_norm) {
    embedding_norm_.emplace(norms / "embedding_norm", config_.d_model, config_.norm_eps);
  }
  const auto rope = config_.rope
                        ? std::make_shared<const RopeTable>(
                              config_.max_seq_len, head_dim_of(config_), rope_rule(config_))
                        : nullptr;
  for (Index layer = 0; layer < config_.num_layers; ++layer) {
    blocks_.emplace_back(parameters_, config_, layer, rope);
  }
  norm_.emplace(norms / "norm", config_.d_model, config_.norm_eps);
  head_ = config_.tie_word_embeddings
              ? embedding_
              : &parameters_.declare("lm_head.weight", {config_.vocab_size, config_.d_model},
                                     Role::output,
                                     Init::normal(init_rule(config_).projection(config_.d_model)),
                                     {Component::head});
}

Var LanguageModel::hidden(Tape& tape, const TokenBatch& tokens, ActivationCheckpointing activations,
                          Observer* observer, ModelKvCache* cache) {
  Var x = embedding(tokens.ids, {tokens.batch, tokens.seq}, tape.parameter(*embedding_));
  if (embedding_norm_) x = (*embedding_norm_)(x);
  const Pass pass{tokens.document_offsets, observer, cache};
  for (const TransformerBlock& block : blocks_) {
    const auto run = [&block, pass](const Var& in) { return block(in, pass); };
    x = activations == ActivationCheckpointing::blocks ? checkpointed(x, run) : run(x);
  }
  return (*norm_)(x);
}

Var LanguageModel::head(Tape& tape) { return tape.parameter(*head_); }

Var LanguageModel::logits_of(const Var& x, const Var& weight) {
  const Var logits = linear(x, weight);
  return config_.final_logit_softcap > 0 ? softcap(logits, config_.final_logit_softcap) : logits;
}

Var LanguageModel::loss(Tape& tape, const TokenBatch& tokens, std::span<const std::int32_t> targets,
                        ActivationCheckpointing activations, LossTerms* terms, Observer* observer) {
  const Var x = hidden(tape, tokens, activations, observer);
  return cross_entropy(x, head(tape), targets, loss_options(), terms);
}

Var LanguageModel::logits(Tape& tape, const TokenBatch& tokens) {
  const Var x = hidden(tape, tokens, ActivationCheckpointing::none);
  return logits_of(x, head(tape));
}

ModelKvCache LanguageModel::make_cache(Index batch, Index capacity) const {
  const AttentionFields fields = fields_of(config_.attention);
  if (!fields.context.empty()) {
    throw ConfigError(
        fmt::format("{} defines its own context rule, which reads whole sequences and has no cache",
                    fields.context));
  }
  const Attention& layer = attention();
  ModelKvCache cache;
  for (Index i = 0; i < config_.num_layers; ++i) {
    cache.layers.emplace_back(layer.mapping(), batch, capacity, head_dim_of(config_),
                              layer.value_dim());
  }
  return cache;
}

Var LanguageModel::next_logits(Tape& tape, const TokenBatch& tokens, ModelKvCache& cache) {
  const Var x = hidden(tape, tokens, ActivationCheckpointing::none, nullptr, &cache);
  Tensor last = Tensor::empty({tokens.batch, config_.d_model});
  parallel_for(tokens.batch, [&](Index b) {
    std::copy_n(x.value().row((b + 1) * tokens.seq - 1), config_.d_model, last.row(b));
  });
  return logits_of(tape.constant(last), head(tape));
}

void LanguageModel::observe(Tape& tape, const TokenBatch& tokens, Observer& observer) {
  hidden(tape, tokens, ActivationCheckpointing::none, &observer);
}

LanguageModel::LossAndLogits LanguageModel::loss_and_logits(Tape& tape, const TokenBatch& tokens,
                                                            std::span<const std::int32_t> targets) {
  const Var x = hidden(tape, tokens, ActivationCheckpointing::none), weight = head(tape);
  LossAndLogits result;
  result.loss = cross_entropy(x, weight, targets, loss_options(), &result.terms);
  result.logits = logits_of(x, weight);
  return result;
}

ModelConfig matched(const ModelConfig& config) {
  constexpr Index kStep = 4;
  if (!config.match_params) return config;
  ModelConfig plain = config, baseline = config;
  plain.match_params = baseline.match_params = false;
  baseline.attention = plain_kind(AttentionKind(), config.attention);
  const Index surplus =
      LanguageModel(plain).parameters().count() - LanguageModel(baseline).parameters().count();
  const double per_unit = 3.0 * static_cast<double>(config.d_model * config.num_layers);
  const double exact = static_cast<double>(config.d_ff) - static_cast<double>(surplus) / per_unit;
  const Index shrunk = kStep * static_cast<Index>(std::llround(exact / kStep));
  const bool nearer = std::abs(static_cast<double>(shrunk) - exact) <
                      std::abs(static_cast<double>(config.d_ff) - exact);
  if (nearer && shrunk < config.d_ff) plain.d_ff = shrunk;
  if (nearer && shrunk < kStep) {
    throw ConfigError(fmt::format(
        "model.match_params: {} has {} parameters more than softmax, more than a d_ff of {} "
        "can give up; raise model.d_ff or set model.match_params: false",
        config.attention.kind.name(), surplus, config.d_ff));
  }
  return plain;
}

}  // namespace difftape
