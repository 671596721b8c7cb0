#include "layers/language_model.h"

#include <cmath>

#include "core/error.h"
#include "layers/model_rules.h"

namespace difftape {

namespace {

/// Returns where the document of the last of each `seq` tokens begins.
DocumentOffsets last_of(const DocumentOffsets& all, Index seq) {
  if (!all) return nullptr;
  std::vector<std::int32_t> last;
  for (Index i = seq - 1; i < std::ssize(*all); i += seq) last.push_back((*all)[i]);
  return std::make_shared<const std::vector<std::int32_t>>(std::move(last));
}

}  // namespace

LanguageModel::LanguageModel(const ModelConfig& config)
    : config_(matched(require_valid(config))),
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
    if (shares_key_values(config_, layer) && !shared_kv_)
      shared_kv_.emplace(parameters_, config_, rope);
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

LanguageModel::Hidden LanguageModel::hidden(Tape& tape, const TokenBatch& tokens,
                                            ActivationCheckpointing activations, Observer* observer,
                                            ModelKvCache* cache) {
  Var router_loss,
      x = embedding(tokens.ids, {tokens.batch, tokens.seq}, tape.parameter(*embedding_));
  if (embedding_norm_) x = (*embedding_norm_)(x);
  Pass pass{tokens.document_offsets, observer, cache};
  const auto keep_last = [&] {
    if (!cache || x.shape()[1] == 1) return;
    pass.document_offsets = last_of(pass.document_offsets, tokens.seq);
    x = slice(x, 1, tokens.seq - 1, 1);
  };
  for (Index layer = 0; layer < config_.num_layers; ++layer) {
    if (shared_kv_ && layer == config_.yoco_self_layers) {
      pass.shared = (*shared_kv_)(x, cache ? &cache->of_layer(layer) : nullptr);
      keep_last();
    }
    const auto run = [&block = blocks_[layer], pass](const std::vector<Var>& in) {
      Pass with_keys = pass;
      with_keys.shared = {in[1], in[2]};
      Var loss;
      std::vector<Var> results{block(in[0], with_keys, &loss)};
      if (loss.defined()) results.push_back(loss);
      return results;
    };
    const std::vector<Var> inputs{x, pass.shared.k, pass.shared.v};
    const std::vector<Var> results =
        activations == ActivationCheckpointing::blocks ? checkpointed(inputs, run) : run(inputs);
    x = results[0];
    if (results.size() == 1) continue;
    router_loss = router_loss.defined() ? add(router_loss, results[1]) : results[1];
  }
  keep_last();
  return {(*norm_)(x), router_loss};
}

Var LanguageModel::head(Tape& tape) { return tape.parameter(*head_); }

Var LanguageModel::logits_of(const Var& x, const Var& weight) {
  const Var logits = linear(x, weight);
  return config_.final_logit_softcap > 0 ? softcap(logits, config_.final_logit_softcap) : logits;
}

Var LanguageModel::loss(Tape& tape, const TokenBatch& tokens, std::span<const std::int32_t> targets,
                        ActivationCheckpointing activations, LossTerms* terms, Observer* observer) {
  const Hidden found = hidden(tape, tokens, activations, observer);
  return loss_of(found, head(tape), targets, terms);
}

Var LanguageModel::loss_of(const Hidden& hidden, const Var& weight,
                           std::span<const std::int32_t> targets, LossTerms* terms) {
  Var loss = cross_entropy(hidden.x, weight, targets, loss_options(), terms);
  if (!hidden.router_loss.defined()) return loss;
  if (terms) terms->router_loss = static_cast<double>(hidden.router_loss.value().item());
  return add(loss, hidden.router_loss);
}

Var LanguageModel::logits(Tape& tape, const TokenBatch& tokens) {
  const Var x = hidden(tape, tokens, ActivationCheckpointing::none).x;
  return logits_of(x, head(tape));
}

ModelKvCache LanguageModel::make_cache(Index batch, Index capacity) const {
  const AttentionFields fields = fields_of(config_.attention);
  if (!fields.context.empty()) {
    throw ConfigError(
        fmt::format("{} defines its own context rule, which reads whole sequences and has no cache",
                    fields.context));
  }
  const HeadSizes sizes = head_sizes(config_);
  ModelKvCache cache;
  for (Index i = 0; i < kv_caches_of(config_); ++i)
    cache.layers.emplace_back(sizes.mapping, batch, capacity, sizes.head_dim, sizes.value_dim);
  return cache;
}

Var LanguageModel::next_logits(Tape& tape, const TokenBatch& tokens, ModelKvCache& cache) {
  const Var x = hidden(tape, tokens, ActivationCheckpointing::none, nullptr, &cache).x;
  return logits_of(reshape(x, {tokens.batch, config_.d_model}), head(tape));
}

void LanguageModel::observe(Tape& tape, const TokenBatch& tokens, Observer& observer) {
  hidden(tape, tokens, ActivationCheckpointing::none, &observer);
}

LanguageModel::LossAndLogits LanguageModel::loss_and_logits(Tape& tape, const TokenBatch& tokens,
                                                            std::span<const std::int32_t> targets) {
  const Hidden found = hidden(tape, tokens, ActivationCheckpointing::none);
  const Var weight = head(tape);
  LossAndLogits result;
  result.loss = loss_of(found, weight, targets, &result.terms);
  result.logits = logits_of(found.x, weight);
  return result;
}

ModelConfig matched(const ModelConfig& config) {
  constexpr Index kStep = 4;
  if (!config.match_params) return config;
  ModelConfig plain = config, baseline = config;
  plain.match_params = baseline.match_params = false;
  baseline.attention = plain_kind(AttentionKind(), config.attention);
  const auto surplus = static_cast<Index>(parameter_count(plain) - parameter_count(baseline));
  const MoeConfig& moe = config.moe;
  const Index mlps = moe.num_experts > 0 ? moe.num_experts + moe.num_shared_experts : 1;
  const double per_unit = 3.0 * static_cast<double>(config.d_model) *
                          static_cast<double>(config.num_layers) * static_cast<double>(mlps);
  Index& width = mlp_width(plain);
  const double exact = static_cast<double>(width) - static_cast<double>(surplus) / per_unit;
  const Index shrunk = kStep * static_cast<Index>(std::llround(exact / kStep));
  const bool nearer =
      std::abs(static_cast<double>(shrunk) - exact) < std::abs(static_cast<double>(width) - exact);
  if (nearer && shrunk < kStep) {
    const char* key = moe.num_experts > 0 ? "moe.moe_intermediate_size" : "d_ff";
    throw ConfigError(fmt::format(
        "model.match_params: {0} has {1} parameters more than softmax, more than a {2} of {3} "
        "can give up; raise model.{2} or set model.match_params: false",
        config.attention.kind.name(), surplus, key, width));
  }
  if (nearer && shrunk < width) width = shrunk;
  return plain;
}

namespace {

/// Returns f(n) of an affine f, computed from f(1) and f(2).
template <class F>
double affine(Index n, F&& f) {
  if (n <= 2) return f(n);
  const double one = f(1);
  return one + static_cast<double>(n - 1) * (f(2) - one);
}

}  // namespace

double parameter_count(const ModelConfig& config) {
  ModelConfig small = matched(require_valid(config));
  small.match_params = false;
  small.moe.num_experts_per_tok = 1;  // changes no count, and is valid with one expert
  const Index own = config.yoco_self_layers, others = config.num_layers - own;
  return affine(config.moe.num_experts, [&](Index experts) {
    return affine(own, [&](Index self_layers) {
      return affine(others, [&](Index other_layers) {
        small.moe.num_experts = experts;
        small.yoco_self_layers = self_layers;
        small.num_layers = self_layers + other_layers;
        const LanguageModel model(small);
        double count = 0;
        for (const Parameter& p : model.parameters()) count += static_cast<double>(p.shape.size());
        return count;
      });
    });
  });
}

}  // namespace difftape
