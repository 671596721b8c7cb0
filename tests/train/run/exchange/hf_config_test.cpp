// Tests which models transformers can compute, and which of its models difftape can.
#include "train/run/exchange/hf_config.h"

#include "tests/layers/combinations.h"
#include "train/run/config/reader.h"

namespace difftape::run {
namespace {

using Json = nlohmann::json;

ModelConfig of_kind(const char* kind) {
  ModelConfig model;
  model.attention.kind = kind;
  return model;
}

/// Returns the key that prevents the export, if there is exactly one.
std::string key_in_the_way(const ModelConfig& model) {
  const std::vector<std::string> reasons = why_not_hf(model);
  EXPECT_EQ(reasons.size(), 1U) << testing::PrintToString(reasons);
  return reasons.empty() ? "" : reasons[0].substr(0, reasons[0].find(':'));
}

TEST(WhyNotHf, plain_kinds_of_one_or_two_maps_can_be_computed) {
  for (const char* kind : {"softmax", "softmax_2h", "diff_v1", "diff_v2"})
    EXPECT_THAT(why_not_hf(of_kind(kind)), IsEmpty()) << kind;
  ModelConfig trained = of_kind("diff_v2");
  trained.z_loss_weight = 1e-4;
  trained.attention.qk_clip_threshold = 100;
  trained.attention.pairing = Pairing::split_half;
  trained.attention.lambda = LambdaKind::raw;
  EXPECT_THAT(why_not_hf(trained), IsEmpty()) << "z-loss and QK-clip affect training only";
}

TEST(WhyNotHf, experts_are_supported_for_mixtral_only) {
  ModelConfig model = of_kind("softmax");
  model.moe = {.num_experts = 8, .moe_intermediate_size = 20, .router_aux_loss_coef = 0.02};
  EXPECT_THAT(why_not_hf(model), IsEmpty());
  const auto of = [&](auto change) {
    ModelConfig changed = model;
    change(changed);
    return key_in_the_way(changed);
  };
  EXPECT_EQ(of([](auto& m) { m.attention.kind = "diff_v2"; }), "model.attention.kind");
  EXPECT_EQ(of([](auto& m) { m.moe.scoring_func = RouterScore::sigmoid; }),
            "model.moe.scoring_func");
  EXPECT_EQ(of([](auto& m) { m.moe.norm_topk_prob = false; }), "model.moe.norm_topk_prob");
  EXPECT_EQ(of([](auto& m) { m.moe.num_shared_experts = 1; }), "model.moe.num_shared_experts");
  EXPECT_EQ(of([](auto& m) { m.moe.router_bias_update_rate = 1e-3; }),
            "model.moe.router_bias_update_rate");
  const auto json = hf_config(model, -1);
  EXPECT_EQ(json["model_type"], "mixtral");
  EXPECT_EQ(json["architectures"][0], "MixtralForCausalLM");
  EXPECT_EQ(json["num_local_experts"], 8);
  EXPECT_EQ(json["num_experts_per_tok"], 2);
  EXPECT_EQ(json["intermediate_size"], 20);
  EXPECT_TRUE(json["sliding_window"].is_null());
  EXPECT_EQ(hf_name("model.layers.3.mlp.gate.weight"),
            "model.layers.3.block_sparse_moe.gate.weight");
  EXPECT_EQ(hf_name("model.layers.3.mlp.experts.11.down_proj.weight"),
            "model.layers.3.block_sparse_moe.experts.11.w2.weight");
  EXPECT_EQ(hf_name("model.layers.3.mlp.down_proj.weight"), "model.layers.3.mlp.down_proj.weight");
}

TEST(WhyNotHf, names_each_key_that_prevents_the_export) {
  const auto changed = [](const char* kind, auto change) {
    ModelConfig model = of_kind(kind);
    change(model);
    return key_in_the_way(model);
  };
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    const auto of = [&](auto change) { return changed(kind, change); };
    EXPECT_EQ(of([](auto& m) { m.rope = false; }), "model.rope");
    EXPECT_EQ(of([](auto& m) { m.embedding_norm = true; }), "model.embedding_norm");
    EXPECT_EQ(of([](auto& m) { m.yoco_self_layers = 1; }), "model.yoco_self_layers");
    EXPECT_EQ(of([](auto& m) { m.final_logit_softcap = 30; }), "model.final_logit_softcap");
    EXPECT_EQ(of([](auto& m) { m.attention.attn_logit_softcap = 50; }),
              "model.attention.attn_logit_softcap");
    EXPECT_EQ(of([](auto& m) { m.attention.qk_norm = true; }), "model.attention.qk_norm");
    EXPECT_EQ(of([](auto& m) { m.attention.sliding_window = 8; }),
              "model.attention.sliding_window");
    EXPECT_EQ(of([](auto& m) { m.attention.block_size = 16; }), "model.attention.block_size");
    EXPECT_EQ(of([](auto& m) { m.attention.gate = Gate::head; }), "model.attention.gate");
    EXPECT_EQ(of([](auto& m) { m.attention.softmax_denominator = SoftmaxDenominator::sink; }),
              "model.attention.softmax_denominator");
  }
  EXPECT_EQ(key_in_the_way(of_kind("sink")), "model.attention.softmax_denominator");
  EXPECT_EQ(key_in_the_way(of_kind("gated")), "model.attention.gate");
  EXPECT_EQ(changed("softmax", [](auto& m) { m.attention.subln = true; }), "model.attention.subln");
  EXPECT_EQ(changed("softmax", [](auto& m) { m.head_dim = 16, m.d_model = 130; }), "model.d_model");
  EXPECT_EQ(changed("diff_v1", [](auto& m) { m.attention.subln = false; }),
            "model.attention.subln");
  EXPECT_EQ(changed("diff_v1", [](auto& m) { m.attention.lambda_init = LambdaInit::constant; }),
            "model.attention.lambda_init");
  EXPECT_EQ(changed("diff_v1", [](auto& m) { m.attention.lambda = LambdaKind::sigmoid; }),
            "model.attention.lambda");
  EXPECT_EQ(changed("diff_v1", [](auto& m) { m.norm_eps = 1e-6; }), "model.norm_eps");
  EXPECT_EQ(changed("diff_v2", [](auto& m) { m.attention.lambda = LambdaKind::exponential; }),
            "model.attention.lambda");
  EXPECT_EQ(changed("diff_v2", [](auto& m) { m.attention.subln = true; }), "model.attention.subln");
}

TEST(WhyNotHf, accepts_only_models_that_config_json_can_express) {
  const ScratchDir dir;
  int let_through = 0;
  for (const std::string& kind : attention_kinds()) {
    for (const test::Combination& choice : test::all_combinations()) {
      ModelConfig model = of_kind(kind.c_str());
      model.attention = test::with(model.attention, choice);
      if (!model_conflicts(model).empty() || !why_not_hf(model).empty()) continue;
      put(dir / "config.json", hf_config(model, -1).dump());
      const ModelConfig found = config_of_hf(dir / "config.json", {}).model;
      AttentionFields expected = fields_of(model.attention);
      EXPECT_EQ(found.num_heads, std::exchange(expected.query_multiple, 1) * model.num_heads);
      EXPECT_EQ(fields_of(found.attention), expected) << kind;
      ++let_through;
    }
  }
  EXPECT_GT(let_through, 20);
}

TEST(HfConfig, contains_the_values_that_transformers_would_otherwise_assume) {
  ModelConfig model = of_kind("diff_v2");
  model.num_kv_heads = 2;
  model.rope_theta = 500;
  const Json json = hf_config(model, -1);
  EXPECT_EQ(json["model_type"], "difftape_v2");
  EXPECT_EQ(json["num_attention_heads"], 4);
  EXPECT_EQ(json["num_key_value_heads"], 2);
  EXPECT_EQ(json["head_dim"], 32);
  EXPECT_EQ(json["rms_norm_eps"], 1e-5);
  EXPECT_EQ(json["rope_parameters"]["rope_theta"], 500);
  EXPECT_TRUE(json["eos_token_id"].is_null()) << "of Llama it is 2";
  EXPECT_EQ(json["pairing"], "interleaved");
  EXPECT_EQ(json["lambda_rule"], "sigmoid");
  EXPECT_EQ(json["auto_map"]["AutoModelForCausalLM"], "modeling_difftape.DifftapeV2ForCausalLM");
  EXPECT_EQ(Json(hf_config(of_kind("softmax_2h"), 3))["num_attention_heads"], 8);
  EXPECT_EQ(Json(hf_config(of_kind("softmax_2h"), 3))["eos_token_id"], 3);
}

struct HfConfigReader : testing::Test {
  Config read(const Json& json) {
    put(dir / "config.json", json.dump());
    return config_of_hf(dir / "config.json", {});
  }
  std::string refusal(const Json& changes) {
    Json json = hf_config(of_kind("softmax"), -1);
    json.update(changes);
    return message_of<DataError>([&] { read(json); });
  }

  ScratchDir dir;
};

TEST_F(HfConfigReader, gives_the_model_that_was_written) {
  ModelConfig model = of_kind("diff_v2");
  model.num_kv_heads = 2;
  model.tie_word_embeddings = true;
  model.norm_eps = 1e-3;
  model.attention.pairing = Pairing::split_half;
  model.attention.lambda = LambdaKind::one;
  const ModelConfig found = read(hf_config(model, -1)).model;
  EXPECT_EQ(fields_of(found.attention), fields_of(model.attention));
  EXPECT_EQ(found.num_kv_heads, 2);
  EXPECT_EQ(found.norm_eps, 1e-3);
  EXPECT_TRUE(found.tie_word_embeddings);
  EXPECT_EQ(hf_config(found, -1), hf_config(model, -1));
}

TEST_F(HfConfigReader, gives_the_scaling_of_rope_that_was_written) {
  for (const RopeScaling& scaling :
       {RopeScaling{.rope_type = RopeScalingKind::linear, .factor = 8},
        RopeScaling{.rope_type = RopeScalingKind::yarn, .factor = 2.5, .original_seq_len = 40},
        RopeScaling{.rope_type = RopeScalingKind::yarn, .factor = 4, .attention_factor = 1.5}}) {
    ModelConfig model = of_kind("diff_v1");
    model.rope_scaling = scaling;
    const RopeScaling found = read(hf_config(model, -1)).model.rope_scaling;
    EXPECT_EQ(found.rope_type, scaling.rope_type);
    EXPECT_EQ(found.factor, scaling.factor);
    EXPECT_EQ(found.original_seq_len, scaling.rope_type == RopeScalingKind::yarn
                                          ? rope_rule(model).scaling.original_seq_len
                                          : 0);
    EXPECT_EQ(attention_factor_of(found), attention_factor_of(scaling));
  }
  ModelConfig ntk = of_kind("softmax");
  ntk.rope_scaling = {.rope_type = RopeScalingKind::ntk, .factor = 4};
  const ModelConfig found = read(hf_config(ntk, -1)).model;
  EXPECT_EQ(rope_frequencies(rope_rule(found), 32), rope_frequencies(rope_rule(ntk), 32));
}

TEST_F(HfConfigReader, knows_the_names_of_older_versions) {
  Json json = hf_config(of_kind("softmax"), -1);
  for (const char* key : {"rope_parameters", "head_dim", "num_key_value_heads"}) json.erase(key);
  json["rope_theta"] = 77;
  json["rope_scaling"] = nullptr;
  const ModelConfig found = read(json).model;
  EXPECT_EQ(found.rope_theta, 77);
  EXPECT_EQ(found.num_kv_heads, 4);
  EXPECT_EQ(found.head_dim, 32);
}

// The values of LlamaConfig(), MixtralConfig() and DiffLlamaConfig() in transformers 5.24.
TEST_F(HfConfigReader, takes_missing_keys_from_the_defaults_of_the_architecture) {
  const auto without = [&](const std::string& type) {
    ModelConfig model = of_kind(type == "diffllama" ? "diff_v1" : "softmax");
    model.num_heads = 8;
    model.num_kv_heads = 2;
    if (type == "mixtral") model.moe = {.num_experts = 4, .moe_intermediate_size = 8};
    Json json = hf_config(model, -1);
    EXPECT_EQ(json["model_type"], type);
    for (const char* key : {"rope_theta", "rope_parameters", "rms_norm_eps", "num_key_value_heads"})
      json.erase(key);
    const ModelConfig read_back = read(json).model;
    return std::tuple(read_back.rope_theta, read_back.norm_eps, read_back.num_kv_heads);
  };
  EXPECT_EQ(without("llama"), std::tuple(10000., 1e-6, 8));
  EXPECT_EQ(without("mixtral"), std::tuple(1e6, 1e-5, 8));
  EXPECT_EQ(without("diffllama"), std::tuple(10000., 1e-5, 8));
}

TEST_F(HfConfigReader, takes_the_length_from_the_architecture_and_knows_the_other_name_of_silu) {
  Json json = hf_config(of_kind("softmax"), -1);
  json.erase("max_position_embeddings");
  json["hidden_act"] = "swish";
  EXPECT_EQ(read(json).model.max_seq_len, 2048) << "as LlamaConfig()";
  ModelConfig model = of_kind("softmax");
  model.moe = {.num_experts = 4, .moe_intermediate_size = 8};
  json = hf_config(model, -1);
  json.erase("max_position_embeddings");
  EXPECT_EQ(read(json).model.max_seq_len, 131072) << "as MixtralConfig()";
}

// As LlamaConfig.from_pretrained of transformers 5.24 standardizes rope_parameters; the frequencies
// of such models differ by up to a factor of 4 otherwise.
TEST_F(HfConfigReader, reads_rope_where_transformers_does) {
  const auto rope = [&](const Json& changes) {
    Json json = hf_config(of_kind("softmax"), -1);
    json.erase("rope_theta");
    json.update(changes);
    const ModelConfig model = read(json).model;
    const RopeScaling& scaling = model.rope_scaling;
    return std::tuple(to_string(scaling.rope_type), scaling.factor, scaling.original_seq_len,
                      model.rope_theta);
  };
  const Json yarn{{"rope_type", "yarn"}, {"rope_theta", 500}, {"factor", 4}};
  EXPECT_EQ(rope({{"rope_parameters", yarn}, {"original_max_position_embeddings", 16}}),
            std::tuple("yarn", 4., 16, 500.));
  Json inner = yarn;
  inner["original_max_position_embeddings"] = 8;
  EXPECT_EQ(rope({{"rope_parameters", inner}, {"original_max_position_embeddings", 16}}),
            std::tuple("yarn", 4., 16, 500.));
  EXPECT_EQ(rope({{"rope_parameters", inner}}), std::tuple("yarn", 4., 8, 500.));
  const Json linear{{"type", "linear"}, {"factor", 2}};
  EXPECT_EQ(rope({{"rope_parameters", yarn}, {"rope_scaling", linear}}),
            std::tuple("linear", 2., 0, 10000.));
  EXPECT_EQ(rope({{"rope_parameters", yarn}, {"rope_scaling", {{"rope_type", "default"}}}}),
            std::tuple("none", 1., 0, 10000.));
  EXPECT_EQ(rope({{"rope_parameters", inner}, {"rope_scaling", Json::object()}}),
            std::tuple("yarn", 4., 8, 500.));
  EXPECT_EQ(rope({{"rope_parameters", {{"rope_type", "linear"}, {"factor", 1.0}}}}),
            std::tuple("none", 1., 0, 10000.));
}

TEST_F(HfConfigReader, names_every_unsupported_setting) {
  EXPECT_EQ(refusal(Json::object()), "");
  const std::string all = refusal({{"model_type", "gpt2"},
                                   {"hidden_act", "gelu"},
                                   {"attention_bias", true},
                                   {"hidden_size", "large"},
                                   {"rms_norm_eps", "small"},
                                   {"rope_parameters", {{"rope_type", "longrope"}}},
                                   {"quantization_config", Json::object()}});
  for (const char* line :
       {"model_type: is \"gpt2\", but must be one of llama, mixtral, diffllama, difftape_v2",
        "hidden_act: is \"gelu\", but must be \"silu\", the only supported value",
        "attention_bias: is true, but must be false, the only supported value",
        "hidden_size: is \"large\", but must be an integer of at least 1",
        "rms_norm_eps: is \"small\", but must be a number",
        "rope_parameters.rope_type: is \"longrope\", but must be \"default\", the only supported "
        "value",
        "quantization_config: is set, but quantized weights are not supported"})
    EXPECT_THAT(all, HasSubstr(std::string("\n  ") + line));
  EXPECT_THAT(all, Not(HasSubstr("mlp_bias")));
  EXPECT_THAT(
      refusal({{"model_type", "diffllama"}, {"rms_norm_eps", 1e-6}}),
      HasSubstr("rms_norm_eps: is 1e-06, but must be 1e-05, as in the per-head norm of V1"));
  EXPECT_THAT(refusal({{"model_type", "difftape_v2"}, {"pairing", "odd"}}),
              HasSubstr("pairing: is \"odd\", but must be one of interleaved, split_half"));
  EXPECT_THAT(refusal({{"rope_scaling", {{"type", "linear"}, {"factor", 0.5}}}}),
              HasSubstr("rope_scaling.factor: is 0.5, but must be a number of at least 1"));
  EXPECT_THAT(refusal({{"rope_scaling", {{"type", "yarn"}, {"factor", 4}, {"beta_fast", 16}}}}),
              HasSubstr("rope_scaling.beta_fast: is 16, but must be 32, the only supported value"));
  EXPECT_THAT(refusal({{"rope_scaling", "dynamic"}}),
              HasSubstr("rope_scaling: is \"dynamic\", but must be an object"));
  EXPECT_THAT(refusal({{"tie_word_embeddings", "yes"}}),
              HasSubstr("tie_word_embeddings: is \"yes\", but must be true or false"));
  put(dir / "config.json", "[]");
  EXPECT_THROW(config_of_hf(dir / "config.json", {}), DataError);
}

TEST_F(HfConfigReader, a_vocabulary_other_than_256_means_tokens) {
  Json json = hf_config(of_kind("softmax"), -1);
  json["vocab_size"] = 300;
  EXPECT_EQ(read(json).data.type, DataKind::tokens) << "without any, which only who reads needs";
  EXPECT_THAT(config_of_hf(dir / "config.json", {"data.path=tokens.bin"}).data.path,
              testing::SizeIs(1));
  json["num_key_value_heads"] = 3;
  EXPECT_THROW(read(json), ConfigError) << "does not divide 4";
}

}  // namespace
}  // namespace difftape::run
