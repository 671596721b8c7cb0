#include "layers/moe.h"

#include "core/name_scope.h"

namespace difftape {

Moe::Moe(const Module& module, const ModelConfig& config)
    : name_(module.name),
      layer_(module.part.layer),
      rule_{config.moe.scoring_func, config.moe.num_experts_per_tok, config.moe.norm_topk_prob},
      losses_{config.moe.router_aux_loss_coef, config.moe.router_z_loss_coef},
      gate_((module / "gate")
                .declare("weight", {config.moe.num_experts, config.d_model}, Role::projection,
                         Init::normal(init_rule(config).projection(config.d_model)))) {
  const MoeConfig& moe = config.moe;
  if (moe.router_bias_update_rate > 0) {
    bias_ =
        &(module / "gate")
             .declare("e_score_correction_bias", {moe.num_experts}, Role::state, Init::constant(0));
  }
  for (Index e = 0; e < moe.num_experts; ++e) {
    experts_.emplace_back(module / kExperts / std::to_string(e), config, moe.moe_intermediate_size);
  }
  if (moe.num_shared_experts > 0) {
    shared_.emplace(module / "shared_experts", config,
                    moe.num_shared_experts * moe.moe_intermediate_size);
  }
}

Routed Moe::routed(const Var& x, const Pass& pass, Var* router_loss) const {
  const NameScope scope(gate_.name);
  Tape& tape = x.tape();
  // matmul never rounds its operands, which linear does in bf16.
  const Var tokens = reshape(x, {x.shape().rows(), x.shape().last()});
  const Var logits = matmul(tokens, transpose(tape.parameter(gate_), 0, 1));  // (N, E)
  const Tensor bias = bias_ ? tape.parameter(*bias_).value() : Tensor();
  Routed routed = route(logits, rule_, bias.values());
  if (pass.observer && !pass.cache) {
    pass.observer->routing(layer_, {rule_, logits.value(), *routed.routing});
  }
  if (router_loss && (losses_.load_balancing > 0 || losses_.z_loss > 0)) {
    *router_loss = difftape::router_loss(logits, rule_.score, *routed.routing, losses_);
  }
  return routed;
}

Var Moe::operator()(const Var& x, const Var& residual, const Pass& pass, Var* router_loss) const {
  const Routed routed = this->routed(x, pass, router_loss);
  const Var sum = shared_ ? (*shared_)(x, residual) : residual;
  Experts weights;
  for (const Mlp& expert : experts_) expert.add_to(weights, x.tape());
  const NameScope scope(name_);
  return experts(x, routed, weights, sum);
}

}  // namespace difftape
