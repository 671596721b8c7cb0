#pragma once
// What an attention variant is made of: independent fields. A kind (softmax, diff_v1, ...) is a
// preset of them, one file a kind; each field can be set on its own beside it.

#include <string>
#include <string_view>
#include <vector>

#include "layers/model_config.h"

namespace difftape {

/// How the heads of the baseline are wired (core/attention/heads.h).
enum class Wiring {
  single,  ///< one map a head
  pairs,   ///< two maps, half the heads, values of twice the width (V1)
  doubled  ///< two maps, twice the query heads (V2)
};
enum class Pairing { interleaved, split_half };
/// The weight of the second map; `one` is the plain difference of the maps.
enum class LambdaKind { exponential, sigmoid, raw, one };
enum class LambdaInit { schedule, constant };
/// The denominator of a softmax: its sum, with exp(0), or with exp of a learned sink a head.
enum class Normaliser { softmax, off_by_one, sink };
/// sigmoid(x W^T) that multiplies each element of the context, or each head.
enum class Gate { none, elementwise, head };

struct AttentionFields {
  Wiring wiring = Wiring::single;
  Index query_multiple = 1;  ///< query heads of the single wiring for one head of the baseline
  Pairing pairing = Pairing::interleaved;
  LambdaKind lambda = LambdaKind::one;
  LambdaInit lambda_init = LambdaInit::schedule;
  double lambda_init_value = 0;
  Normaliser normaliser = Normaliser::softmax;
  bool head_norm = false;  ///< RMSNorm of each head, with V1's lambda times 1 - lambda_init
  Gate gate = Gate::none;

  Index maps() const { return wiring == Wiring::single ? 1 : 2; }
  friend bool operator==(const AttentionFields&, const AttentionFields&) = default;
};

// The kinds, each in its file, with its source.
AttentionFields softmax_preset();
AttentionFields softmax_2h_preset();
AttentionFields diff_v1_preset();
AttentionFields diff_v2_preset();
AttentionFields off_by_one_preset();
AttentionFields sink_preset();
AttentionFields gated_preset();

/// Names that model.attention.kind accepts, in alphabetical order.
std::vector<std::string> attention_kinds();

/// The preset of the kind with the fields that are set on their own. Throws ConfigError for a kind
/// or word that does not exist.
AttentionFields attention_fields(const AttentionConfig& config);

/// A combination that makes no sense: the keys that make it, and what to write instead.
struct FieldError {
  std::vector<std::string> keys;  ///< such as "model.attention.pairing"
  std::string message;
};
std::vector<FieldError> attention_errors(const ModelConfig& config);

/// A word of the configuration and what it stands for.
template <class Value>
struct Word {
  std::string_view text;
  Value value;
};
inline constexpr Word<Pairing> kPairings[] = {{"interleaved", Pairing::interleaved},
                                              {"split_half", Pairing::split_half}};
inline constexpr Word<LambdaKind> kLambdas[] = {{"exponential", LambdaKind::exponential},
                                                {"sigmoid", LambdaKind::sigmoid},
                                                {"raw", LambdaKind::raw},
                                                {"none", LambdaKind::one}};
inline constexpr Word<LambdaInit> kLambdaInits[] = {{"schedule", LambdaInit::schedule},
                                                    {"constant", LambdaInit::constant}};
inline constexpr Word<Normaliser> kNormalisers[] = {{"softmax", Normaliser::softmax},
                                                    {"softmax1", Normaliser::off_by_one},
                                                    {"sink", Normaliser::sink}};
inline constexpr Word<bool> kHeadNorms[] = {{"true", true}, {"false", false}};
inline constexpr Word<Gate> kGates[] = {
    {"none", Gate::none}, {"elementwise", Gate::elementwise}, {"head", Gate::head}};

/// What the configuration accepts for a field: "preset" and the words.
template <class Value, std::size_t n>
std::vector<std::string> field_words(const Word<Value> (&words)[n]) {
  std::vector<std::string> texts{kPreset};
  for (const Word<Value>& word : words) texts.emplace_back(word.text);
  return texts;
}

}  // namespace difftape
