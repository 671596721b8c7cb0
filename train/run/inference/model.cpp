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
  if (!names_checkpoint(where)) {
    named.config = load_config(where.string(), overrides).config;
    named.model = std::make_unique<LanguageModel>(named.config.model);
    named.model->parameters().initialize(named.config.run.seed);
    const std::string& from = named.config.train.init_from;
    if (!from.empty()) load_weights(from, named.model->parameters());
    return named;
  }
  require_other_keys(overrides);
  named.checkpoint = find_checkpoint(where);
  const CheckpointMeta meta = read_checkpoint_meta(named.checkpoint);
  named.config = config_from_yaml(meta.config_yaml, named.checkpoint.string(), overrides);
  named.step = meta.step;
  named.model = std::make_unique<LanguageModel>(named.config.model);
  named.model->parameters().initialize(named.config.run.seed);
  load_checkpoint(named.checkpoint, named.model->parameters(), nullptr);
  return named;
}

}  // namespace difftape::run
