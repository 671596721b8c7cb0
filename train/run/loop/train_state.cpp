#include "train/run/loop/train_state.h"

#include <optional>

#include "core/distributed.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "core/parallel.h"
#include "core/profile.h"
#include "core/real.h"
#include "optim/grad_norm.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/data/prepare/tokenizer.h"
#include "train/run/inference/model.h"
#include "train/run/loop/continuation.h"
#include "train/system/files.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

namespace fs = std::filesystem;

ParameterSet& initialized(ParameterSet& parameters, std::uint64_t seed) {
  parameters.initialize(seed);
  return parameters;
}

std::optional<QkClip> qk_clip_of(const ModelConfig& model) {
  const double threshold = model.attention.qk_clip_threshold;
  return threshold > 0 ? std::optional<QkClip>(threshold) : std::nullopt;
}

std::optional<LoadBalancer> balancer_of(const ModelConfig& model, std::optional<QkClip>& next) {
  const double rate = model.moe.router_bias_update_rate;
  if (rate == 0) return std::nullopt;
  return LoadBalancer(rate, next ? &*next : nullptr);
}

}  // namespace

TrainState::TrainState(const Config& the_config)
    : TrainState(the_config, std::async(std::launch::async, [&the_config, threads = num_threads()] {
                   set_num_threads(threads);  // which is a setting of each thread
                   return make_dataset(the_config.data, the_config.model, the_config.run.seed,
                                       the_config.train.gradient_accumulation_steps);
                 })) {}

TrainState::TrainState(const Config& the_config, std::unique_ptr<Dataset> the_data)
    : TrainState(the_config,
                 std::async(std::launch::deferred, [&the_data] { return std::move(the_data); })) {}

TrainState::TrainState(const Config& the_config, std::future<std::unique_ptr<Dataset>> the_data)
    : config(the_config),
      flush_subnormals(config.train.flush_subnormals && std::is_same_v<real, float>),
      engine(engine_of(config)),
      precision(precision_of(config)),
      model(config.model),
      qk_clip(qk_clip_of(config.model)),
      balancer(balancer_of(config.model, qk_clip)),
      optimizer(initialized(model.parameters(), config.run.seed), config.optim),
      data(the_data.get()),
      gradient_sums(model.parameters().size()),
      schedule(config.optim, config.train.steps) {}

ModelInput TrainState::input_of(const Batch& batch) const {
  const profile::Span span(profile::Category::phase, "data");
  return {batch.inputs(), batch.targets(), batch.document_offsets(config.data.eos_token_id)};
}

Var TrainState::loss(Tape& tape, const Batch& batch, LossTerms* terms, Observer* observer) {
  const ModelInput input = input_of(batch);
  return model.loss(tape, {input.tokens, batch.batch, batch.seq, input.starts}, input.targets,
                    config.train.activation_checkpointing, terms, observer);
}

Observer* TrainState::step_observer() {
  if (balancer) return &*balancer;
  return qk_clip ? &*qk_clip : nullptr;
}

Validation TrainState::validate(const Tape::Events& events) {
  const profile::Span span(profile::Category::phase, "validate");
  return run::validate(model, *data,
                       {.batches = batches_to_validate(config, step, data->val_batches()),
                        .eos_token_id = config.data.eos_token_id,
                        .precision = precision,
                        .events = events,
                        .stopped = step == config.train.steps ? stopped : nullptr});
}

Diagnostics TrainState::diagnose() {
  const profile::Span span(profile::Category::phase, "diagnostics");
  const Batch batch = diagnostic_batch(*data, config.log.diagnostics_sequences);
  Diagnostics found = run::diagnose(model, batch, config.data.eos_token_id, precision);
  found.maps.step = step;
  return found;
}

CheckpointMeta TrainState::meta(Index at_step) const {
  CheckpointMeta meta;
  meta.step = at_step;
  meta.config_yaml = to_yaml(config);
  meta.extra_state = {{"data", data->info()}};
  meta.seed = config.run.seed;
  meta.tokenizer = data->tokenizer();
  return meta;
}

void TrainState::save(const fs::path& directory) const {
  save_checkpoint(directory, model.parameters(), &optimizer, meta(step));
}

void TrainState::restore(const fs::path& checkpoint) {
  const Checkpoint saved(checkpoint);
  const CheckpointMeta& meta = saved.meta();
  require_continued(config_from_yaml(meta.config_yaml, checkpoint.string()), config,
                    checkpoint.parent_path().parent_path());
  require_precision(checkpoint, meta.precision, "resume");
  throw_if<DataError>(meta.step > config.train.steps,
                      "checkpoint {} has step {}, but its run has only {} steps; use another "
                      "checkpoint of the run",
                      checkpoint.string(), meta.step, config.train.steps);
  saved.extra_state([&](const nlohmann::json& extra) {
    require_same_data(*data, extra.at("data"), checkpoint);
    require_same_tokenizer(checkpoint, tokens_of(saved), data->tokenizer());
    saved.load(model.parameters(), &optimizer);
    restore_step(meta.step);
  });
}

void TrainState::restore_step(Index done) { step = done; }

void TrainState::scatter() {
  if (distributed::count() == 1) return;
  std::vector<Index> done{distributed::rank() == 0 ? step : 0};
  distributed::combine(done);
  if (distributed::rank() > 0) restore_step(done[0]);
  for (Parameter& p : model.parameters())
    distributed::broadcast(std::as_writable_bytes(p.value.values()), 0);
  optimizer.scatter();
}

void take_initial_weights(TrainState& state) {
  const std::string& from = state.config.train.init_from;
  if (from.empty()) return;
  const NameScope scope("train.init_from");
  const Checkpoint weights(find_checkpoint(from));
  require_same_tokenizer(weights.path(), tokens_of(weights), state.data->tokenizer());
  weights.load(state.model.parameters(), nullptr);
  state.origin = {weights.path(), weights.meta().step, weights.digest()};
}

void restore_start(TrainState& state, const RunDir& run) {
  const auto &env = run.env, now = state.data->info();
  nlohmann::json recorded = nlohmann::json::object();  // without the best achievable loss
  for (const auto& [key, value] : now.items())
    if (env.at("data").contains(key)) recorded[key] = env.at("data").at(key);
  require_same_data(*state.data, recorded, run.dir / "env.json");
  take_initial_weights(state);
  const std::optional<WeightsOrigin>& origin = state.origin;
  if (!origin) return;
  const std::string was = env.at("init_from").at("xxh3_128");
  if (origin->digest == was) return;
  throw DataError(fmt::format(
      "{}: changed since {} began: its digest was {}, but is {}; restore the file, or start a new "
      "run with another --out",
      origin->checkpoint.string(), run.dir.string(), was, origin->digest));
}

void resume(TrainState& state, const RunDir& run) {
  if (newest_step(run.dir) > 0) {
    state.restore(find_checkpoint(run.dir));
  } else {
    require_continued(run.config, state.config, run.dir);
    restore_start(state, run);
  }
  if (state.step > 0 || fs::exists(run.metrics_file()))
    truncate_metrics(run.metrics_file(), state.step);
}

}  // namespace difftape::run
