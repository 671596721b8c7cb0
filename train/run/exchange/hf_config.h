#pragma once
// Writes and reads the config.json of Hugging Face transformers.

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "layers/model_config.h"
#include "train/run/config/config.h"

namespace difftape::run {

/// Names of an attention mapping, with or without experts, in difftape and in transformers.
struct HfArchitecture {
  MappingKind mapping;
  std::string_view kind;        ///< attention kind of difftape
  std::string_view model_type;  ///< model_type of config.json
  std::string_view name;        ///< class of transformers
  bool has_experts = false;
  /// Values of transformers 5.24 for keys that config.json leaves out.
  double rope_theta = 10000, rms_norm_eps = 1e-6;
  Index num_key_value_heads = 0;  ///< 0: num_attention_heads
  Index max_seq_len = 2048;
};
/// The supported architectures. modeling_difftape.py, next to the weights, has the class of V2.
inline constexpr std::array kHfArchitectures{
    HfArchitecture{MappingKind::standard, "softmax", "llama", "LlamaForCausalLM"},
    HfArchitecture{MappingKind::standard, "softmax", "mixtral", "MixtralForCausalLM", true, 1e6,
                   1e-5, 8, 131072},
    HfArchitecture{MappingKind::paired, "diff_v1", "diffllama", "DiffLlamaForCausalLM", false,
                   10000, 1e-5},
    HfArchitecture{MappingKind::doubled, "diff_v2", "difftape_v2", "DifftapeV2ForCausalLM"}};

/// Collects reasons of the form "<key>: is X, but must be Y".
class Reasons {
 public:
  template <class... Args>
  void unless(bool holds, fmt::format_string<Args...> reason, Args&&... args) {
    if (!holds) list.push_back(fmt::format(reason, std::forward<Args>(args)...));
  }
  std::vector<std::string> list;
};

/// Returns the reasons why transformers cannot compute the model, one per key; empty if it can.
std::vector<std::string> why_not_hf(const ModelConfig& model);

/// Returns true if transformers needs modeling_difftape.py for the model.
bool needs_modeling_file(const ModelConfig& model);

/// Returns config.json for a model with match_params applied. An eos_token_id of -1 becomes null.
nlohmann::ordered_json hf_config(const ModelConfig& model, Index eos_token_id);

/// Returns the configuration of a config.json, with `overrides` of data.* and train.*. data.type is
/// tokens unless the vocabulary has 256 entries. Throws MissingInput; DataError with every setting
/// that difftape does not support; ConfigError.
Config config_of_hf(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// Returns the name of a parameter in transformers; Mixtral experts have w1 (gate), w3 (up) and w2
/// (down).
std::string hf_name(std::string parameter);

/// Returns the row of difftape's parameter for each row in transformers; empty if the orders are
/// equal.
std::vector<Index> hf_rows(const std::string& parameter, const ModelConfig& model);

/// Returns y of x, (rows, columns), with y[i] = x[rows[i]], or if `back` y[rows[i]] = x[i].
Tensor reordered(const Tensor& x, const std::vector<Index>& rows, bool back);
inline Tensor in_hf_order(const Tensor& x, const std::vector<Index>& rows) {
  return reordered(x, rows, false);
}
inline Tensor in_own_order(const Tensor& x, const std::vector<Index>& rows) {
  return reordered(x, rows, true);
}

/// Returns true if o_proj in transformers holds its product with the weights of subln.
bool folds_subln(const ModelConfig& model);

/// Returns o_proj (C, heads * E) with each column multiplied by its weight in subln (E).
Tensor with_subln(const Tensor& o_proj, const Tensor& subln);
/// Returns true if `folded`, stored as `dtype`, equals this product bit for bit.
bool is_product(const Tensor& folded, const Tensor& o_proj, const Tensor& subln,
                std::string_view dtype);

/// Names of the two parameters of a layer, and the suffix of the second.
std::string o_proj_name(Index layer);
std::string subln_name(Index layer);
inline constexpr std::string_view kSublnSuffix = ".subln.weight";

}  // namespace difftape::run
