#include "train/app/gradcheck/cases.h"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "autograd/gradcheck/op_cases.h"
#include "core/random.h"
#include "layers/model_config.h"
#include "train/run/config/reader.h"

namespace difftape::app {
namespace {

bool contains(const std::string& text, std::initializer_list<const char*> words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const char* word) { return text.find(word) != std::string::npos; });
}

/// Distribution of values for which no gradient is too small to check: maps differ, and sigmoids
/// are not flat.
struct Distribution {
  double mean, std;
};
Distribution check_values(const Parameter& p) {
  if (p.role == Role::norm_weight) return {1, 0.2};
  if (p.role == Role::embedding) return {0, 1};  // large, since RMSNorm divides them by their norm
  if (contains(p.name, {"sinks"})) return {-1, 0.5};
  if (p.role == Role::state) return {0, 0.05};
  if (contains(p.name, {"mlp.gate.weight"})) return {0, 1};  // no near ties of experts
  if (p.role == Role::other) return {0, 0.6};
  if (contains(p.name, {"q_proj", "k_proj"})) return {0, 1};
  return {0, contains(p.name, {"v_proj"}) ? 0.8 : 0.4};
}

void draw(Tensor& values, const std::string& name, Distribution distribution, std::uint64_t seed) {
  fill_normal(values, RandomStream(seed, name), distribution.std);
  for (real& x : values.values()) x += static_cast<real>(distribution.mean);
}

/// Adds a number to one element of every row.
void add_to_column(Tensor& matrix, Index column, real number) {
  for (Index i = 0; i < matrix.shape().rows(); ++i) matrix.row(i)[column] += number;
}

void enlarge(ParameterSet& parameters, std::uint64_t seed) {
  parameters.initialize(seed);
  for (Parameter& p : parameters) draw(p.value, p.name, check_values(p), seed);
}

/// Checks with one draw of the inputs.
using Check = std::function<GradcheckResult(std::uint64_t seed, const Expectation& expected)>;

/// Checks with several draws until each variable was measured with one of them. A draw can put a
/// context near 0, the pole of a norm, or make a gradient too small to measure.
GradcheckResult conclusive(const Expectation& expected, const Check& check) {
  constexpr std::uint64_t kDraws = 12;
  GradcheckResult total = check(1, expected);
  for (std::uint64_t seed = 2; seed <= kDraws && total.inconclusive; ++seed) {
    const std::vector<std::string> left = total.unclear;
    GradcheckResult next = check(seed, [&](const std::string& name) {
      if (std::ranges::find(left, name) == left.end()) return ExpectedGradient::unchecked;
      return expected ? expected(name) : ExpectedGradient::gradient;
    });
    next.elements = total.elements;
    next.zeros = total.zeros;
    next.worst_error = std::max(next.worst_error, total.worst_error);
    total = std::move(next);
  }
  return total;
}

bool maps_share_values(const HeadMapping& mapping) {
  return std::all_of(mapping.outputs.begin(), mapping.outputs.end(), [&](const OutputHead& output) {
    return mapping.maps == 1 || output.value[0] == output.value[1];
  });
}

/// Returns the gradients to expect for one token. A map is then a single number, and a head's
/// context is its value times a number. Without an extra logit, a map is the constant 1, and two
/// maps cancel if lambda is 1. A norm removes the number up to its eps.
Expectation of_one_token(const AttentionFields& fields, const HeadMapping& mapping) {
  const bool shared = maps_share_values(mapping);
  const bool ones = fields.softmax_denominator == SoftmaxDenominator::softmax;
  const bool cancels = ones && shared && mapping.maps == 2 && fields.lambda == LambdaKind::one;
  return [=, norm = fields.subln](const std::string& name) {
    const bool of_maps = contains(name, {"q_proj", "k_proj", "q_norm", "k_norm", "sinks"});
    if (cancels || (ones && of_maps)) return ExpectedGradient::zero;
    const bool of_number = of_maps || contains(name, {"lambda"});
    return norm && shared && of_number ? ExpectedGradient::near_zero : ExpectedGradient::gradient;
  };
}

/// Returns whether the output of `reader` may depend on `token`; both are indices below B * T.
bool may_see(Index reader, Index token, Index seq, const Visibility& visible) {
  const Index position = token % seq, own = reader % seq;
  if (reader / seq != token / seq || position > own) return false;
  if (visible.sliding_window > 0 && own - position >= visible.sliding_window) return false;
  return !visible.document_offsets || position >= (*visible.document_offsets)[reader];
}

/// Returns an error if the output of a token depends on a token that it must not see.
std::string forbidden_sight(const std::function<Var(Tape&)>& layer, Parameter& x,
                            const Visibility& visible) {
  const auto output = [&] {
    Tape tape(Tape::Mode::inference);
    return layer(tape).value();
  };
  const Index seq = x.shape[1], tokens = x.shape[0] * seq, width = x.shape[2];
  const Tensor before = output();
  for (Index token = 0; token < tokens; ++token) {
    real& feature = x.value.row(token)[0];
    const real was = std::exchange(feature, feature + 1);
    const Tensor after = output();
    feature = was;
    for (Index reader = 0; reader < tokens; ++reader) {
      if (may_see(reader, token, seq, visible) ||
          std::equal(before.row(reader), before.row(reader) + width, after.row(reader)))
        continue;
      return fmt::format(
          "the output of token {} of sequence {} depends on token {} of sequence {}, but must not "
          "depend on later tokens, other documents or sequences, or tokens before the window; add "
          "attention_mask to the scores",
          reader % seq, reader / seq, token % seq, token / seq);
    }
  }
  return "";
}

}  // namespace

GradcheckResult check_layer(const ModelConfig& config, Index batch, Index seq,
                            const DocumentOffsets& document_offsets) {
  ParameterSet parameters;
  Parameter& x =
      parameters.declare("x", {batch, seq, config.d_model}, Role::projection, Init::normal(1));
  const auto rope =
      config.rope ? std::make_shared<const RopeTable>(seq, head_dim_of(config), rope_rule(config))
                  : nullptr;
  std::optional<SharedKeyValues> shared;
  if (shares_key_values(config, 1)) shared.emplace(parameters, config, rope);
  const auto layer = [&](const char* name, Index number) {
    return Attention({{parameters, name, {Component::attention, number}}, config}, rope);
  };
  const Attention attention = layer("self_attn", 1);
  const std::optional<Attention> other =
      shared ? std::optional(layer("other.self_attn", 2)) : std::nullopt;
  const Expectation expected =
      seq == 1 ? of_one_token(fields_of(config.attention), attention.mapping()) : Expectation();
  return conclusive(expected, [&](std::uint64_t seed, const Expectation& left) {
    enlarge(parameters, seed);
    // The first feature is about 1, so that contexts are averages of similar values.
    draw(x.value, x.name, {0, 1}, seed);
    for (Index i = 0; i < batch * seq; ++i) x.value.row(i)[0] = 1 + x.value.row(i)[0] / 4;
    for (Parameter& p : parameters)
      if (contains(p.name, {"v_proj"})) add_to_column(p.value, 0, real(0.8));
    const auto output = [&](Tape& tape) {
      const Var in = tape.parameter(x);
      Pass pass{document_offsets};
      if (!shared) return attention(in, pass);
      pass.shared = (*shared)(in, nullptr);
      return (*other)(in, pass, attention(in, pass));
    };
    if (!fields_of(config.attention).context.empty()) {
      const Visibility visible{window_of(config, 1), document_offsets};
      const std::string forbidden = forbidden_sight(output, x, visible);
      if (!forbidden.empty()) return GradcheckResult{.failure = forbidden};
    }
    return gradcheck(parameters, output, left);
  });
}

GradcheckResult check_model(const ModelConfig& config, const DocumentOffsets& document_offsets) {
  LanguageModel model(config);
  const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5, 2, 6, 5}, targets{1, 4, 1, 5, 2, 6, 5, 0};
  // The choice of experts is piecewise constant in the bias.
  const Expectation expected = [&](const std::string& name) {
    return model.parameters().find(name)->role == Role::state ? ExpectedGradient::zero
                                                              : ExpectedGradient::gradient;
  };
  return conclusive(expected, [&](std::uint64_t seed, const Expectation& left) {
    enlarge(model.parameters(), seed);
    return gradcheck(
        model.parameters(),
        [&](Tape& tape) {
          const Var mean = model.loss(tape, {tokens, 2, 4, document_offsets}, targets);
          return affine(mean, static_cast<double>(tokens.size()), 0);
        },
        left);
  });
}

namespace {

/// A number of query and key heads, with its part of a case's name.
struct Heads {
  const char* name;
  Index heads, kv_heads;
};
constexpr Heads kHeads[] = {{"mha", 2, 2}, {"gqa", 4, 2}, {"mqa", 3, 1}};
constexpr const char* kVisible[] = {"full", "window", "packed"};
constexpr Index kLengths[] = {1, 2, 3, 17, 64};

/// Returns two head sizes: even ones for RoPE, which rotates pairs of features, else odd ones.
std::vector<Index> head_sizes(bool rope) {
  return rope ? std::vector<Index>{2, 4} : std::vector<Index>{3, 5};
}

ModelConfig small_config(const AttentionConfig& attention, const Heads& heads) {
  ModelConfig config;
  config.num_layers = 2;
  config.num_heads = heads.heads;
  config.num_kv_heads = heads.kv_heads;
  config.head_dim = 2;
  config.rope_theta = 100;
  config.attention = attention;
  return config;
}

void add_ops(std::vector<GradcheckCase>& cases) {
  for (const OpCase& c : op_cases())
    cases.push_back({c.op, c.name(), [c] { return gradcheck(c.make_inputs(), c.f); }});
}

/// Adds the cases that differ only in T and head size. The longest T has the smaller head size
/// only: it is the most expensive, and only adds whole blocks of rows.
/// Layers of a cross-decoder have short sequences only, since their kernel is the same.
void add_cases(std::vector<GradcheckCase>& cases, const std::string& group, ModelConfig config,
               const std::string& name, const std::string& visible) {
  for (Index head_dim : head_sizes(config.rope)) {
    for (Index seq : kLengths) {
      if (seq == kLengths[4] && head_dim > 3) continue;
      if (seq > kLengths[2] && config.yoco_self_layers > 0) continue;
      // For one token, softmax has q and k gradients of 0; for another rule they are unknown.
      if (seq == 1 && !fields_of(config.attention).context.empty()) continue;
      const Index batch = seq <= 3 ? 2 : 1;
      config.d_model = seq <= 17 ? 3 : 2;
      config.head_dim = head_dim;
      config.attention.sliding_window = visible != "window" ? 0 : seq <= 3 ? 2 : 5;
      const bool packed = visible == "packed";
      cases.push_back({group, fmt::format("{}/d{}/T{}", name, head_dim, seq), [=] {
                         return check_layer(config, batch, seq,
                                            packed ? packed_documents(batch, seq) : nullptr);
                       }});
    }
  }
}

/// Layers with their own keys and values, or with `yoco_self_layers` two layers that share them.
void add_layers(std::vector<GradcheckCase>& cases, const AttentionVariant& variant,
                Index yoco_self_layers) {
  const std::string group = (yoco_self_layers > 0 ? "cross/" : "layer/") + variant.name;
  for (const Heads& heads : kHeads) {
    ModelConfig config = small_config(variant.attention, heads);
    config.yoco_self_layers = yoco_self_layers;
    config.attention.sliding_window = yoco_self_layers;  // of the self-decoder
    if (!run::unsupported_reason(config).empty()) continue;
    config.norm_eps = 1;  // keeps the norm of a head of size 2 away from its pole
    for (const std::string visible : kVisible) {
      if (yoco_self_layers > 0 && visible == "window") continue;
      for (const bool rope : {true, false}) {
        config.rope = rope;
        for (const bool qk_norm : {false, true}) {
          config.attention.qk_norm = qk_norm;
          add_cases(cases, group, config,
                    fmt::format("{}/{}/{}/{}/{}", group, heads.name, visible,
                                rope ? "rope" : "norope", qk_norm ? "qk_norm" : "plain"),
                    visible);
        }
      }
    }
  }
}

ModelConfig small_model(const AttentionConfig& attention, const Heads& heads) {
  ModelConfig config = small_config(attention, heads);
  config.d_model = 4;
  config.d_ff = 3;
  config.max_seq_len = 6;
  config.vocab_size = 7;
  config.norm_eps = 0.1;  // keeps norms away from their poles
  return config;
}

void add_models(std::vector<GradcheckCase>& cases, const AttentionVariant& variant) {
  const std::string group = "model/" + variant.name;
  for (const Heads& heads : kHeads) {
    ModelConfig config = small_model(variant.attention, heads);
    if (!run::unsupported_reason(config).empty()) continue;
    const std::string name = fmt::format("{}/{}", group, heads.name);
    cases.push_back({group, name, [config] { return check_model(config); }});
    ModelConfig with_experts = config;
    with_experts.moe = moe_variants().front().moe;
    cases.push_back({group, name + "/moe", [with_experts] { return check_model(with_experts); }});
    config.tie_word_embeddings = config.attention.qk_norm = true;
    cases.push_back({group, name + "/tied/packed/qk_norm",
                     [config] { return check_model(config, packed_documents(2, 4)); }});
    config.tie_word_embeddings = config.attention.qk_norm = false;
    config.embedding_norm = true;
    config.final_logit_softcap = 5;
    config.z_loss_weight = 0.1;
    cases.push_back(
        {group, name + "/embedding_norm/softcap/z_loss", [config] { return check_model(config); }});
    config.num_layers = 3;
    config.yoco_self_layers = 1;
    config.attention.sliding_window = 2;
    if (!run::unsupported_reason(config).empty()) continue;
    cases.push_back({group, name + "/yoco", [config] { return check_model(config); }});
  }
}

void add_experts(std::vector<GradcheckCase>& cases) {
  for (const MoeVariant& variant : moe_variants()) {
    ModelConfig config = small_model({}, kHeads[0]);
    config.moe = variant.moe;
    cases.push_back(
        {"model/moe", "model/moe/" + variant.name, [config] { return check_model(config); }});
  }
}

}  // namespace

std::vector<GradcheckCase> gradcheck_cases() {
  std::vector<GradcheckCase> cases;
  add_ops(cases);
  for (const AttentionVariant& variant : attention_variants()) {
    for (const Index self_layers : {0, 1}) add_layers(cases, variant, self_layers);
    add_models(cases, variant);
  }
  add_experts(cases);
  return cases;
}

}  // namespace difftape::app
