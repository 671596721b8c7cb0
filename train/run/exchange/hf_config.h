#pragma once
// The config.json with which Hugging Face transformers opens a model, written and read.

#include <array>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/tensor.h"
#include "layers/model_config.h"
#include "train/run/config/config.h"

namespace difftape::run {

/// What a way to map heads, with or without experts, is called here and there.
struct HfArchitecture {
  MappingKind mapping;
  std::string_view kind;        ///< of difftape
  std::string_view model_type;  ///< of config.json
  std::string_view name;        ///< of the class
  bool has_experts = false;
};
/// That of V2 is in modeling_difftape.py, which lies beside the weights.
inline constexpr std::array kHfArchitectures{
    HfArchitecture{MappingKind::standard, "softmax", "llama", "LlamaForCausalLM"},
    HfArchitecture{MappingKind::standard, "softmax", "mixtral", "MixtralForCausalLM", true},
    HfArchitecture{MappingKind::paired, "diff_v1", "diffllama", "DiffLlamaForCausalLM"},
    HfArchitecture{MappingKind::doubled, "diff_v2", "difftape_v2", "DifftapeV2ForCausalLM"}};

/// Sentences of the form "<key>: <problem>".
class Reasons {
 public:
  void unless(bool holds, std::string_view reason) {
    if (!holds) list.emplace_back(reason);
  }
  std::vector<std::string> list;
};

/// Why transformers cannot compute what the model does, a reason a key; empty if it can.
std::vector<std::string> why_not_hf(const ModelConfig& model);

/// Whether its class there is that of modeling_difftape.py.
bool needs_modeling_file(const ModelConfig& model);

/// config.json, with match_params carried out in `model`. An eos_token_id of -1 is none.
nlohmann::ordered_json hf_config(const ModelConfig& model, Index eos_token_id);

/// What a config.json says of its model, with `overrides` of data.* and train.*. A vocabulary of
/// another size than that of bytes is of data.type tokens. Throws MissingInput; DataError with all
/// that difftape has not; ConfigError.
Config config_of_hf(const std::filesystem::path& file, const std::vector<std::string>& overrides);

/// The name of a parameter there: experts of Mixtral are w1 (gate), w3 (up) and w2 (down).
std::string hf_name(std::string parameter);

/// The row of difftape's parameter that each row of transformers' is; empty: the same one.
std::vector<Index> hf_rows(const std::string& parameter, const ModelConfig& model);

/// y[i] = x[rows[i]], for matrices (rows, columns); and the way back, y[rows[i]] = x[i].
Tensor reordered(const Tensor& x, const std::vector<Index>& rows, bool back);
inline Tensor in_hf_order(const Tensor& x, const std::vector<Index>& rows) {
  return reordered(x, rows, false);
}
inline Tensor in_own_order(const Tensor& x, const std::vector<Index>& rows) {
  return reordered(x, rows, true);
}

/// Whether o_proj there holds its product with the weights of subln.
bool folds_subln(const ModelConfig& model);

/// o_proj (C, heads * E) with each column multiplied by its weight of subln (E).
Tensor with_subln(const Tensor& o_proj, const Tensor& subln);
/// Whether `folded`, of numbers of that type, is this product, bit for bit.
bool is_product(const Tensor& folded, const Tensor& o_proj, const Tensor& subln,
                std::string_view dtype);

/// The names of the two parameters of a layer, and how the second one ends.
std::string o_proj_name(Index layer);
std::string subln_name(Index layer);
inline constexpr std::string_view kSublnSuffix = ".subln.weight";

}  // namespace difftape::run
