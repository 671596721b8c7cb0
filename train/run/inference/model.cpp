#include "train/run/inference/model.h"

#include "core/error.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/config/reader.h"

namespace difftape::run {

namespace {

namespace fs = std::filesystem;

/// The weights of a checkpoint decide what its model is.
void require_other_keys(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    if (text.starts_with("data.") || text.starts_with("train.")) continue;
    throw UsageError(fmt::format(
        "--set {}: a checkpoint has a configuration of its own, of which only data.* and train.* "
        "can be set",
        text));
  }
}

}  // namespace

NamedModel open_model(const fs::path& where, const std::vector<std::string>& overrides) {
  NamedModel named;
  fs::path weights;
  if (names_checkpoint(where)) {
    require_other_keys(overrides);
    weights = find_checkpoint(where);
    const CheckpointMeta meta = read_checkpoint_meta(weights);
    named.config = config_from_yaml(meta.config_yaml, weights.string(), overrides);
    named.data = meta.extra_state.at("data");
  } else {
    named.config = load_config(where.string(), overrides).config;
    weights = named.config.train.init_from;
  }
  named.model = std::make_unique<LanguageModel>(named.config.model);
  named.model->parameters().initialize(named.config.run.seed);
  if (weights.empty()) return named;
  const WeightsOrigin origin = load_weights(weights, named.model->parameters());
  named.checkpoint = origin.checkpoint;
  named.step = origin.step;
  return named;
}

}  // namespace difftape::run
