#pragma once
// What a safetensors file of difftape says of its model beside the weights, as metadata:
//
//   format            "pt", which transformers wants
//   difftape_layout   "difftape", as in a checkpoint, or "hf" (hf_layout.h)
//   difftape_config   the fully resolved configuration, YAML
//   difftape_step     training steps done
//   difftape_data     what the checkpoint said of its data, JSON

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/names.h"
#include "train/run/exchange/safetensors.h"
#include "train/run/inference/model.h"

namespace difftape::run {

/// In which order the numbers are.
enum class WeightLayout { difftape, hf };

}  // namespace difftape::run

namespace difftape {

template <>
inline constexpr auto kNames<run::WeightLayout> = std::to_array<Named<run::WeightLayout>>(
    {{"difftape", run::WeightLayout::difftape}, {"hf", run::WeightLayout::hf}});

}  // namespace difftape

namespace difftape::run {

struct Provenance {
  WeightLayout layout = WeightLayout::difftape;
  Config config;
  Index step = 0;
  nlohmann::json data;  ///< null if it was not trained, or elsewhere
};

safetensors::Metadata to_metadata(const NamedModel& named, WeightLayout layout);

/// Nothing if difftape did not write the file; `overrides` may set keys of data.* and train.*.
/// Throws DataError if a part is missing or no such thing, ConfigError.
std::optional<Provenance> provenance_of(const safetensors::File& file,
                                        const std::vector<std::string>& overrides);

}  // namespace difftape::run
