#include "train/run/inference/model.h"

#include <algorithm>
#include <optional>

#include "core/error.h"
#include "train/run/checkpoint/checkpoint.h"
#include "train/run/checkpoint/initial_settings.h"
#include "train/run/config/config.h"
#include "train/run/config/fields.h"
#include "train/run/config/model_memory.h"
#include "train/run/config/reader.h"
#include "train/system/memory.h"

namespace difftape::run {

namespace fs = std::filesystem;

void require_keys_beside_the_model(const std::vector<std::string>& overrides) {
  for (const std::string& text : overrides) {
    const std::string key = text.substr(0, text.find('='));
    const bool is_known = std::ranges::any_of(fields(), [&](const Field& field) {
      return field.key == key || field.key.starts_with(key + ".");
    });
    if (!is_known || has_flag(key, kBesideModel)) continue;  // the reader reports unknown keys
    throw UsageError(fmt::format(
        "--set {}: is fixed by the checkpoint; only data.*, train.*, model.max_seq_len, "
        "model.rope_theta and model.rope_scaling.* can be set",
        text));
  }
}

namespace {

/// Rejects a model with more layers than the checkpoint before it takes time and memory.
void require_layers(const Checkpoint& weights, Index layers) {
  throw_if<DataError>(std::ssize(weights.file().children("/model")) < layers,
                      "checkpoint {} does not fit the model: it has {} parameters for {} layers; "
                      "use another checkpoint",
                      weights.path().string(), weights.file().children("/model").size(), layers);
}

}  // namespace

ModelTokens tokens_of(const Checkpoint& weights) {
  const CheckpointMeta& meta = weights.meta();
  const DataKind trained = config_from_yaml(meta.config_yaml, weights.path().string()).data.type;
  const bool is_text = trained == DataKind::text && !meta.tokenizer.is_known();
  return {.tokenizer = is_text ? byte_tokenizer().file : meta.tokenizer,
          .of_token_files = trained == DataKind::tokens};
}

NamedModel open_model(const fs::path& where, const std::vector<std::string>& overrides) {
  NamedModel named;
  std::optional<Checkpoint> weights;
  if (names_checkpoint(where)) {
    require_keys_beside_the_model(overrides);
    weights.emplace(find_checkpoint(where));
    named.config =
        config_from_yaml(weights->meta().config_yaml, weights->path().string(), overrides);
    named.data = weights->extra_state([](const auto& state) { return state.at("data"); });
    named.tokens = tokens_of(*weights);
  } else {
    const ResolvedConfig resolved = load_config(where.string(), overrides);
    static_cast<void>(other_initial_settings(resolved));  // throws if the weights would be wrong
    named.config = resolved.config;
    const std::string& from = named.config.train.init_from;
    if (!from.empty()) {
      weights.emplace(find_checkpoint(from));
      named.tokens = tokens_of(*weights);
    } else if (named.config.data.type == DataKind::text) {
      named.tokens.tokenizer = byte_tokenizer().file;
    }
  }
  if (weights) require_layers(*weights, named.config.model.num_layers);
  require_model_memory(named.config.model, weights ? weights->path().string() : where.string(),
                       system::free_memory());
  named.engine = std::make_unique<EngineScope>(engine_of(named.config));
  named.model = std::make_unique<LanguageModel>(named.config.model);
  if (weights) weights->require_fits(named.model->parameters());  // before they take memory
  named.model->parameters().initialize(named.config.run.seed);
  if (!weights) return named;
  weights->load(named.model->parameters(), nullptr);
  named.checkpoint = weights->path();
  named.step = weights->meta().step;
  return named;
}

}  // namespace difftape::run
