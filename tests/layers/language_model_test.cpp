#include "layers/language_model.h"

#include "autograd/gradcheck/op_cases.h"
#include "core/error.h"
#include "core/pool.h"
#include "layers/cost.h"
#include "layers/model_rules.h"
#include "tests/layers/tokens.h"
#include "tests/support/tensors.h"

namespace difftape {
namespace {

ModelConfig config_of(const std::string& kind) {
  ModelConfig config;
  config.d_model = 32;
  config.num_layers = 2;
  config.num_heads = 4;
  config.num_kv_heads = 2;
  config.d_ff = 88;
  config.max_seq_len = 16;
  config.vocab_size = 50;
  config.attention.kind = kind;
  config.init.preset = InitPreset::gpt2;  // a loss at init of log(vocab_size)
  return config;
}

std::map<std::string, std::string> shapes(const ModelConfig& config) {
  const LanguageModel model(config);
  std::map<std::string, std::string> result;
  for (const Parameter& p : model.parameters()) result[p.name] = p.shape.str();
  return result;
}

TEST(LanguageModel, has_the_names_and_shapes_of_llama) {
  const std::map<std::string, std::string> of_layer{
      {"input_layernorm", "(32)"},      {"self_attn.q_proj", "(32, 32)"},
      {"self_attn.k_proj", "(16, 32)"}, {"self_attn.v_proj", "(16, 32)"},
      {"self_attn.o_proj", "(32, 32)"}, {"post_attention_layernorm", "(32)"},
      {"mlp.gate_proj", "(88, 32)"},    {"mlp.up_proj", "(88, 32)"},
      {"mlp.down_proj", "(32, 88)"}};
  std::map<std::string, std::string> expected{{"model.embed_tokens.weight", "(50, 32)"},
                                              {"model.norm.weight", "(32)"},
                                              {"lm_head.weight", "(50, 32)"}};
  for (const auto& [name, shape] : of_layer) {
    for (const char* layer : {"0", "1"}) {
      expected[fmt::format("model.layers.{}.{}.weight", layer, name)] = shape;
    }
  }
  EXPECT_EQ(shapes(config_of("softmax")), expected);
}

TEST(ParameterCount, is_the_count_of_the_declared_parameters) {
  int counted = 0;
  for (const std::string& kind : attention_kinds()) {
    for (const Index experts : {0, 5}) {
      for (const Index self_layers : {0, 3}) {
        for (const bool match : {false, true}) {
          ModelConfig config = config_of(kind);
          config.num_layers = 7;
          config.tie_word_embeddings = match;
          config.match_params = match;
          config.yoco_self_layers = self_layers;
          if (self_layers > 0) config.attention.sliding_window = 4;
          config.moe = {.num_experts = experts,
                        .num_experts_per_tok = 3,
                        .num_shared_experts = experts / 5,
                        .moe_intermediate_size = 40,
                        .router_bias_update_rate = match ? 0.1 : 0};
          if (!broken_rules(config).empty()) continue;
          EXPECT_EQ(parameter_count(config),
                    static_cast<double>(LanguageModel(config).parameters().count()))
              << kind << " " << experts << " " << self_layers << " " << match;
          ++counted;
        }
      }
    }
  }
  EXPECT_GT(counted, 50);
}

// The sizes of q, k, v, o, the norms, the router and the experts of a layer, by hand.
TEST(ParameterCount, of_sizes_that_no_machine_has_takes_no_time) {
  ModelConfig config = config_of("softmax");
  config.num_layers = config.moe.num_experts = 1'000'000'000;
  config.moe.moe_intermediate_size = 40;
  const double layer = 32. * 32 + 2 * 16 * 32 + 32 * 32 + 2 * 32 + 1e9 * (32 + 3. * 32 * 40);
  EXPECT_NEAR(parameter_count(config) / (1e9 * layer), 1, 1e-12);
}

TEST(LanguageModel, tensors_that_variants_share_start_byte_identical) {
  LanguageModel softmax(config_of("softmax")), v1(config_of("diff_v1")), v2(config_of("diff_v2"));
  for (LanguageModel* model : {&softmax, &v1, &v2}) model->parameters().initialize(3);
  int shared = 0;
  for (const Parameter& p : softmax.parameters()) {
    for (LanguageModel* model : {&v1, &v2}) {
      const Parameter* other = model->parameters().find(p.name);
      ASSERT_NE(other, nullptr) << p.name;
      if (other->shape != p.shape) continue;
      EXPECT_TRUE(test::same(p.value, other->value)) << p.name;
      ++shared;
    }
  }
  EXPECT_EQ(shared, 2 * 21 - 2) << "all but V2's two q_proj";
}

TEST(LanguageModel, initial_loss_equals_a_uniform_guess) {
  for (const std::string& kind : attention_kinds()) {
    LanguageModel model(config_of(kind));
    model.parameters().initialize(1);
    Tape tape;
    EXPECT_NEAR(model.loss(tape, {kTokens, 2, 4}, kTargets).value().item(), std::log(50.0), 0.05);
  }
}

TEST(LanguageModel, every_op_of_every_variant_has_a_gradcheck_case) {
  std::set<std::string> covered;
  for (const OpCase& c : op_cases()) covered.insert(c.op);
  for (const std::string& kind : attention_kinds()) {
    LanguageModel model(config_of(kind));
    model.parameters().initialize(1);
    Tape tape;
    model.loss(tape, {kTokens, 2, 4}, kTargets);
    EXPECT_GT(tape.ops().size(), 20u);
    for (const std::string& op : tape.ops()) EXPECT_TRUE(covered.contains(op)) << op;
  }
}

TEST(LanguageModel, the_system_allocates_nothing_after_the_second_step) {
  for (const std::string& kind : attention_kinds()) {
    LanguageModel model(config_of(kind));
    model.parameters().initialize(1);
    const auto step = [&] {
      for (Parameter& p : model.parameters()) p.zero_grad();
      Tape tape;
      tape.backward(model.loss(tape, {kTokens, 2, 4}, kTargets));
    };
    step();
    step();
    const auto before = pool::stats().system_allocations;
    for (int i = 0; i < 3; ++i) step();
    EXPECT_EQ(pool::stats().system_allocations, before) << kind;
  }
}

TEST(LanguageModel, rejects_sizes_that_no_model_has_and_names_all) {
  const auto message = [](auto change) {
    ModelConfig config = config_of("diff_v1");
    change(config);
    try {
      static_cast<void>(LanguageModel(config));
    } catch (const ConfigError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(message([](ModelConfig&) {}), "accepted");
  EXPECT_EQ(message([](ModelConfig& c) { c.num_heads = c.num_kv_heads = 1; }),
            "model.num_heads: diff_v1 pairs the heads of the baseline, but num_heads is 1; need an "
            "even number. num_heads counts the heads of the softmax baseline for every kind");
  EXPECT_THAT(message([](ModelConfig& c) { c.num_kv_heads = 3; }),
              AllOf(HasSubstr("num_kv_heads 3 does not divide num_heads 4"),
                    HasSubstr("\nmodel.num_kv_heads: diff_v1 pairs the key and value heads")));
  EXPECT_THAT(message([](ModelConfig& c) { c.head_dim = 5; }), HasSubstr("head_dim is 5; need"));
  EXPECT_THAT(message([](ModelConfig& c) { c.num_heads = 0, c.vocab_size = -1; }),
              AllOf(HasSubstr("model.num_heads: num_heads is 0; need 1 or more\n"),
                    HasSubstr("model.vocab_size: vocab_size is -1; need 1 or more")));
  EXPECT_THAT(message([](ModelConfig& c) { c.moe = {.num_experts = 2, .num_experts_per_tok = 3}; }),
              AllOf(HasSubstr("experts need a size"), HasSubstr("cannot choose 3 of 2 experts")));
  EXPECT_THAT(message([](ModelConfig& c) { c.attention.block_size = 20; }),
              HasSubstr("must be a multiple of 16; write 32"));
}

TEST(LanguageModel, errors_name_the_layer_they_happened_in) {
  LanguageModel model(config_of("softmax"));
  model.parameters().initialize(1);
  const std::vector<std::int32_t> long_row(17, 1);
  Tape tape;
  EXPECT_THAT(
      [&] {
        model.loss(tape, {long_row, 1, 17}, long_row);
      },
      ThrowsMessage<ShapeError>(EndsWith("\nin model.layers.0.self_attn")));
}

TEST(Match, brings_the_parameters_within_one_unit_of_the_baseline) {
  ModelConfig config = config_of("diff_v2");
  config.d_model = 128;
  config.head_dim = 32;
  config.d_ff = 344;
  config.match_params = true;
  ModelConfig baseline = config;
  baseline.attention.kind = "softmax";
  const Index matched_count = LanguageModel(config).parameters().count();
  const Index target = LanguageModel(baseline).parameters().count();
  EXPECT_EQ(LanguageModel(baseline).config().d_ff, 344);
  EXPECT_EQ(LanguageModel(config).config().d_ff % 4, 0);
  EXPECT_LE(std::abs(matched_count - target), 2 * 3 * 128 * 2);
}

TEST(Match, keeps_a_d_ff_that_is_already_nearest) {
  ModelConfig config = config_of("sink");
  config.d_ff = 82;  // sinks are 8 numbers, a unit of d_ff 192
  config.match_params = true;
  EXPECT_EQ(LanguageModel(config).config().d_ff, 82);
}

TEST(Match, fails_if_nothing_is_left_for_the_feed_forward_layers) {
  ModelConfig config = config_of("diff_v2");
  config.d_ff = 4;
  config.match_params = true;
  EXPECT_THAT(
      [&] { LanguageModel model(config); },
      ThrowsMessage<ConfigError>(HasSubstr("raise model.d_ff or set model.match_params: false")));
}

TEST(Cost, counts_parameters_by_component_and_work_by_hand) {
  const ModelCost cost = model_cost(config_of("softmax"), 16);
  Index total = 0;
  for (const auto& [name, count] : cost.parameters) total += count;
  EXPECT_EQ(total, cost.total_parameters);
  const double weights = 2.0 * (32 * 32 * 2 + 16 * 32 * 2 + 3 * 88 * 32) + 50 * 32;
  // Forward: 4 heads, T/2 keys on average, 2 products of width 8, 2 operations; backward twice it.
  const double attention = 3.0 * 2 * 4 * 8 * (2 * 8) * 2;
  EXPECT_DOUBLE_EQ(cost.attention_flops_per_token, attention);
  EXPECT_DOUBLE_EQ(cost.train_flops_per_token, 6 * weights + attention);
  EXPECT_DOUBLE_EQ(cost.attention_projection_flops_per_token,
                   6 * 2.0 * (32 * 32 * 2 + 16 * 32 * 2));
  EXPECT_EQ(cost.kv_cache_per_token, 2 * 2 * 2 * 8);
}

TEST(Cost, counts_the_parts_of_attention_of_each_kind_by_hand) {
  using Counts = std::map<std::string, Index>;
  const auto parts = [](const char* kind) {
    const ModelCost cost = model_cost(config_of(kind), 16);
    return Counts(cost.attention_parameters.begin(), cost.attention_parameters.end());
  };
  const Index square = 2 * 32 * 32, half = 2 * 16 * 32;
  EXPECT_EQ(parts("softmax"),
            (Counts{{"q_proj", square}, {"k_proj", half}, {"v_proj", half}, {"o_proj", square}}));
  EXPECT_EQ(parts("diff_v1"), (Counts{{"q_proj", square},
                                      {"k_proj", half},
                                      {"v_proj", half},
                                      {"o_proj", square},
                                      {"lambda", 2 * 4 * 8},
                                      {"subln", 2 * 16}}));
  EXPECT_EQ(parts("diff_v2"), (Counts{{"q_proj", 2 * square},
                                      {"k_proj", half},
                                      {"v_proj", half},
                                      {"o_proj", square},
                                      {"lambda", 2 * 4 * 32}}));
}

TEST(Cost, of_tied_embeddings_has_no_head_and_keeps_the_components_in_order) {
  ModelConfig config = config_of("softmax");
  config.tie_word_embeddings = true;
  const ModelCost::Counts expected{{"embedding", 50 * 32},
                                   {"attention", 2 * (32 * 32 * 2 + 16 * 32 * 2)},
                                   {"mlp", 2 * 3 * 88 * 32},
                                   {"norms", 5 * 32},
                                   {"head", 0}};
  EXPECT_EQ(model_cost(config, 16).parameters, expected);
}

TEST(Cost, counts_two_products_with_v_if_maps_read_different_values) {
  ModelConfig config = config_of("diff_v2");
  const double shared = model_cost(config, 16).attention_flops_per_token;
  config.attention.pairing = Pairing::split_half;
  EXPECT_DOUBLE_EQ(model_cost(config, 16).attention_flops_per_token, shared * 4 / 3);
}

TEST(Cost, counts_the_keys_that_a_window_leaves) {
  ModelConfig config = config_of("softmax");
  const double all = model_cost(config, 16).attention_flops_per_token;
  config.attention.sliding_window = 4;  // 4 - 4 * 4 / (2 * 16) keys instead of 16 / 2
  EXPECT_DOUBLE_EQ(model_cost(config, 16).attention_flops_per_token, all * 3.5 / 8);
  config.attention.sliding_window = 100;
  EXPECT_DOUBLE_EQ(model_cost(config, 16).attention_flops_per_token, all);
}

TEST(Cost, counts_the_keys_of_the_blocks_that_are_read) {
  ModelConfig config = config_of("diff_v2");
  const double all = model_cost(config, 64).attention_flops_per_token;
  config.attention.block_size = 16;
  config.attention.num_selected_blocks = 4;
  EXPECT_DOUBLE_EQ(model_cost(config, 64).attention_flops_per_token, all) << "all blocks";
  config.attention.num_selected_blocks = 2;  // half of 4 own blocks and 3 others instead of 6
  EXPECT_DOUBLE_EQ(model_cost(config, 64).attention_flops_per_token, all * 5 / 8);
  // W v, a third of the work, reads up to 2 others for each block of queries: 1, 2, 2.
  config.attention.block_selection = BlockSelection::separately;
  EXPECT_DOUBLE_EQ(model_cost(config, 64).attention_flops_per_token,
                   all * (2.0 / 3 * 5 / 8 + 1.0 / 3 * 7 / 8));
}

TEST(Cost, counts_the_keys_of_a_window_in_the_blocks_that_are_read) {
  ModelConfig config = config_of("softmax");
  const double all = model_cost(config, 64).attention_flops_per_token;  // 64 * 32 keys
  config.attention.block_size = 16;
  config.attention.num_selected_blocks = 2;
  config.attention.sliding_window = 20;
  // The queries of a block but the first read 16.5, 17.5, 18.5, 19.5, and 12 times 20 keys.
  EXPECT_DOUBLE_EQ(model_cost(config, 64).attention_flops_per_token,
                   all * (16 * 8 + 3 * (72 + 12 * 20)) / (64 * 32));
}

}  // namespace
}  // namespace difftape
