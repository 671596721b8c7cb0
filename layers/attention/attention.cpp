#include "layers/attention/attention.h"

#include "core/attention/decode.h"
#include "core/attention/selection.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "layers/linear.h"

namespace difftape {

namespace {

Linear output_projection(const AttentionArgs& args, Index in) {
  return Linear(args.module / "o_proj", in, args.config.d_model,
                init_rule(args.config).to_residual(in));
}

}  // namespace

Attention::Attention(const AttentionArgs& args, std::shared_ptr<const RopeTable> rope)
    : fields_(fields_of(args.config.attention)),
      name_(args.module.name),
      layer_(args.module.part.layer),
      sizes_(head_sizes(args.config)),
      q_(args, "q_proj", mapping().query_heads, sizes_.head_dim, rope),
      kv_(shares_key_values(args.config, layer_)
              ? std::nullopt
              : std::optional<KeyValueProjection>(std::in_place, args, sizes_, rope)),
      o_proj_(output_projection(args, mapping().heads_out() * value_dim())) {
  fields_.sliding_window = window_of(args.config, layer_);
  if (fields_.qk_norm) {
    q_.add_norm(args, "q_norm");
    if (kv_) kv_->k.add_norm(args, "k_norm");
  }
  if (fields_.subln) subln_.emplace(args.module / "subln", value_dim(), kSublnEps);
  if (fields_.maps() == 2) {
    lambda_ = make_lambda(fields_, args.module,
                          {sizes_.head_dim, args.config.d_model, mapping().heads_out(),
                           init_rule(args.config).projection(args.config.d_model)});
    head_factor_ = fields_.subln ? lambda_->head_factor() : 1;
  }
  if (!fields_.context.empty()) context_rule_ = args.config.attention.kind.entry().context(args);
  if (fields_.softmax_denominator == SoftmaxDenominator::sink) {
    sinks_ = &args.module.declare("sinks", {mapping().query_heads}, Role::other, Init::constant(0));
  }
  if (fields_.gate != Gate::none) {
    const Index width = fields_.gate == Gate::elementwise ? value_dim() : 1;
    gate_.emplace(args, "gate_proj", mapping().heads_out(), width, nullptr);
  }
}

/// Returns the keys and values of x, or of a cross-decoder if no cache has them.
KeyValues Attention::key_values(const Var& x, KvCache* cache, const KeyValues& shared) const {
  if (kv_) return (*kv_)(x, cache);
  if (cache) return {};
  // The gradient of this layer is complete before other layers add theirs, so that
  // recomputation changes no bit.
  return {reshape(shared.k, shared.k.shape()), reshape(shared.v, shared.v.shape())};
}

AttentionOperands Attention::operands_of(const Var& x, KvCache* cache, const Pass& pass) const {
  const Index before = cache ? cache->length() - (kv_ ? 0 : x.shape()[1]) : 0;
  const Var q = q_(x, before);
  const KeyValues kv = key_values(x, cache, pass.shared);
  return {.mapping = mapping(),
          .q = q,
          .k = kv.k,
          .v = kv.v,
          .lambda = lambda_ ? (*lambda_)(x) : Var(),
          .sinks = sink_logits(x.tape()),
          .scale = attention_scale(sizes_.head_dim),
          .visible = {fields_.sliding_window, pass.document_offsets},
          .blocks = {fields_.block_size, fields_.num_selected_blocks,
                     fields_.block_selection == BlockSelection::separately},
          .logit_softcap = fields_.logit_softcap};
}

Var Attention::sink_logits(Tape& tape) const {
  if (sinks_) return tape.parameter(*sinks_);
  if (fields_.softmax_denominator == SoftmaxDenominator::softmax) return {};
  return tape.constant(Tensor::zeros({mapping().query_heads}));
}

/// Applies norm and gate to heads (B, T, output heads, value_dim).
Var Attention::finished(Var context, const Var& x) const {
  if (subln_) context = (*subln_)(context);
  if (head_factor_ != 1) context = affine(context, head_factor_, 0);
  if (gate_) context = mul(context, sigmoid((*gate_)(x)));
  return context;
}

Var Attention::context_of(const AttentionOperands& in, KvCache* cache, Tensor* stats) const {
  const Shape& s = in.q.shape();
  if (cache && (!in.k.defined() || cache->length() > s[1])) {
    if (in.q.tape().recording()) throw std::logic_error("attention to a cache has no gradient");
    return in.q.tape().constant(attention_cached(values_of(in), *cache));
  }
  if (cache) keep_selection(values_of(in), *cache);
  if (!context_rule_) return attention(in, stats);
  Var context = context_rule_(in);
  const Shape expected{s[0], s[1], mapping().heads_out(), value_dim()};
  require_shape(context.shape() == expected, fields_.context,
                "its rule made a context {}; need (B, T, output heads, E) = {}",
                context.shape().str(), expected.str());
  return context;
}

Var Attention::operator()(const Var& x, const Pass& pass, const Var& residual) const {
  const NameScope scope(name_);
  KvCache* cache = pass.cache ? &pass.cache->of_layer(layer_) : nullptr;
  Observer* observer = cache || context_rule_ ? nullptr : pass.observer;
  const AttentionOperands in = operands_of(x, cache, pass);
  Tensor stats;
  const Var context = context_of(in, cache, observer ? &stats : nullptr);
  const Var heads = finished(context, x);
  if (observer) {
    AttentionView view{values_of(in)};
    view.context = subln_ ? context.value() : heads.value();
    view.gated = gate_ && !subln_;
    view.softmax_stats = stats;
    view.output_weight = o_proj_.weights();
    observer->attention(layer_, view);
  }
  const Shape& s = heads.shape();
  return o_proj_(reshape(heads, {s[0], s[1], s[2] * s[3]}), residual);
}

}  // namespace difftape
