#include "train/run/config/model_conflicts.h"

#include <fmt/format.h>

#include "core/error.h"
#include "layers/language_model.h"

namespace difftape::run {

namespace {

class Errors {
 public:
  explicit Errors(const ModelConfig& model) : model_(model) {}

  /// `keys` are below model; the kind is always one of them.
  void add(std::vector<const char*> keys, std::string message) {
    keys.push_back("attention.kind");
    ConfigConflict error;
    for (const char* key : keys) error.keys.push_back(fmt::format("model.{}", key));
    error.message = std::move(message);
    list.push_back(std::move(error));
  }

  void check_maps(const AttentionFields& fields) {
    const AttentionConfig& config = model_.attention;
    const std::string one_map = fmt::format(
        "{} has one softmax map a head, so there is nothing to subtract", config.kind.name());
    if (fields.maps() == 1 && config.pairing) {
      add({"attention.pairing"},
          one_map + "; write kind: diff_v2 to pair its query heads, or leave out pairing");
    }
    if (fields.mapping == MappingKind::paired && config.pairing) {
      add({"attention.pairing"},
          fmt::format("the pairs of {} are heads 2i and 2i+1 of queries and keys; another choice "
                      "would only rename them. Write kind: diff_v2, where pairing decides which "
                      "key head each map reads, or leave it out",
                      config.kind.name()));
    }
    if (fields.mapping == MappingKind::doubled && fields.pairing == Pairing::split_half &&
        kv_heads_of(model_) == 1) {
      add({"attention.pairing", "num_kv_heads"},
          "with one key head all query heads are of one group, and pairing them otherwise only "
          "renames them; write num_kv_heads above 1, or leave out pairing");
    }
    const AttentionKind baseline;
    if (config.kind != baseline && fields == fields_of(plain_kind(baseline, config))) {
      add({"attention.softmax_denominator", "attention.gate"},
          fmt::format("without what makes it {}, this is {}; write kind: {}", config.kind.name(),
                      baseline.name(), baseline.name()));
    }
    if (fields.maps() == 1 && config.lambda) {
      add({"attention.lambda"}, one_map + "; write kind: diff_v1 or diff_v2, or leave out lambda");
    }
  }

  void check_lambda(const AttentionFields& fields) {
    const AttentionConfig& config = model_.attention;
    const bool has_init = fields.maps() == 2 && fields.lambda == LambdaKind::exponential;
    if (config.lambda_init && !has_init) {
      add({"attention.lambda_init", "attention.lambda"},
          "lambda_init is the constant in V1's exponential lambda, and this variant has none; "
          "write lambda: exponential, or leave out lambda_init");
    }
    const bool is_used = has_init && fields.lambda_init == LambdaInit::constant;
    if (config.lambda_init_value != AttentionConfig{}.lambda_init_value && !is_used) {
      add({"attention.lambda_init_value", "attention.lambda_init", "attention.lambda"},
          "the value is used with lambda_init: constant only; write that too, or leave out "
          "lambda_init_value");
    }
  }

  void check_qk_clip(const AttentionFields& fields) {
    if (fields.qk_clip == 0) return;
    if (fields.qk_norm) {
      add({"attention.qk_clip_threshold", "attention.qk_norm"},
          "qk_norm undoes what QK-clip does to the weights of queries and keys, and bounds their "
          "logits itself; leave out one of them");
    }
    if (fields.logit_softcap > 0) {
      add({"attention.qk_clip_threshold", "attention.attn_logit_softcap"},
          "QK-clip needs the logits as they are, and attn_logit_softcap bounds them; leave out one "
          "of "
          "them");
    }
    if (fields.softmax_denominator == SoftmaxDenominator::sink) {
      add({"attention.qk_clip_threshold", "attention.softmax_denominator"},
          "the largest logit of a row is known together with its learned sink only; write "
          "softmax_denominator: softmax or softmax1, or leave out qk_clip_threshold");
    }
  }

  void check_context(const AttentionFields& fields) {
    if (fields.context.empty()) return;
    const auto refuse = [&](const char* key) {
      add({key}, fmt::format("{} makes its context by a rule of its own, which knows no {}; leave "
                             "it out",
                             fields.context, std::string_view(key).substr(10)));
    };
    if (model_.attention.softmax_denominator) refuse("attention.softmax_denominator");
    if (fields.logit_softcap > 0) refuse("attention.attn_logit_softcap");
    if (fields.qk_clip > 0) refuse("attention.qk_clip_threshold");
  }

  void check_heads(const AttentionFields& fields) {
    if (fields.mapping != MappingKind::paired) return;
    const std::string_view kind = model_.attention.kind.name();
    if (model_.num_heads % 2 != 0) {
      add({"num_heads"},
          fmt::format("{} pairs the heads of the baseline, but num_heads is {}; need an even "
                      "number. num_heads is always the baseline's head count: its pairs follow "
                      "from it",
                      kind, model_.num_heads));
    } else if (kv_heads_of(model_) % 2 != 0) {
      add({"num_kv_heads"},
          fmt::format("{} pairs the key and value heads of the baseline, but num_kv_heads is {}; "
                      "need an even number",
                      kind, kv_heads_of(model_)));
    }
  }

  std::vector<ConfigConflict> list;

 private:
  const ModelConfig& model_;
};

}  // namespace

std::vector<ConfigConflict> rope_errors(const ModelConfig& config) {
  const RopeScaling& scaling = config.rope_scaling;
  const bool none = scaling.rope_type == RopeScalingKind::none;
  std::vector<ConfigConflict> errors;
  const auto refuse = [&](bool bad, const char* key, const std::string& message) {
    const std::string section = "model.rope_scaling.";
    if (bad) errors.push_back({{section + key, section + "rope_type"}, message});
  };
  refuse(!none && !config.rope, "rope_type",
         "without RoPE there are no frequencies to scale; leave it out, or write model.rope: true");
  refuse(!none && scaling.factor == 1, "factor",
         "a factor of 1 scales nothing; write how much longer sequences are than those of "
         "training, such as 4");
  refuse(
      none && scaling.factor != 1, "factor",
      "is used with a kind of scaling; write model.rope_scaling.rope_type: linear, ntk or yarn, or "
      "leave it out");
  refuse(scaling.rope_type != RopeScalingKind::yarn && scaling.original_seq_len != 0,
         "original_seq_len", "is used with model.rope_scaling.rope_type: yarn only; leave it out");
  refuse(none && scaling.attention_factor != 0, "attention_factor",
         "is used with a kind of scaling; leave it out");
  return errors;
}

std::vector<ConfigConflict> attention_errors(const ModelConfig& config) {
  const AttentionFields fields = fields_of(config.attention);
  Errors errors(config);
  errors.check_context(fields);
  errors.check_heads(fields);
  errors.check_maps(fields);
  errors.check_lambda(fields);
  errors.check_qk_clip(fields);
  return errors.list;
}

std::string unsupported_reason(const ModelConfig& model) {
  for (const auto& errors : {attention_errors(model), rope_errors(model)}) {
    if (!errors.empty()) return errors.front().message;
  }
  try {
    static_cast<void>(LanguageModel(model));  // declares parameters, allocates none
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

}  // namespace difftape::run
