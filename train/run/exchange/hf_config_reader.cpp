#include "train/run/exchange/hf_config.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "layers/attention/attention.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/data/sources.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

using Json = nlohmann::json;

std::string shown(const Json* value) { return value ? system::json_text(*value) : "missing"; }

/// Reads values of config.json and collects problems.
class HfReader {
 public:
  explicit HfReader(const Json& json) : json_(json) {}

  /// Returns the value of a key; null if it is missing or null.
  const Json* find(const std::string& key) const {
    const auto found = json_.find(key);
    return found == json_.end() || found->is_null() ? nullptr : &*found;
  }
  Index size(const std::string& key, Index otherwise = 0) {
    const Json* value = find(key);
    const bool good = value != nullptr ? value->is_number_unsigned() && *value > 0 : otherwise > 0;
    reasons.unless(good, "{}: is {}, but must be an integer of at least 1", key, shown(value));
    if (!good) return 1;
    return value != nullptr ? value->get<Index>() : otherwise;
  }
  double number(const std::string& key, double otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    reasons.unless(value->is_number(), "{}: is {}, but must be a number", key, shown(value));
    return value->is_number() ? value->get<double>() : otherwise;
  }
  /// Returns the value of a key that must be a name of T.
  template <HasNames T>
  T choice(const std::string& key, T otherwise) {
    const Json* value = find(key);
    if (value == nullptr) return otherwise;
    const auto found =
        value->is_string() ? from_string<T>(value->get<std::string>()) : std::optional<T>();
    reasons.unless(found.has_value(), "{}: is {}, but must be one of {}", key, shown(value),
                   fmt::join(names<T>(), ", "));
    return found.value_or(otherwise);
  }
  /// Requires that a key is missing or has the only value that difftape supports.
  void only(const std::string& key, const Json& value) {
    const Json* found = find(key);
    reasons.unless(found == nullptr || *found == value,
                   "{}: is {}, but must be {}, the only supported value", key, shown(found),
                   shown(&value));
  }

  Reasons reasons;

 private:
  const Json& json_;
};

/// Reads linear or yarn scaling.
void read_rope_scaling(HfReader& reader, HfReader& inner, ModelConfig& model) {
  RopeScaling& scaling = model.rope_scaling;
  const Json* type = inner.find(inner.find("rope_type") != nullptr ? "rope_type" : "type");
  if (type == nullptr || (*type != "linear" && *type != "yarn")) {
    inner.only("rope_type", "default");
    inner.only("type", "default");
    return;
  }
  const bool is_yarn = *type == "yarn";
  const double factor = inner.number("factor", 0);
  inner.reasons.unless(factor >= 1, "factor: is {}, but must be a number of at least 1",
                       shown(inner.find("factor")));
  if (is_yarn) {
    const std::string original = "original_max_position_embeddings";
    scaling.original_seq_len =
        reader.size(original, inner.size(original, model.max_seq_len));  // the outer one counts
    scaling.attention_factor = inner.number("attention_factor", 0);
    inner.only("beta_fast", 32);
    inner.only("beta_slow", 1);
    inner.only("truncate", true);
    inner.only("mscale", nullptr);
    inner.only("mscale_all_dim", nullptr);
  }
  if (factor == 1) {  // changes no frequency
    if (is_yarn) inner.only("attention_factor", 1.0);
    scaling = {};
    return;
  }
  scaling.rope_type = is_yarn ? RopeScalingKind::yarn : RopeScalingKind::linear;
  scaling.factor = factor;
}

/// Reads the base and the scaling of RoPE. rope_scaling, the name in older versions, replaces
/// rope_parameters unless it is empty.
void read_rope(HfReader& reader, ModelConfig& model) {
  model.rope_theta = reader.number("rope_theta", model.rope_theta);
  const Json* old = reader.find("rope_scaling");
  const char* key = old != nullptr && !old->empty() ? "rope_scaling" : "rope_parameters";
  const Json* rope = reader.find(key);
  if (rope == nullptr) return;
  reader.reasons.unless(rope->is_object(), "{}: is {}, but must be an object", key, shown(rope));
  if (!rope->is_object()) return;
  HfReader inner(*rope);
  read_rope_scaling(reader, inner, model);
  inner.only("partial_rotary_factor", 1.0);
  model.rope_theta = inner.number("rope_theta", model.rope_theta);
  for (const std::string& each : inner.reasons.list)
    reader.reasons.list.push_back(fmt::format("{}.{}", key, each));
}

const HfArchitecture* architecture_of(HfReader& reader) {
  const Json* type = reader.find("model_type");
  const auto found = std::ranges::find_if(kHfArchitectures, [&](const HfArchitecture& a) {
    return type != nullptr && *type == a.model_type;
  });
  if (found != kHfArchitectures.end()) return &*found;
  std::vector<std::string_view> known;
  for (const HfArchitecture& each : kHfArchitectures) known.push_back(each.model_type);
  reader.reasons.list.push_back(
      fmt::format("model_type: is {}, but must be one of {}", shown(type), fmt::join(known, ", ")));
  return nullptr;
}

void read_attention(HfReader& reader, const HfArchitecture& architecture, ModelConfig& model) {
  model.attention.kind = AttentionKind(architecture.kind);
  if (architecture.mapping == MappingKind::paired) {
    reader.reasons.unless(model.norm_eps == kSublnEps,
                          "rms_norm_eps: is {}, but must be {}, as in the per-head norm of V1",
                          model.norm_eps, kSublnEps);
  }
  if (architecture.has_experts) {
    model.moe.num_experts = reader.size("num_local_experts", 8);
    model.moe.num_experts_per_tok = reader.size("num_experts_per_tok", 2);
    model.moe.moe_intermediate_size = model.d_ff;
    reader.only("sliding_window", nullptr);
  }
  if (architecture.mapping == MappingKind::doubled) {
    model.attention.pairing = reader.choice("pairing", Pairing::interleaved);
    model.attention.lambda = reader.choice("lambda_rule", LambdaKind::sigmoid);
  }
}

Config read_config(HfReader& reader) {
  Config config;
  config.run.name = "imported";
  const HfArchitecture* known = architecture_of(reader);
  const HfArchitecture& architecture = known ? *known : kHfArchitectures.front();
  ModelConfig& model = config.model;
  model.vocab_size = reader.size("vocab_size");
  model.d_model = reader.size("hidden_size");
  model.d_ff = reader.size("intermediate_size");
  model.num_layers = reader.size("num_hidden_layers");
  model.num_heads = reader.size("num_attention_heads");
  model.num_kv_heads = reader.size("num_key_value_heads", architecture.num_key_value_heads > 0
                                                              ? architecture.num_key_value_heads
                                                              : model.num_heads);
  model.head_dim = reader.size("head_dim", std::max<Index>(1, model.d_model / model.num_heads));
  model.max_seq_len = reader.size("max_position_embeddings", architecture.max_seq_len);
  model.norm_eps = reader.number("rms_norm_eps", architecture.rms_norm_eps);
  model.rope_theta = architecture.rope_theta;
  read_rope(reader, model);
  const Json* tied = reader.find("tie_word_embeddings");
  reader.reasons.unless(tied == nullptr || tied->is_boolean(),
                        "tie_word_embeddings: is {}, but must be true or false", shown(tied));
  model.tie_word_embeddings = tied != nullptr && *tied == Json(true);
  if (known) read_attention(reader, architecture, model);
  const Json* activation = reader.find("hidden_act");
  if (activation == nullptr || *activation != "swish") reader.only("hidden_act", "silu");
  reader.only("attention_bias", false);
  reader.only("mlp_bias", false);
  reader.only("partial_rotary_factor", 1.0);
  reader.reasons.unless(
      reader.find("quantization_config") == nullptr,
      "quantization_config: is set, but quantized weights are not supported; save the "
      "model without quantization");
  config.data.seq_len = std::min(config.data.seq_len, model.max_seq_len);
  if (model.vocab_size != kBytes) config.data.type = DataKind::tokens;
  return config;
}

}  // namespace

Config config_of_hf(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  const Json json = system::json_or_discarded(system::read_text(file));
  throw_if<DataError>(!json.is_object(),
                      "{}: is not a JSON object, but must be one; save the model again",
                      file.string());
  HfReader reader(json);
  const Config config = read_config(reader);
  throw_if<DataError>(!reader.reasons.list.empty(),
                      "{}: difftape does not support this model:\n  {}", file.string(),
                      fmt::join(reader.reasons.list, "\n  "));
  return config_from_yaml(to_yaml(config), file.string() + " as a configuration of difftape",
                          overrides);
}

}  // namespace difftape::run
