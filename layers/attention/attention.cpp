#include "layers/attention/attention.h"

#include "core/attention/decode.h"
#include "core/attention/selection.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "layers/linear.h"

namespace difftape {

namespace {

HeadMapping mapping_of(const AttentionFields& fields, const ModelConfig& config) {
  const Index heads = config.num_heads, kv_heads = kv_heads_of(config);
  switch (fields.mapping) {
    case MappingKind::paired:
      return HeadMapping::paired(heads, kv_heads);
    case MappingKind::doubled:
      return HeadMapping::doubled(heads, kv_heads, fields.pairing == Pairing::split_half);
    case MappingKind::standard:
      break;
  }
  return HeadMapping::standard(fields.query_multiple * heads, kv_heads);
}

Linear projection(const AttentionArgs& args, const char* suffix, Index in, Index out) {
  return Linear(args.module / suffix, in, out, init_rule(args.config).projection(in));
}

Linear output_projection(const AttentionArgs& args, Index in) {
  return Linear(args.module / "o_proj", in, args.config.d_model,
                init_rule(args.config).to_residual(in));
}

std::optional<RmsNorm> norm_if(bool wanted, const AttentionArgs& args, const char* suffix,
                               Index width, double eps) {
  if (!wanted) return std::nullopt;
  return RmsNorm(args.module / suffix, width, eps);
}

/// (B, T, heads * width) -> (B, T, heads, width)
Var split_heads(const Var& x, Index heads, Index width) {
  return reshape(x, {x.shape()[0], x.shape()[1], heads, width});
}

}  // namespace

Attention::Attention(const AttentionArgs& args, std::shared_ptr<const RopeTable> rope)
    : fields_(fields_of(args.config.attention)),
      name_(args.module.name),
      layer_(args.module.part.layer),
      head_dim_(head_dim_of(args.config)),
      mapping_(mapping_of(fields_, args.config)),
      value_dim_(fields_.mapping == MappingKind::paired ? 2 * head_dim_ : head_dim_),
      q_proj_(projection(args, "q_proj", args.config.d_model, mapping_.query_heads * head_dim_)),
      k_proj_(projection(args, "k_proj", args.config.d_model, mapping_.key_heads * head_dim_)),
      v_proj_(projection(args, "v_proj", args.config.d_model, mapping_.value_heads * value_dim_)),
      o_proj_(output_projection(args, mapping_.heads_out() * value_dim_)),
      q_norm_(norm_if(fields_.qk_norm, args, "q_norm", head_dim_, args.config.norm_eps)),
      k_norm_(norm_if(fields_.qk_norm, args, "k_norm", head_dim_, args.config.norm_eps)),
      subln_(norm_if(fields_.subln, args, "subln", value_dim_, kSublnEps)),
      rope_(std::move(rope)) {
  if (fields_.maps() == 2) {
    lambda_ = make_lambda(fields_, args.module,
                          {head_dim_, args.config.d_model, mapping_.heads_out(),
                           init_rule(args.config).projection(args.config.d_model)});
    head_factor_ = fields_.subln ? lambda_->head_factor() : 1;
  }
  if (!fields_.context.empty()) context_rule_ = args.config.attention.kind.entry().context(args);
  if (fields_.softmax_denominator == SoftmaxDenominator::sink) {
    sinks_ = &args.module.declare("sinks", {mapping_.query_heads}, Role::other, Init::constant(0));
  }
  if (fields_.gate != Gate::none) {
    const Index width = fields_.gate == Gate::elementwise ? value_dim_ : 1;
    gate_.emplace(projection(args, "gate_proj", args.config.d_model, mapping_.heads_out() * width));
  }
}

Var Attention::query_or_key(const Linear& projection, const std::optional<RmsNorm>& norm,
                            const Var& x, Index heads, Index position) const {
  Var y = split_heads(projection(x), heads, head_dim_);
  if (norm) y = (*norm)(y);
  return rope_ ? rope(std::move(y), rope_, position) : y;
}

AttentionOperands Attention::operands_of(const Var& x, Index position,
                                         const Visibility& visible) const {
  return {.mapping = mapping_,
          .q = query_or_key(q_proj_, q_norm_, x, mapping_.query_heads, position),
          .k = query_or_key(k_proj_, k_norm_, x, mapping_.key_heads, position),
          .v = split_heads(v_proj_(x), mapping_.value_heads, value_dim_),
          .lambda = lambda_ ? (*lambda_)(x) : Var(),
          .sinks = sink_logits(x.tape()),
          .scale = attention_scale(head_dim_),
          .visible = visible,
          .blocks = {fields_.block_size, fields_.num_selected_blocks,
                     fields_.block_selection == BlockSelection::separately},
          .logit_softcap = fields_.logit_softcap};
}

Var Attention::sink_logits(Tape& tape) const {
  if (sinks_) return tape.parameter(*sinks_);
  if (fields_.softmax_denominator == SoftmaxDenominator::softmax) return {};
  return tape.constant(Tensor::zeros({mapping_.query_heads}));
}

/// Applies norm and gate to heads (B, T, output heads, value_dim).
Var Attention::finished(Var context, const Var& x) const {
  if (subln_) context = (*subln_)(context);
  if (head_factor_ != 1) context = affine(context, head_factor_, 0);
  if (gate_) {
    const Index width = fields_.gate == Gate::elementwise ? value_dim_ : 1;
    context = mul(context, sigmoid(split_heads((*gate_)(x), mapping_.heads_out(), width)));
  }
  return context;
}

Var Attention::context_of(const AttentionOperands& in, Tensor* stats) const {
  if (!context_rule_) return attention(in, stats);
  const Var context = context_rule_(in);
  const Shape& s = in.q.shape();
  const Shape expected{s[0], s[1], mapping_.heads_out(), value_dim_};
  require_shape(context.shape() == expected, fields_.context,
                "its rule made a context {}; need (B, T, output heads, E) = {}",
                context.shape().str(), expected.str());
  return context;
}

Var Attention::context_after(KvCache& cache, const AttentionOperands& in) const {
  const Index before = cache.length();
  cache.append(in.k.value(), in.v.value());
  if (before == 0) {
    keep_selection(values_of(in), cache);
    return context_of(in, nullptr);
  }
  if (in.q.tape().recording()) throw std::logic_error("attention to a cache has no gradient");
  return in.q.tape().constant(attention_cached(values_of(in), cache));
}

Var Attention::operator()(const Var& x, const Pass& pass, const Var& residual) const {
  const NameScope scope(name_);
  KvCache* cache = pass.cache ? &pass.cache->layers[layer_] : nullptr;
  Observer* observer = cache || context_rule_ ? nullptr : pass.observer;
  const AttentionOperands in =
      operands_of(x, cache ? cache->length() : 0, {fields_.sliding_window, pass.document_offsets});
  Tensor stats;
  const Var context =
      cache ? context_after(*cache, in) : context_of(in, observer ? &stats : nullptr);
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
