#include "train/run/config/writer.h"

#include <concepts>

#include "layers/attention/attention.h"
#include "tests/train/run/config/config_files.h"
#include "train/run/config/sweep_settings.h"

namespace difftape::run {
namespace {

using ConfigWriter = ConfigFiles;

/// Returns a valid configuration in which every key differs from its default, except keys that
/// exclude others.
Config unusual() {
  Config c;
  c.run = {"a: b #c", "an arm", 12345678901234567, "out 'x' \"y\"/é", "0123456789abcdef"};
  c.model = {.d_model = 96,
             .num_layers = 3,
             .num_heads = 6,
             .num_kv_heads = 2,
             .head_dim = 18,
             .d_ff = 100,
             .max_seq_len = 300,
             .vocab_size = 512,
             .rope = false,
             .rope_theta = 1e300,
             .norm_eps = 1.0 / 3,
             .tie_word_embeddings = true,
             .match_params = true,
             .embedding_norm = true,
             .z_loss_weight = 1e-4,
             .final_logit_softcap = 30,
             .moe = {.num_experts = 6,
                     .num_experts_per_tok = 3,
                     .num_shared_experts = 1,
                     .moe_intermediate_size = 20,
                     .scoring_func = RouterScore::sigmoid,
                     .norm_topk_prob = false,
                     .router_aux_loss_coef = 1e-3,
                     .router_z_loss_coef = 1e-4,
                     .router_bias_update_rate = 1e-5},
             .attention = {.kind = "diff_v2",
                           .pairing = Pairing::split_half,
                           .lambda = LambdaKind::exponential,
                           .lambda_init = LambdaInit::constant,
                           .lambda_init_value = 0.3,
                           .softmax_denominator = SoftmaxDenominator::sink,
                           .subln = false,
                           .gate = Gate::head,
                           .qk_norm = true,
                           .attn_logit_softcap = 50,
                           .block_size = 48,
                           .num_selected_blocks = 3,
                           .block_selection = BlockSelection::separately},
             .init = {InitPreset::torch, 0.7, ProjectionStd{1, true}, false}};
  c.data = {DataKind::text, {"null", "1.5", "a, b]", "true"}, {"v.txt"}, 299, 7, 5, 0.1 + 0.2};
  c.data.needles = {.cities = 63, .facts = {3, 1}, .queries = {2, 1}, .digits = 2, .filler = 17};
  c.data.mqar = {.keys = 62, .values = 65, .pairs = 5, .gap_power = 0.5};
  c.data.backcopy = {.symbols = 20, .triggers = 1};
  c.optim = {.name = OptimizerKind::lion,
             .lr = 1e-3 + DBL_EPSILON,
             .min_lr = 5e-324,
             .schedule = ScheduleKind::linear,
             .warmup_steps = 1,
             .decay_fraction = 1,
             .weight_decay = 0,
             .independent_weight_decay = false,
             .decay_embeddings = true,
             .betas = {0, 0.999999999999999},
             .eps = 1.2345678901234567e-30,
             .momentum = 0,
             .max_grad_norm = DBL_MAX};
  c.train = {.steps = 1000000,
             .eval_interval = 0,
             .eval_batches = 1,
             .final_eval_batches = 7,
             .checkpoint_interval = 3,
             .keep_last = 2,
             .init_from = "/runs/old: one",
             .gradient_accumulation_steps = 2,
             .activation_checkpointing = ActivationCheckpointing::blocks,
             .precision = Precision::bf16_emulated,
             .gemm = Engine::portable,
             .flush_subnormals = false,
             .gradient_ramp = 2.5};
  c.log = {.param_grad_norms_interval = 3,
           .diagnostics_interval = 7,
           .diagnostics_sequences = 5,
           .tensorboard = true};
  return c;
}

TEST_F(ConfigWriter, yaml_reads_back_to_the_identical_configuration) {
  const Config before = unusual();
  const Config after = config_from_yaml(to_yaml(before), "a.yaml");
  for (const Field& field : fields()) {
    EXPECT_EQ(field.get(before), field.get(after)) << field.key;
    if (field.key != "data.type" && field.key != "model.attention.qk_clip_threshold" &&
        field.key != "model.attention.sliding_window" && field.key != "model.yoco_self_layers" &&
        !field.key.starts_with("model.rope_scaling.")) {
      EXPECT_NE(field.get(before), field.get(Config())) << field.key << " is not tested";
    }
  }
}

TEST_F(ConfigWriter, yaml_of_mutually_exclusive_keys_reads_back_too) {
  Config before;
  before.model.attention.qk_clip_threshold = 100.5;
  before.model.attention.sliding_window = 77;
  before.model.yoco_self_layers = 2;
  before.model.rope_scaling = {.rope_type = RopeScalingKind::yarn,
                               .factor = 2.5,
                               .original_seq_len = 100,
                               .attention_factor = 1.25};
  const Config after = config(to_yaml(before));
  for (const Field& field : fields()) EXPECT_EQ(field.get(before), field.get(after)) << field.key;
}

TEST_F(ConfigWriter, yaml_with_origins_runs_as_is_too) {
  const ResolvedConfig resolved = {unusual(), {}};
  const Config again = config_from_yaml(to_yaml_with_origins(resolved), "a.yaml");
  EXPECT_EQ(to_yaml(again), to_yaml(unusual()));
}

TEST_F(ConfigWriter, numbers_look_like_numbers_to_every_yaml_reader) {
  EXPECT_THAT(to_yaml(Config()), HasSubstr("norm_eps: 1.0e-05\n"));
  EXPECT_THAT(to_yaml(Config()), HasSubstr("betas: [0.9, 0.95]\n"));
  EXPECT_THAT(to_yaml(unusual()), HasSubstr("path: [\"null\", \"1.5\", \"a, b]\", \"true\"]\n"));
}

TEST_F(ConfigWriter, origins_follow_every_value) {
  write("base.yaml", "optim.lr: 0.002\n");
  write("a.yaml", "base: base.yaml\nmodel:\n  attention: {kind: diff_v2}\n");
  const std::string text = to_yaml_with_origins(load_config("a.yaml", {"train.steps=77"}));
  EXPECT_THAT(text, HasSubstr("\n  lr: 0.002                     # base.yaml:1\n"));
  EXPECT_THAT(text, HasSubstr("\n    kind: diff_v2               # a.yaml:3\n"));
  EXPECT_THAT(text, HasSubstr("\n  steps: 77                     # --set\n"));
  EXPECT_THAT(text, HasSubstr("\n  seed: 1                       # default\n"));
}

TEST(ConfigFields, keys_are_unique_documented_and_their_defaults_are_allowed) {
  std::set<std::string> keys;
  const auto check = [&](const KeyInfo& key) {
    EXPECT_TRUE(keys.insert(key.key).second) << key.key;
    EXPECT_THAT(key.help, EndsWith(".")) << key.key;
  };
  for (const Field& field : fields()) check(field);
  for (const SweepField& field : sweep_fields()) check(field);
  EXPECT_NO_THROW(config_from_yaml(to_yaml(Config()), "defaults"));
}

/// Returns the keys with the prefix `begin` that have one of the flags, or none of them.
std::vector<std::string> keys_of(const char* begin, unsigned flags, bool with) {
  std::vector<std::string> keys;
  for (const Field& field : fields())
    if (field.key.starts_with(begin) && has_flag(field.key, flags) == with)
      keys.push_back(field.key);
  return keys;
}

TEST(ConfigFields, have_flags_that_classify_each_key) {
  using Keys = std::vector<std::string>;
  const Keys paths{"data.path", "data.val_path"};
  EXPECT_EQ(keys_of("", kOfResult, false),
            (Keys{"run.out", "run.claims", "train.checkpoint_interval", "train.keep_last",
                  "train.activation_checkpointing", "log.tensorboard"}));
  EXPECT_EQ(keys_of("run.", kOfNumbers, true), Keys{"run.seed"});
  EXPECT_EQ(keys_of("data.", kOfNumbers, false), paths);
  EXPECT_EQ(keys_of("log.", kOfNumbers, true),
            (Keys{"log.diagnostics_interval", "log.diagnostics_sequences"}));
  for (const std::string& key : keys_of("", kOfNumbers, true))
    EXPECT_TRUE(has_flag(key, kOfResult));
  EXPECT_EQ(keys_of("data.", kOfTask, false), paths);
  EXPECT_EQ(keys_of("train.", kOfTask, true),
            (Keys{"train.steps", "train.gradient_accumulation_steps"}));
  EXPECT_EQ(keys_of("model.", kOfTask, true), Keys{"model.vocab_size"});
  EXPECT_EQ(keys_of("optim.", kOfArm, false), (Keys{"optim.lr", "optim.min_lr"}));
  EXPECT_EQ(keys_of("train.", kOfArm, false), Keys{"train.checkpoint_interval"});
  EXPECT_EQ(keys_of("data.", kOfArm, false), paths);
  EXPECT_EQ(keys_of("", kOfSweep, true), keys_of("run.", kOfSweep, true));
  EXPECT_EQ(keys_of("", kNamesRun, true), (Keys{"run.name", "run.arm", "run.out"}));
  EXPECT_EQ(keys_of("", kNamesData, true), paths);
}

TEST(ConfigFields, of_another_version_have_the_flags_of_their_section) {
  EXPECT_TRUE(has_flag("data.kind", kOfTask));
  EXPECT_TRUE(has_flag("log.spike_sigma", kOfResult));
  EXPECT_FALSE(has_flag("log.spike_sigma", kOfArm));
  EXPECT_TRUE(has_flag("sweep.seeds", kOfSweep));
  EXPECT_TRUE(has_flag("model.rope_scaling", kBesideModel));
}

TEST(ConfigDifferences, are_the_keys_with_the_flags_in_the_order_of_the_registry) {
  Config a, b;
  EXPECT_TRUE(differences(a, b).empty());
  b.optim.lr = 1.5;
  b.run.name = "other";
  b.data.path = {"a.txt"};
  const auto all = differences(a, b), numbers = differences(a, b, kOfNumbers);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].key, "run.name");
  EXPECT_EQ(all[0].a, "run");
  EXPECT_EQ(all[0].b, "other");
  EXPECT_EQ(all[1].key, "data.path");
  ASSERT_EQ(numbers.size(), 1u);
  EXPECT_EQ(numbers[0].key, "optim.lr");
  EXPECT_EQ(numbers[0].b, "1.5");
}

/// Converts to any member of an aggregate, except to types with a converting constructor. Never
/// runs.
struct AnyMember {
  template <class T>
  requires(!std::same_as<T, AttentionKind> && !requires(T t) { t.has_value(); }) operator T()
      const {
    std::abort();
  }
};

/// Number of members of an aggregate.
template <class T, class... Members>
constexpr size_t member_count() {
  if constexpr (requires { T{Members{}..., AnyMember{}}; })
    return member_count<T, Members..., AnyMember>();
  else
    return sizeof...(Members);
}

/// Number of keys and sections directly within a section.
size_t entries_of(const std::string& section) {
  std::set<std::string> names;
  const auto count = [&](const KeyInfo& key) {
    if (!key.key.starts_with(section + ".")) return;
    const std::string rest = key.key.substr(section.size() + 1);
    names.insert(rest.substr(0, rest.find('.')));
  };
  for (const Field& field : fields()) count(field);
  for (const SweepField& field : sweep_fields()) count(field);
  return names.size();
}

TEST(ConfigFields, every_member_of_every_struct_has_a_key) {
  EXPECT_EQ(entries_of("run"), member_count<RunConfig>());
  EXPECT_EQ(entries_of("model"), member_count<ModelConfig>());
  EXPECT_EQ(entries_of("model.attention"), member_count<AttentionConfig>());
  EXPECT_EQ(entries_of("model.init"), member_count<InitConfig>());
  EXPECT_EQ(entries_of("data"), member_count<DataConfig>());
  EXPECT_EQ(entries_of("data.needles"), member_count<NeedlesConfig>());
  EXPECT_EQ(entries_of("data.mqar"), member_count<MqarConfig>());
  EXPECT_EQ(entries_of("data.backcopy"), member_count<BackcopyConfig>());
  EXPECT_EQ(entries_of("sweep"), member_count<SweepSettings>());
  EXPECT_EQ(entries_of("optim"), member_count<OptimConfig>());
  EXPECT_EQ(entries_of("train"), member_count<TrainConfig>());
  EXPECT_EQ(entries_of("log"), member_count<LogConfig>());
  EXPECT_EQ(member_count<Config>(), 6u);
}

TEST(ConfigFields, the_attention_kinds_equal_the_kinds_in_layers) {
  EXPECT_EQ(find_field("model.attention.kind")->spec.constraint.names, attention_kinds());
  EXPECT_EQ(find_field("model.attention"), nullptr);
}

TEST(ConfigSchema, describes_the_nested_yaml) {
  const auto schema = nlohmann::json::parse(config_schema());
  EXPECT_EQ(schema["$schema"], "http://json-schema.org/draft-07/schema#");
  EXPECT_EQ(schema["additionalProperties"], false);
  const auto& model = schema["properties"]["model"];
  EXPECT_EQ(model["additionalProperties"], false);
  EXPECT_EQ(model["properties"]["attention"]["properties"]["kind"]["enum"],
            nlohmann::json(attention_kinds()));
  const nlohmann::json layers = {{"type", "integer"},
                                 {"minimum", 1},
                                 {"maximum", 1024},
                                 {"default", 4},
                                 {"description", "Number of transformer blocks. Unit: layers."}};
  EXPECT_EQ(model["properties"]["num_layers"], layers);
  const auto& optim = schema["properties"]["optim"]["properties"];
  EXPECT_EQ(optim["lr"]["exclusiveMinimum"], 0);
  EXPECT_EQ(optim["betas"]["minItems"], 2);
  EXPECT_EQ(optim["betas"]["maxItems"], 2);
  EXPECT_EQ(optim["betas"]["items"]["exclusiveMaximum"], 1);
  EXPECT_EQ(optim["decay_embeddings"]["type"], "boolean");
  const auto& path = schema["properties"]["data"]["properties"]["path"];
  EXPECT_EQ(path["anyOf"][0]["type"], "string");
  EXPECT_EQ(path["anyOf"][1]["items"]["type"], "string");
}

}  // namespace
}  // namespace difftape::run
