#include "layers/attention/fields.h"

#include <fmt/ranges.h>

#include <map>

#include "core/error.h"

namespace difftape {

namespace {

const std::map<std::string, AttentionFields (*)()>& presets() {
  static const std::map<std::string, AttentionFields (*)()> table{
      {"diff_v1", diff_v1_preset},       {"diff_v2", diff_v2_preset}, {"gated", gated_preset},
      {"softmax1", off_by_one_preset},   {"sink", sink_preset},       {"softmax", softmax_preset},
      {"softmax_2h", softmax_2h_preset},
  };
  return table;
}

/// Sets the field to what the word stands for, unless that is "preset".
template <class Value, std::size_t n>
void choose(const char* field, const std::string& text, const Word<Value> (&words)[n],
            Value& value) {
  if (text == kPreset) return;
  for (const Word<Value>& word : words) {
    if (word.text == text) {
      value = word.value;
      return;
    }
  }
  throw ConfigError(fmt::format("model.attention.{}: '{}' is not one of {}", field, text,
                                fmt::join(field_words(words), ", ")));
}

class Errors {
 public:
  explicit Errors(const ModelConfig& model) : model_(model) {}

  /// `keys` are below model; the kind is always one of them.
  void add(std::vector<const char*> keys, std::string message) {
    keys.push_back("attention.kind");
    FieldError error;
    for (const char* key : keys) error.keys.push_back(fmt::format("model.{}", key));
    error.message = std::move(message);
    list.push_back(std::move(error));
  }

  void check_wiring(const AttentionFields& fields) {
    const AttentionConfig& config = model_.attention;
    const std::string one_map =
        fmt::format("{} has one softmax map a head, so there is nothing to subtract", config.kind);
    if (fields.maps() == 1 && config.pairing != kPreset) {
      add({"attention.pairing"},
          one_map + "; write kind: diff_v2 to pair its query heads, or leave out pairing");
    }
    if (fields.wiring == Wiring::pairs && config.pairing != kPreset) {
      add({"attention.pairing"},
          fmt::format("the pairs of {} are heads 2i and 2i+1 of queries and keys; another choice "
                      "would only rename them. Write kind: diff_v2, where pairing decides which "
                      "key head each map reads, or leave it out",
                      config.kind));
    }
    if (fields.wiring == Wiring::doubled && fields.pairing == Pairing::split_half &&
        kv_heads_of(model_) == 1) {
      add({"attention.pairing", "num_kv_heads"},
          "with one key head all query heads are of one group, and pairing them otherwise only "
          "renames them; write num_kv_heads above 1, or leave out pairing");
    }
    const AttentionConfig baseline;
    if (config.kind != baseline.kind && fields == attention_fields(baseline)) {
      add({"attention.softmax_denominator", "attention.gate"},
          fmt::format("without what makes it {}, this is {}; write kind: {}", config.kind,
                      baseline.kind, baseline.kind));
    }
    if (fields.maps() == 1 && config.lambda != kPreset) {
      add({"attention.lambda"}, one_map + "; write kind: diff_v1 or diff_v2, or leave out lambda");
    }
  }

  void check_lambda(const AttentionFields& fields) {
    const AttentionConfig& config = model_.attention;
    const bool has_init = fields.maps() == 2 && fields.lambda == LambdaKind::exponential;
    if (config.lambda_init != kPreset && !has_init) {
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

  void check_heads(const AttentionFields& fields) {
    if (fields.wiring != Wiring::pairs) return;
    const std::string& kind = model_.attention.kind;
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

  std::vector<FieldError> list;

 private:
  const ModelConfig& model_;
};

}  // namespace

std::vector<std::string> attention_kinds() {
  std::vector<std::string> names;
  for (const auto& [name, preset] : presets()) names.push_back(name);
  return names;
}

AttentionFields attention_fields(const AttentionConfig& config) {
  const auto preset = presets().find(config.kind);
  if (preset == presets().end()) {
    throw ConfigError(fmt::format("model.attention.kind: '{}' is not one of {}", config.kind,
                                  fmt::join(attention_kinds(), ", ")));
  }
  AttentionFields fields = preset->second();
  choose("pairing", config.pairing, kPairings, fields.pairing);
  choose("lambda", config.lambda, kLambdas, fields.lambda);
  choose("lambda_init", config.lambda_init, kLambdaInits, fields.lambda_init);
  choose("softmax_denominator", config.normaliser, kNormalisers, fields.normaliser);
  choose("subln", config.subln, kHeadNorms, fields.head_norm);
  choose("gate", config.gate, kGates, fields.gate);
  fields.lambda_init_value = config.lambda_init_value;
  return fields;
}

std::vector<FieldError> attention_errors(const ModelConfig& config) {
  const AttentionFields fields = attention_fields(config.attention);
  Errors errors(config);
  errors.check_heads(fields);
  errors.check_wiring(fields);
  errors.check_lambda(fields);
  return errors.list;
}

}  // namespace difftape
