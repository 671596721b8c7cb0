#pragma once
// The registry of metrics: one entry per metric of metrics.jsonl with its unit, a one-sentence
// meaning, its index (layer, head, ...), the steps that log it and its drawing in reports. The
// report draws its charts and heat maps from the registry, and tests compare docs/metrics.md and
// the logs of runs with it. Code names a metric by metric(), which rejects unknown names at compile
// time.

#include <string>
#include <string_view>

namespace difftape::run {

/// Index of a metric, such as a layer, which has one value each. It follows the name in
/// metrics.jsonl.
enum class Per {
  run,        ///< nothing follows
  layer,      ///< "/<layer>", from 0
  expert,     ///< "/<layer>/<expert>", from 0
  parameter,  ///< "/<parameter name>"; Per::run may have a metric of the same name
  grid,       ///< "/<row>/<column>" of the accuracy grid of a task
  domain      ///< "/<domain>" of held-out text; Per::run has a metric of the same name
};

/// Returns true if a part follows the name.
constexpr bool has_parts(Per per) { return per != Per::run; }

/// The steps that log a metric. The last step of a run that finishes logs all metrics.
enum class When {
  step,        ///< every step
  validation,  ///< multiples of train.eval_interval
  parameters,  ///< multiples of log.param_grad_norms_interval
  diagnostics  ///< the first step and multiples of log.diagnostics_interval, none if that is 0;
               ///< and the step that diverged
};

/// The runs that log a metric.
enum class Of {
  any,
  task,           ///< generated data
  text,           ///< text files and token files
  domains,        ///< several domains of data.val_path
  exact_match,    ///< tasks whose answers are longer than one token
  retrieval,      ///< data with known positions of the answers: needles
  two_maps,       ///< differential attention
  token_lambda,   ///< a lambda per token and head
  shared_values,  ///< output heads that share value heads
  z_loss,         ///< model.z_loss_weight above 0
  moe,            ///< model.moe.num_experts above 0
  router_loss,    ///< a router_aux_loss_coef or router_z_loss_coef above 0
  qk_clip         ///< model.attention.qk_clip_threshold above 0
};

/// The best value that the data allow, which a report draws as a line.
enum class Bound { none, loss, accuracy };

/// The drawing of a metric in a report: a curve over the steps if the metric has one value per run,
/// a heat map of layers and steps if it has one value per layer.
struct Picture {
  const char* title = nullptr;  ///< null: the metric is not drawn
  const char* caption = "";     ///< follows the title; also labels the axis of a curve
  bool log_scale = false;
  bool every_step = false;  ///< noisy: can be smoothed, and its spikes are marked
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

/// Returns a metric that diagnostics measure, with one value per layer.
constexpr Metric layer_metric(const char* name, const char* unit, const char* what, Of of = Of::any,
                              Picture picture = {}) {
  return {name, unit, what, Per::layer, When::diagnostics, of, picture};
}

/// All metrics, in the order in which a report draws them. "The map" of a head is its softmax A, or
/// |A1 - lambda A2| with rows normalized to sum to 1; token 1 is the first token of a sequence.
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
     "mean over the scored tokens of train.eval_batches validation batches; the last step uses "
     "train.final_eval_batches",
     Per::run,
     When::validation,
     Of::any,
     {"Validation loss", "nats per token", false, false, Bound::loss}},
    {"val/loss", "nats per token",
     "validation loss of one domain, a file or folder named by data.val_path; logged if there are "
     "2 to 64 domains",
     Per::domain, When::validation, Of::domains},
    {"val/context_gain",
     "nats per token",
     "mean validation loss in the second quarter of a sequence minus that in the second half; the "
     "positions hold different text, so compare runs on the same validation data",
     Per::run,
     When::validation,
     Of::text,
     {"Context gain", "nats per token, loss of the second quarter minus the second half"}},
    {"optim/grad_norm",
     "L2",
     "norm of the gradient of all parameters, before clipping",
     Per::run,
     When::step,
     Of::any,
     {"Gradient norm", "global L2 before clipping", true, true}},
    {"val/accuracy",
     "fraction",
     "fraction of scored targets whose logit is the largest; ties count as misses",
     Per::run,
     When::validation,
     Of::task,
     {"Validation accuracy", "fraction of scored targets", false, false, Bound::accuracy}},
    {"task/exact_match",
     "fraction",
     "fraction of answers whose tokens are all correct",
     Per::run,
     When::validation,
     Of::exact_match,
     {"Exact match", "fraction of answers whose tokens are all correct"}},
    {"task/accuracy", "fraction",
     "fraction of correct answers by difficulty; the task defines rows and columns", Per::grid,
     When::validation, Of::task},
    {"optim/lr", "1", "learning rate of the step"},
    {"optim/grad_norm", "L2", "norm of the gradient of one parameter, before clipping",
     Per::parameter, When::parameters},
    {"optim/update_ratio", "1",
     "norm of the update divided by the norm of the weights before it; infinite if the weights "
     "were 0",
     Per::parameter, When::diagnostics},
    {"optim/qk_clip_logit_max", "1",
     "largest attention logit q k / sqrt(d) of visible query-key pairs in the forward passes of "
     "the step, over all layers and heads",
     Per::run, When::step, Of::qk_clip},
    {"optim/qk_clip_heads", "heads",
     "number of query heads whose weights were scaled down after the step", Per::run, When::step,
     Of::qk_clip},
    {"throughput/tokens_per_sec", "tokens per second",
     "training tokens per second of batch loading, forward, backward and update"},
    {"throughput/mfu", "fraction",
     "model FLOPs utilization: FLOPs as counted by layers/cost, divided by the multiply-add peak "
     "that is measured for 10 ms when the program starts"},
    layer_metric("attn/context_rms", "1",
                 "RMS of the input to W_O, or to V1's per-head norm: mean over tokens and heads",
                 Of::any,
                 {"Context RMS", "before the output projection, mean over tokens and heads"}),
    layer_metric("attn/context_rms_max", "1", "largest context RMS over tokens and heads"),
    layer_metric("attn/lambda", "1",
                 "weight of the second map: mean over tokens and heads; V1 has one per layer",
                 Of::two_maps, {"λ", "weight of the second map, mean over tokens and heads"}),
    layer_metric("attn/lambda_std", "1", "standard deviation of lambda over tokens and heads",
                 Of::two_maps),
    layer_metric("attn/lambda_min", "1", "smallest lambda over tokens and heads", Of::two_maps),
    layer_metric("attn/lambda_max", "1", "largest lambda over tokens and heads", Of::two_maps),
    layer_metric("attn/lambda_rms_correlation", "1",
                 "Pearson correlation of lambda and context RMS over the tokens of a head: mean "
                 "over heads",
                 Of::token_lambda),
    layer_metric(
        "attn/sink_rate", "fraction",
        "fraction of heads whose map gives token 1 a mean weight above 0.3 (Gu et al. 2024)",
        Of::any,
        {"Sink rate", "fraction of heads that give the first token a mean weight above 0.3"}),
    layer_metric("attn/map1/sink_rate", "fraction",
                 "fraction of heads whose A1 gives token 1 a mean weight above 0.3", Of::two_maps),
    layer_metric("attn/map2/sink_rate", "fraction",
                 "fraction of heads whose A2 gives token 1 a mean weight above 0.3", Of::two_maps),
    layer_metric("attn/first_token_mass", "fraction",
                 "weight that the map gives token 1: mean over heads and the first 64 tokens"),
    layer_metric("attn/entropy", "nats",
                 "entropy of a row of the map, normalized without the weight of a sink: mean over "
                 "tokens and heads"),
    layer_metric("attn/sparsity", "fraction",
                 "fraction of visible query-key pairs whose weight in the map is below 0.001"),
    layer_metric("attn/output_cosine", "1",
                 "smallest cosine between the W_O columns of two heads that read the same values; "
                 "differential attention corresponds to -1",
                 Of::shared_values),
    layer_metric("attn/rounding_error", "1",
                 "relative error of the context if the operands of the attention matmuls are "
                 "rounded to bfloat16"),
    layer_metric("attn/logit_max", "1",
                 "largest |q k| / sqrt(d) of visible query-key pairs, both maps pooled", Of::any,
                 {"Largest attention logit", "absolute value, before softmax"}),
    layer_metric(
        "attn/answer", "fraction",
        "weight of the answer in the map rows of query tokens: mean over queries and heads "
        "(Ye et al. 2024, 3B: 0.03 to 0.09 with softmax, 0.27 to 0.40 with V1)",
        Of::retrieval),
    layer_metric("attn/noise", "fraction",
                 "weight of the other context tokens in the map rows of query tokens: mean over "
                 "queries and heads",
                 Of::retrieval),
    {"moe/load",
     "fraction",
     "choices of each expert divided by all choices of the layer",
     Per::expert,
     When::diagnostics,
     Of::moe,
     {"Load of experts", "fraction of the choices of a layer, one row per expert"}},
    layer_metric("moe/load_max", "fraction",
                 "largest moe/load of the layer; 1 / (number of experts) if balanced", Of::moe,
                 {"Largest load", "fraction of the choices of a layer"}),
    layer_metric(
        "moe/router_entropy", "nats",
        "entropy of the router scores of a token, with sigmoid scores normalized to sum to "
        "1: mean over tokens",
        Of::moe, {"Router entropy", "of the scores of a token, mean over tokens"}),
    layer_metric("act/max", "1",
                 "largest |hidden state| after the residual additions of the layer"),
    layer_metric("act/max_over_median", "1", "act/max divided by the median of the |hidden states|",
                 Of::any,
                 {"Outliers", "largest hidden state divided by the median, absolute values"}),
    layer_metric("act/kurtosis", "1",
                 "mean(s^4) / mean(s^2)^2 of the root mean squares s of the features; 1 means no "
                 "outliers (He et al. 2024)",
                 Of::any, {"Kurtosis", "of hidden states; 1 means no outliers"}),
    layer_metric("act/rms", "1",
                 "root mean square of the hidden states, the size of the residual stream")};

/// Returns the name of a metric of the registry. Other strings do not compile.
consteval const char* metric(std::string_view name) {
  for (const Metric& each : kMetrics)
    if (each.name == name) return each.name;
  throw "no metric of the registry has this name";
}

/// Returns the name for a layer, a parameter or a grid cell: "attn/entropy/3".
inline std::string metric_of(std::string_view name, std::string_view part) {
  return std::string(name).append("/").append(part);
}

}  // namespace difftape::run
