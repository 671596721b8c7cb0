#include "train/run/config/model_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.h"
#include "layers/language_model.h"
#include "train/system/number.h"

namespace difftape::run {

double model_bytes(const ModelConfig& model) { return 2 * sizeof(real) * parameter_count(model); }

std::string sizes_to_lower(const ModelConfig& model) {
  const auto product = [](std::initializer_list<Index> sizes) {
    double all = 1;
    for (const Index size : sizes) all *= static_cast<double>(size);
    return all;
  };
  struct Part {
    double parameters;
    const char* keys;
  };
  const MoeConfig& moe = model.moe;
  const bool experts = moe.num_experts > 0;
  const Part vocabulary{product({model.vocab_size, model.d_model}),
                        "model.vocab_size or model.d_model"};
  const Part mlps = {
      experts ? product({3, model.num_layers, moe.num_experts + moe.num_shared_experts,
                         moe.moe_intermediate_size, model.d_model})
              : product({3, model.num_layers, model.d_ff, model.d_model}),
      experts ? "model.moe.num_experts, model.moe.moe_intermediate_size, model.num_layers or "
                "model.d_model"
              : "model.d_ff, model.num_layers or model.d_model"};
  const Part attention{
      product({2, model.num_layers, model.num_heads, head_dim_of(model), model.d_model}),
      model.head_dim == 0 ? "model.d_model or model.num_layers"
                          : "model.num_heads, model.head_dim, model.num_layers or model.d_model"};
  const std::array parts{vocabulary, mlps, attention};
  return std::ranges::max_element(parts, {}, &Part::parameters)->keys;
}

void require_model_memory(const ModelConfig& model, const std::string& where,
                          std::optional<std::uint64_t> free) {
  const double bytes = model_bytes(model);
  if (!free || bytes <= static_cast<double>(*free)) return;
  throw ConfigError(fmt::format(
      "{}: the weights of the model and their gradients need {} of memory, but {} are free; lower "
      "{}, or use a machine with more memory",
      where, system::describe_bytes(bytes), system::describe_bytes(static_cast<double>(*free)),
      sizes_to_lower(model)));
}

}  // namespace difftape::run
