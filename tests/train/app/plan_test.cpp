#include "train/app/plan.h"

#include <sys/resource.h>

#include "tests/support/sanitizer.h"
#include "tests/support/test.h"
#include "train/run/config/reader.h"

namespace difftape::app {
namespace {

const fs::path kConfigs = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "configs";

run::Config plan_7b() { return run::load_config(kConfigs / "plan/7b.yaml").config; }

/// Returns the cells of a row, found by its label without indentation.
std::vector<std::string> row(const system::Table& table, const std::string& label) {
  for (const auto& cells : table.rows)
    if (cells[0].substr(std::min(cells[0].find_first_not_of(' '), cells[0].size())) == label)
      return {cells.begin() + 1, cells.end()};
  return {"no row " + label};
}

/// Returns the cells of a row as numbers.
std::vector<double> numbers(const system::Table& table, const std::string& label) {
  std::vector<double> all;
  for (const std::string& cell : row(table, label)) all.push_back(std::stod(cell));
  return all;
}

TEST(Plan, of_a_7b_model_counts_every_component_as_by_hand) {
  const run::Config config = plan_7b();
  const system::Table table =
      plan_table(make_plan(config, {"softmax", "diff_v1", "diff_v2"}), config);
  const std::string square = system::grouped(32 * 4096 * 4096),
                    quarter = system::grouped(32 * 1024 * 4096);
  EXPECT_THAT(row(table, "embedding"), ElementsAre("131,072,000", "131,072,000", "131,072,000"));
  EXPECT_THAT(row(table, "head"), ElementsAre("131,072,000", "131,072,000", "131,072,000"));
  EXPECT_THAT(row(table, "q_proj"), ElementsAre(square, square, system::grouped(32 * 8192 * 4096)));
  EXPECT_THAT(row(table, "k_proj"), ElementsAre(quarter, quarter, quarter));
  EXPECT_THAT(row(table, "v_proj"), ElementsAre(quarter, quarter, quarter));
  EXPECT_THAT(row(table, "o_proj"), ElementsAre(square, square, square));
  EXPECT_THAT(row(table, "lambda"),
              ElementsAre("-", system::grouped(32 * 4 * 128), system::grouped(32 * 32 * 4096)));
  EXPECT_THAT(row(table, "subln"), ElementsAre("-", system::grouped(32 * 256), "-"));
  EXPECT_THAT(row(table, "mlp"),
              testing::Each(system::grouped(32 * 3 * 4096 * static_cast<Index>(14336))));
  EXPECT_THAT(row(table, "norms"), testing::Each(system::grouped((2 * 32 + 1) * 4096)));
  EXPECT_THAT(row(table, "parameters"),
              ElementsAre("7,241,732,096", "7,241,756,672", "7,782,797,312"));
}

// The lesson on V2 for hidden 4096, 32 heads of 128, 32 layers: V2 adds about hidden * hidden
// parameters per attention block, V1 next to nothing, and 8 key-value heads keep one cache.
TEST(Plan, of_a_7b_model_reproduces_the_accounting_of_v1_and_v2) {
  run::Config config = plan_7b();
  const auto table_of = [&](Index kv_heads) {
    config.model.num_kv_heads = kv_heads;
    return plan_table(make_plan(config, {"softmax", "diff_v1", "diff_v2"}), config);
  };
  const Index of_v1 = 32 * (4 * 128 + 256), of_v2 = 32 * (4096 * 4096 + 32 * 4096);
  for (const auto& [kv_heads, softmax] :
       {std::pair<Index, Index>{8, 7'241'732'096}, {32, 8'047'038'464}}) {
    const system::Table table = table_of(kv_heads);
    EXPECT_THAT(row(table, "parameters"),
                ElementsAre(system::grouped(softmax), system::grouped(softmax + of_v1),
                            system::grouped(softmax + of_v2)));
    EXPECT_THAT(row(table, "KV cache per token, bytes"),
                testing::Each(system::grouped(32 * 2 * kv_heads * 128 * Index{sizeof(real)})));
  }
  const system::Table table = table_of(8);
  EXPECT_THAT(row(table, "against softmax"), ElementsAre("-", "+0.0 %", "+7.5 %"));
  // 6 times the weights, and 3 * 32 layers * 4096 keys * (maps * 128 + value width) per head.
  EXPECT_THAT(row(table, "training MFLOP per token"),
              ElementsAre("45883.589", "45883.589", "50740.593"));
  EXPECT_THAT(row(table, "of which attention scores and values"),
              ElementsAre("3221.225", "3221.225", "4831.838"));
  EXPECT_THAT(row(table, "of which attention projections"),
              ElementsAre("8053.064", "8053.064", "11299.455"));
}

TEST(Plan, of_a_cross_decoder_has_one_cache_for_it_and_reads_a_prompt_with_less_work) {
  run::Config config = plan_7b();
  config.model.yoco_self_layers = 16;
  config.model.attention.sliding_window = 512;
  config.data.seq_len = config.model.max_seq_len;
  const system::Table table = plan_table(make_plan(config, {"diff_v2"}), config);
  const Index bytes = (16 + 1) * 2 * 8 * 128 * static_cast<Index>(sizeof(real));
  EXPECT_THAT(row(table, "KV cache per token, bytes"), ElementsAre(system::grouped(bytes)));
  EXPECT_THAT(row(table, "k_proj"), ElementsAre(system::grouped((16 + 1) * 1024 * 4096)));
  const auto prefill = [&](const run::Config& of) {
    const std::string label = fmt::format("prefill of {} tokens, GFLOP", of.data.seq_len);
    return std::stod(row(plan_table(make_plan(of, {"diff_v2"}), of), label).at(0));
  };
  run::Config plain = config;
  plain.model.yoco_self_layers = plain.model.attention.sliding_window = 0;
  EXPECT_LT(prefill(config), 0.52 * prefill(plain));
}

TEST(Plan, compares_attention_with_softmax_and_softmax_2h_if_planned) {
  const run::Config config = plan_7b();
  Plan plan = make_plan(config, {"softmax", "diff_v2"});
  system::Table table = plan_table(plan, config);
  EXPECT_THAT(row(table, "against softmax"), ElementsAre("-", "+7.5 %")) << "the whole model";
  EXPECT_THAT(row(table, "against softmax_2h"), ElementsAre("no row against softmax_2h"));
  // Twice the heads of the same width is the attention of softmax_2h.
  ModelConfig twice = config.model;
  twice.num_heads *= 2;
  plan.kinds.push_back({"softmax_2h", model_cost(twice, config.data.seq_len)});
  table = plan_table(plan, config);
  // q, k, v, o in units of 4096^2: 2 + 1/4 + 1/4 + 2 against softmax's 2.5 and V2's 3.5 + 1/128.
  EXPECT_THAT(row(table, "against softmax_2h"), ElementsAre("-44.4 %", "-22.0 %", "-"));
}

TEST(Plan, of_experts_counts_total_and_active_parameters_and_active_work) {
  run::Config config = plan_7b();
  const system::Table dense = plan_table(make_plan(config, {"softmax"}), config);
  EXPECT_THAT(row(dense, "active per token"), ElementsAre("no row active per token"));
  config.model.moe = {.num_experts = 8,
                      .num_experts_per_tok = 2,
                      .moe_intermediate_size = config.model.d_ff};  // Mixtral 8x7B
  config.model.vocab_size = 32000;
  const system::Table table = plan_table(make_plan(config, {"softmax", "diff_v2"}), config);
  EXPECT_THAT(row(table, "parameters")[0], "46,702,792,704") << "as published: 46.7 B";
  EXPECT_THAT(row(table, "active per token")[0], "12,879,925,248") << "as published: 12.9 B";
  EXPECT_THAT(row(table, "moe_intermediate_size"), ElementsAre("14,336", "14,336"));
  EXPECT_THAT(row(table, "d_ff"), ElementsAre("no row d_ff"));
  EXPECT_NEAR(numbers(table, "training MFLOP per token")[0] -
                  numbers(table, "of which attention scores and values")[0],
              6 * (12.879925248e3 - 65 * 4096e-6 - 32000 * 4096e-6), 0.01);
}

TEST(Plan, omits_other_unsupported_kinds_with_the_reason) {
  run::Config config = plan_7b();
  config.model.num_kv_heads = 1;
  Plan plan = make_plan(config);
  for (const KindCost& column : plan.kinds) EXPECT_NE(column.kind, "diff_v1");
  EXPECT_THAT(plan.left_out,
              testing::Contains("left out diff_v1: diff_v1 pairs the key and value heads of the "
                                "baseline, but num_kv_heads is 1; need an even number"));
  config = plan_7b();
  config.model.match_params = true;
  config.model.d_ff = 1024;  // less than the query heads that V2 adds
  plan = make_plan(config);
  EXPECT_THAT(plan.left_out,
              testing::Contains(StartsWith("left out diff_v2: model.match_params: diff_v2 has")));
  EXPECT_THROW(make_plan(config, {"diff_v2"}), ConfigError) << "nothing is left";
  config.model.attention.kind = "diff_v2";
  EXPECT_THROW(make_plan(config), ConfigError) << "the configuration itself cannot be";
}

TEST(Plan, keeps_the_order_of_the_kinds_and_marks_the_configured_one) {
  const run::Config config = plan_7b();
  const system::Table table = plan_table(make_plan(config, {"diff_v2", "softmax"}), config);
  ASSERT_EQ(table.columns.size(), 3u);
  EXPECT_EQ(table.columns[1].name, "diff_v2");
  EXPECT_EQ(table.columns[2].name, "softmax *");
  EXPECT_EQ(make_plan(config).kinds.size(), attention_kinds().size());
}

TEST(Plan, of_memory_adds_up_and_falls_by_recomputation) {
  run::Config config = plan_7b();
  const std::vector<std::string> kinds{"softmax", "diff_v2"};
  const system::Table kept = plan_table(make_plan(config, kinds), config);
  config.train.activation_checkpointing = ActivationCheckpointing::blocks;
  const system::Table recomputed = plan_table(make_plan(config, kinds), config);
  for (const size_t kind : {0u, 1u}) {
    const double total = numbers(kept, "memory of a step, MB")[kind];
    for (const system::Table* table : {&kept, &recomputed}) {
      double parts = 0;
      for (const char* part : {"weights", "gradients", "moments", "activations",
                               "gradients of activations", "scratch"})
        parts += numbers(*table, part)[kind];
      EXPECT_NEAR(parts, numbers(*table, "memory of a step, MB")[kind], 0.6) << "rounded parts";
    }
    EXPECT_EQ(numbers(kept, "with train.activation_checkpointing: blocks, MB")[kind],
              numbers(recomputed, "memory of a step, MB")[kind]);
    EXPECT_LT(numbers(recomputed, "memory of a step, MB")[kind], 0.9 * total);
  }
  EXPECT_THAT(row(recomputed, "with train.activation_checkpointing: blocks, MB"),
              ElementsAre(StartsWith("no row")));
  const double parameters = 7241732096;
  EXPECT_NEAR(numbers(kept, "moments")[0], 2 * parameters * sizeof(real) / 1e6, 0.1);
}

TEST(Plan, of_a_large_model_needs_no_memory) {
  if (test::kKeepsFreedMemory) GTEST_SKIP() << "the sanitizer keeps what was freed";
  const auto resident_megabytes = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_maxrss / 1024;
  };
  const run::Config config = plan_7b();
  const auto before = resident_megabytes();
  const Plan plan = make_plan(config, {"softmax", "diff_v2"});
  EXPECT_LT(resident_megabytes() - before, 48) << "the list of its blocks";
  EXPECT_GT(plan.kinds[0].memory.total(), Index{100} << 30);
}

TEST(Plan, of_activations_is_linear_in_sequence_length) {
  run::Config config = plan_7b();
  std::vector<double> activations;
  for (const Index seq : {1024, 4096}) {
    config.data.seq_len = config.model.max_seq_len = seq;
    const system::Table table = plan_table(make_plan(config, {"softmax", "diff_v2"}), config);
    activations.push_back(numbers(table, "activations")[1]);
  }
  EXPECT_NEAR(activations[1] / activations[0], 4, 0.01);
}

}  // namespace
}  // namespace difftape::app
