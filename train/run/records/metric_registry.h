#pragma once
// The registry of what a run logs: every metric of metrics.jsonl once, with its unit, one sentence,
// what it has a value of, when it is logged and how a report draws it. The charts and heat maps of
// the report are loops over it; README.md and what runs write are compared with it by tests. What
// computes a metric names it by metric(), which does not compile for a name that is not here.

#include <string>
#include <string_view>

namespace difftape::run {

/// What a metric has a value of, and so what follows its name in metrics.jsonl.
enum class Per {
  run,        ///< nothing follows
  layer,      ///< "/<layer>", from 0
  head,       ///< "/<layer>": a list, one number a head
  expert,     ///< "/<layer>": a list, one number an expert
  rank,       ///< "/<layer>": a list, the numbers of TopValues
  parameter,  ///< "/<name of the parameter>", beside Per::run of the same name if there is one
  grid,       ///< "/<row>/<column>" of the accuracy grid of a task
  domain,     ///< "/<domain>" of held-out text, beside Per::run of the same name
  group       ///< nothing follows: a list, one number a group of held-out documents
};

/// Whether something follows the name, and whether the value is a list.
constexpr bool has_parts(Per per) { return per != Per::run && per != Per::group; }
constexpr bool is_list(Per per) {
  return per == Per::head || per == Per::expert || per == Per::rank || per == Per::group;
}

/// Which steps log it. The last step of a run that finishes logs all.
enum class When {
  step,         ///< every one
  validation,   ///< where train.eval_interval divides the step
  parameters,   ///< where log.param_grad_norms_interval divides the step
  diagnostics,  ///< the first, unless log.diagnostics_interval is 0; where that divides the step;
                ///< and the step that diverged
  last          ///< no other
};

/// Which runs log it.
enum class Of {
  any,
  task,           ///< generated data
  text,           ///< text and tokens
  domains,        ///< several domains of data.val_path
  exact_match,    ///< tasks whose answers are longer than one token
  retrieval,      ///< data that knows where its answers are: needles
  two_maps,       ///< differential attention
  token_lambda,   ///< whose lambda is one a token and head
  shared_values,  ///< whose output heads share value heads
  z_loss,         ///< model.z_loss_weight above 0
  moe,            ///< model.moe.num_experts above 0
  router_loss,    ///< a router_aux_loss_coef or router_z_loss_coef above 0
  qk_clip,        ///< model.attention.qk_clip_threshold above 0
  on_spike        ///< optim.on_spike is not none
};

/// The best value that the data allow, drawn as a line.
enum class Bound { none, loss, accuracy };

/// How a report draws a metric: a curve over the steps if it has one value a run, a heat map of
/// layers and steps if it has one a layer.
struct Picture {
  const char* title = nullptr;  ///< null: it is not drawn
  const char* caption = "";     ///< after the title; of a curve also the label of its axis
  bool log_scale = false;
  bool every_step = false;  ///< noisy: it can be smoothed, and its spikes are marked
  Bound bound = Bound::none;
};

struct Metric {
  const char* name;
  const char* unit;
  const char* what;  ///< one sentence
  Per per = Per::run;
  When when = When::step;
  Of of = Of::any;
  Picture picture = {};
};

/// Of each layer, and of each head of one, as diagnostics measure them.
constexpr Metric layer_metric(const char* name, const char* unit, const char* what, Of of = Of::any,
                              Picture picture = {}) {
  return {name, unit, what, Per::layer, When::diagnostics, of, picture};
}
constexpr Metric head_metric(const char* name, const char* unit, const char* what,
                             Of of = Of::any) {
  return {name, unit, what, Per::head, When::diagnostics, of};
}

/// In the order in which a report draws them. "The map" of a head is its softmax A, or
/// |A1 - lambda A2| with rows that add up to 1; token 1 is the first of a sequence.
inline constexpr Metric kMetrics[] = {
    {"train/loss",
     "nats per token",
     "mean over the scored tokens of the step, before its update",
     Per::run,
     When::step,
     Of::any,
     {"Training loss", "nats per token", false, true, Bound::loss}},
    {"train/z_loss", "nats per token",
     "model.z_loss_weight times the mean of log(sum exp(logits))^2 in the same step, which "
     "train/loss and val/loss leave out",
     Per::run, When::step, Of::z_loss},
    {"train/router_loss", "nats per token",
     "weighted load-balancing and z-losses of the routers of all layers in the same step, which "
     "train/loss and val/loss leave out",
     Per::run, When::step, Of::router_loss},
    {"val/loss",
     "nats per token",
     "mean over the scored tokens of train.eval_batches validation batches; after the last step of "
     "train.final_eval_batches",
     Per::run,
     When::validation,
     Of::any,
     {"Validation loss", "nats per token", false, false, Bound::loss}},
    {"val/loss", "nats per token",
     "the same of each domain: a file of data.val_path, or a directory that it names; logged where "
     "there are 2 to 64",
     Per::domain, When::validation, Of::domains},
    {"val/group_loss", "nats per token",
     "the same of 64 groups of neighboring held-out documents, the g-th 64th part of each domain; "
     "NaN where no token was scored",
     Per::group, When::last, Of::text},
    {"val/group_tokens", "tokens", "scored in each of these groups", Per::group, When::last,
     Of::text},
    {"optim/grad_norm",
     "L2",
     "norm of the gradient of all parameters, before clipping",
     Per::run,
     When::step,
     Of::any,
     {"Gradient norm", "global L2 before clipping", true, true}},
    {"val/accuracy",
     "fraction",
     "scored targets whose logit is above all others",
     Per::run,
     When::validation,
     Of::task,
     {"Validation accuracy", "share of scored targets", false, false, Bound::accuracy}},
    {"task/exact_match",
     "fraction",
     "answers of which every token is right",
     Per::run,
     When::validation,
     Of::exact_match,
     {"Exact match", "share of answers that are right in full"}},
    {"task/accuracy", "fraction",
     "answers that are right, by difficulty; rows and columns are those of the task", Per::grid,
     When::validation, Of::task},
    {"optim/lr", "1", "learning rate of the step"},
    {"optim/grad_norm", "L2", "norm of the gradient of one parameter, before clipping",
     Per::parameter, When::parameters},
    {"optim/update_ratio", "1",
     "norm of the step's change over that of the weights before it; infinite for weights that were "
     "0",
     Per::parameter, When::diagnostics},
    {"optim/qk_clip_logit_max", "1",
     "the largest q k / sqrt(d) of visible pairs in the step's forward passes, all layers and "
     "heads",
     Per::run, When::step, Of::qk_clip},
    {"optim/qk_clip_heads", "heads", "query heads whose weights were scaled down after the step",
     Per::run, When::step, Of::qk_clip},
    {"optim/grad_norm_growth", "1",
     "slope of log norm against log step over the second half of the steps so far", Per::run,
     When::diagnostics},
    {"optim/grad_norm_late_variance", "L2 squared",
     "variance of the norm over the last quarter of the steps so far", Per::run, When::diagnostics},
    {"optim/spike_scale", "1",
     "factor of optim.on_spike on the gradient: 1 without a spike, less clips it, 0 skips the step",
     Per::run, When::step, Of::on_spike},
    {"spike_score/loss", "%", "steps so far whose loss was a spike by log.spike_rule"},
    {"spike_score/grad_norm", "%",
     "steps so far whose gradient norm was a spike by log.spike_rule"},
    {"throughput/tokens_per_sec", "tokens per second", "of batch, forward, backward and update"},
    {"throughput/mfu", "fraction",
     "of the multiply-add peak, which is measured for 10 ms when the program starts; operations "
     "are counted by layers/cost"},
    layer_metric("attn/context_rms", "1",
                 "RMS of what enters W_O, or V1's norm: mean over tokens and heads", Of::any,
                 {"Context RMS", "before the output projection, mean over tokens and heads"}),
    layer_metric("attn/context_rms_min", "1", "the smallest over tokens and heads"),
    layer_metric("attn/context_rms_max", "1", "the largest over tokens and heads"),
    layer_metric("attn/context_rms_outside", "fraction",
                 "tokens and heads outside [1/sqrt(n), 1) (softmax of n keys), (0, 1) (a sink, "
                 "softmax1, a gate), (0, sqrt 2) (two maps)"),
    layer_metric("attn/lambda", "1",
                 "weight of the second map: mean over tokens and heads; V1 has one a layer",
                 Of::two_maps, {"λ", "weight of the second map, mean over tokens and heads"}),
    layer_metric("attn/lambda_std", "1", "standard deviation over tokens and heads", Of::two_maps),
    layer_metric("attn/lambda_min", "1", "the smallest over tokens and heads", Of::two_maps),
    layer_metric("attn/lambda_max", "1", "the largest over tokens and heads", Of::two_maps),
    layer_metric("attn/lambda_rms_correlation", "1",
                 "Pearson's correlation of lambda and context RMS over the tokens of a head: mean "
                 "over heads",
                 Of::token_lambda),
    layer_metric("attn/sink_rate", "fraction",
                 "heads whose map gives token 1 more than 0.3 (Gu et al. 2024)", Of::any,
                 {"Sink rate", "share of heads that give the first token more than 0.3"}),
    layer_metric("attn/map1/sink_rate", "fraction", "heads whose A1 gives token 1 more than 0.3",
                 Of::two_maps),
    layer_metric("attn/map2/sink_rate", "fraction", "heads whose A2 gives token 1 more than 0.3",
                 Of::two_maps),
    layer_metric("attn/first_token_mass", "fraction",
                 "what the map gives token 1: mean over heads and the first 64 tokens"),
    layer_metric("attn/entropy", "nats",
                 "entropy of a row of the map, without what a sink took: mean over tokens and "
                 "heads"),
    layer_metric("attn/sparsity", "fraction",
                 "visible pairs of query and key whose weight in the map is below 0.001"),
    layer_metric("attn/output_cosine", "1",
                 "the smallest cosine between the parts of W_O of two heads that read the same "
                 "values; two maps are -1",
                 Of::shared_values),
    layer_metric("attn/rounding_error", "1",
                 "relative error of the context if the operands of attention's products are "
                 "rounded to bfloat16"),
    layer_metric("attn/logit_max", "1",
                 "the largest |q k| / sqrt(d) of visible pairs, both maps pooled", Of::any,
                 {"Largest attention logit", "absolute value, before softmax"}),
    layer_metric("attn/logit_median", "1", "their median"),
    {"attn/logit_topk", "1", "[top 1, 2, 3, 10, 100, median] of them", Per::rank,
     When::diagnostics},
    layer_metric("attn/answer", "fraction",
                 "what query tokens give the answer, by the map: mean over queries and heads (Ye "
                 "et al. 2024: at 3B .03-.09 with softmax, .27-.40 with V1)",
                 Of::retrieval),
    layer_metric("attn/noise", "fraction", "what query tokens give the other tokens of the context",
                 Of::retrieval),
    head_metric("attn/head/context_rms", "1", "attn/context_rms of each head"),
    head_metric("attn/head/first_token_mass", "fraction", "attn/first_token_mass of each head"),
    head_metric("attn/head/entropy", "nats", "attn/entropy of each head"),
    head_metric("attn/head/logit_max", "1", "attn/logit_max of each head"),
    head_metric("attn/head/lambda", "1", "attn/lambda of each head", Of::two_maps),
    head_metric("attn/map1/first_token_mass", "fraction", "what A1 of each head gives token 1",
                Of::two_maps),
    head_metric("attn/map2/first_token_mass", "fraction", "what A2 of each head gives token 1",
                Of::two_maps),
    head_metric("attn/map1/logit_max", "1", "the largest |logit| of A1 of each head", Of::two_maps),
    head_metric("attn/map2/logit_max", "1", "the largest |logit| of A2 of each head", Of::two_maps),
    {"moe/load",
     "fraction",
     "choices of each expert over all choices of the layer",
     Per::expert,
     When::diagnostics,
     Of::moe,
     {"Load of experts", "fraction of the choices of a layer, one row per expert"}},
    layer_metric("moe/load_max", "fraction", "the largest moe/load of the layer; 1 / E if balanced",
                 Of::moe, {"Largest load", "fraction of the choices of a layer"}),
    layer_metric("moe/router_entropy", "nats",
                 "entropy of the scores of a token, for sigmoid after division by their sum: mean "
                 "over tokens",
                 Of::moe, {"Router entropy", "of the scores of a token, mean over tokens"}),
    layer_metric("act/max", "1", "the largest |hidden state| after the layer's residual sums"),
    layer_metric("act/max_over_median", "1", "act/max over the median of the |hidden states|",
                 Of::any, {"Outliers", "largest hidden state over the median, absolute values"}),
    layer_metric("act/kurtosis", "1",
                 "mean(s^4) / mean(s^2)^2 of the features' root mean squares s; 1: no outliers (He "
                 "et al. 2024)",
                 Of::any, {"Kurtosis", "of hidden states; 1 is none of them stands out"}),
    {"act/topk", "1", "[top 1, 2, 3, 10, 100, median] of the |hidden states|", Per::rank,
     When::diagnostics},
    layer_metric("act/rms", "1",
                 "root mean square of the hidden states: how the residual stream grows by layer")};

/// The name of a metric of the registry. Any other string does not compile.
consteval const char* metric(std::string_view name) {
  for (const Metric& each : kMetrics)
    if (each.name == name) return each.name;
  throw "no metric of the registry has this name";
}

/// Its name for a layer, a parameter or a place in a grid: "attn/entropy/3".
inline std::string metric_of(std::string_view name, std::string_view part) {
  return std::string(name).append("/").append(part);
}

}  // namespace difftape::run
