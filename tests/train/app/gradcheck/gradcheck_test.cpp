// Attention layers and whole models against finite differences, every element of every parameter.
#include "core/attention/visibility.h"
#include "layers/attention/context.h"
#include "layers/model_config.h"
#include "tests/layers/combinations.h"
#include "tests/support/sanitizer.h"
#include "tests/train/run/config/config_files.h"
#include "train/app/gradcheck/cases.h"
#include "train/run/config/reader.h"

namespace difftape::app {
namespace {

/// Cases of one variant and one number of key heads, which run as one test.
std::map<std::string, std::vector<GradcheckCase>> grouped_cases() {
  std::map<std::string, std::vector<GradcheckCase>> tests;
  const std::regex head("^((layer|cross|model)/[a-z0-9_]+/[a-z]+).*");
  for (const GradcheckCase& c : gradcheck_cases()) {
    std::smatch match;
    if (!std::regex_match(c.name, match, head)) continue;
    tests[std::regex_replace(match[1].str(), std::regex("/"), "_")].push_back(c);
  }
  return tests;
}

std::vector<std::string> test_names() {
  std::vector<std::string> names;
  for (const auto& [name, cases] : grouped_cases()) names.push_back(name);
  return names;
}

/// Sanitizers make the checks some 50 times as slow. They take one case of a layer in seven, which
/// is coprime to the lengths of the axes, so that every value of an axis occurs.
std::size_t stride(const std::vector<GradcheckCase>& cases) {
  return test::kKeepsFreedMemory && !cases.front().name.starts_with("model/") ? 7 : 1;
}

struct EveryLayer : testing::TestWithParam<std::string> {};

TEST_P(EveryLayer, gradient_matches_finite_differences_in_every_case) {
  const std::vector<GradcheckCase> cases = grouped_cases().at(GetParam());
  for (std::size_t i = 0; i < cases.size(); i += stride(cases)) {
    const GradcheckResult result = cases[i].run();
    EXPECT_EQ(result.failure, "") << cases[i].name;
    EXPECT_GE(result.elements, 48) << cases[i].name;
    EXPECT_LE(result.worst_error, kGradcheckTolerance / 3) << cases[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Layers, EveryLayer, testing::ValuesIn(test_names()),
                         [](const auto& test) { return test.param; });

TEST(GradcheckCases, are_the_full_product_of_their_axes) {
  std::map<std::string, std::set<std::string>> cases;
  Index count = 0;
  for (const GradcheckCase& c : gradcheck_cases()) {
    if (!c.name.starts_with("layer/") && !c.name.starts_with("cross/")) continue;
    EXPECT_TRUE(c.name.starts_with(c.group + "/")) << c.name;
    cases[c.group].insert(c.name.substr(c.group.size() + 1));
    ++count;
  }
  std::set<std::string> expected, of_pairs, cross, cross_of_pairs;
  for (const std::string heads : {"mha", "gqa", "mqa"}) {
    for (const std::string visible : {"full", "window", "packed"}) {
      for (const std::string norm : {"qk_norm", "plain"}) {
        for (const std::string end :
             {"rope/N/d2/T1", "rope/N/d2/T2", "rope/N/d2/T3", "rope/N/d2/T17", "rope/N/d2/T64",
              "rope/N/d4/T1", "rope/N/d4/T2", "rope/N/d4/T3", "rope/N/d4/T17", "norope/N/d3/T1",
              "norope/N/d3/T2", "norope/N/d3/T3", "norope/N/d3/T17", "norope/N/d3/T64",
              "norope/N/d5/T1", "norope/N/d5/T2", "norope/N/d5/T3", "norope/N/d5/T17"}) {
          const std::string name =
              heads + "/" + visible + "/" + std::regex_replace(end, std::regex("N"), norm);
          expected.insert(name);
          if (heads != "mqa") of_pairs.insert(name);
          if (visible == "window" || name.ends_with("/T17") || name.ends_with("/T64")) continue;
          cross.insert(name);
          if (heads != "mqa") cross_of_pairs.insert(name);
        }
      }
    }
  }
  EXPECT_EQ(expected.size(), 324u);
  Index total = 0;
  for (const AttentionVariant& variant : attention_variants()) {
    // Both need two key heads: one for each map.
    const bool pairs = fields_of(variant.attention).mapping == MappingKind::paired ||
                       variant.attention.pairing == Pairing::split_half;
    EXPECT_EQ(cases["layer/" + variant.name], pairs ? of_pairs : expected) << variant.name;
    total += pairs ? 216 : 324;
    if (variant.attention.block_size > 0) continue;  // excluded by cross-decoders
    EXPECT_EQ(cases["cross/" + variant.name], pairs ? cross_of_pairs : cross) << variant.name;
    total += pairs ? 96 : 144;
  }
  EXPECT_EQ(count, total) << "a case is listed twice";
}

TEST(GradcheckCases, selected_by_default_have_every_op_case_and_every_variant_as_layer_and_model) {
  const std::regex selected(kSelectedCases);
  std::set<std::string> groups, left_out;
  Index count = 0;
  for (const GradcheckCase& c : gradcheck_cases()) {
    if (std::regex_search(c.name, selected)) {
      groups.insert(c.group);
      ++count;
    } else {
      EXPECT_THAT(c.name, MatchesRegex("(layer|cross|model)/.*")) << "an op is left out";
      left_out.insert(c.group);
    }
  }
  for (const std::string& group : left_out) EXPECT_TRUE(groups.contains(group)) << group;
  EXPECT_LT(count, 300);
}

TEST(GradcheckCases, pack_several_documents_and_leave_some_query_two_keys) {
  for (const Index seq : {2, 3, 17, 64}) {
    const auto starts = *packed_documents(2, seq);
    ASSERT_EQ(static_cast<Index>(starts.size()), 2 * seq);
    EXPECT_GT(*std::max_element(starts.begin(), starts.end()), 0) << seq;
    Index keys = 0;
    for (Index i = 0; i < 2 * seq; ++i)
      keys = std::max(keys, i % seq + 1 - starts[static_cast<size_t>(i)]);
    EXPECT_GE(keys, 2) << seq;
  }
  const auto long_row = *packed_documents(1, 17);
  EXPECT_EQ(std::set<std::int32_t>(long_row.begin(), long_row.end()).size(), 3u);
}

TEST(GradcheckCases, have_every_grouping_of_heads_that_a_variant_can_have) {
  std::set<std::string> found;  // "layer/softmax/mqa"
  for (const GradcheckCase& c : gradcheck_cases())
    if (c.name.starts_with("layer/")) found.insert(c.name.substr(0, c.group.size() + 4));
  for (const AttentionVariant& variant : attention_variants()) {
    const AttentionFields fields = fields_of(variant.attention);
    // V1 needs even numbers, and another pairing needs several groups.
    const bool never_mqa =
        fields.mapping == MappingKind::paired || fields.pairing == Pairing::split_half;
    for (const char* heads : {"mha", "gqa", "mqa"}) {
      const bool mqa = heads == std::string("mqa");  // three heads, one key head
      EXPECT_EQ(found.contains("layer/" + variant.name + "/" + heads), !(mqa && never_mqa))
          << variant.name << " " << heads;
    }
  }
}

/// Returns all valid combinations of fields, one per distinct layer.
std::vector<ModelConfig> field_combinations(const std::string& kind) {
  std::vector<ModelConfig> models;
  std::vector<AttentionFields> layers;
  ModelConfig model;
  model.d_model = 3;
  model.num_heads = 4;
  model.num_kv_heads = 2;
  model.head_dim = 2;
  model.attention.kind = kind;
  for (const test::Combination& choice : test::all_combinations()) {
    model.attention = test::with(model.attention, choice);
    if (!run::model_conflicts(model).empty()) continue;
    const AttentionFields layer = fields_of(model.attention);
    if (std::ranges::find(layers, layer) != layers.end()) continue;
    layers.push_back(layer);
    models.push_back(model);
  }
  return models;
}

/// Returns the fields that are set, by the indices of their values.
std::string describe(AttentionConfig config) {
  std::string text(config.kind.name());
  test::for_each_field(config, [&](std::size_t i, const auto& field) {
    if (field) text += fmt::format(" {}={}", i, static_cast<int>(*field));
  });
  return text;
}

struct EveryCombination : testing::TestWithParam<std::string> {};

TEST_P(EveryCombination, of_fields_that_is_valid_passes_a_gradient_check) {
  const std::vector<ModelConfig> models = field_combinations(GetParam());
  EXPECT_GE(models.size(), 17u);  // softmax_denominator, subln and gate go with every kind
  for (const ModelConfig& model : models)
    EXPECT_EQ(check_layer(model, 2, 5).failure, "") << describe(model.attention);
}

INSTANTIATE_TEST_SUITE_P(Fields, EveryCombination, testing::ValuesIn(attention_kinds()),
                         [](const auto& kind) { return kind.param; });

/// Attention whose mask ignores documents, or without a mask.
Var unmasked(const AttentionOperands& in, bool causal) {
  const Shape q = in.q.shape();
  const Var keys = transpose(transpose(in.k, 1, 2), 2, 3);
  Var scores = matmul(transpose(in.q, 1, 2), keys);  // (B, H, T, T)
  if (causal) {
    const Tensor mask = attention_mask(q[0], q[1], {});
    scores = add(scores, reshape(in.q.tape().constant(mask), {q[0], 1, q[1], q[1]}));
  }
  return transpose(matmul(softmax(scores), transpose(in.v, 1, 2)), 1, 2);
}

/// Prints the result of checking a layer of such a kind, and exits.
void check_kind(bool causal, const DocumentOffsets& documents) {
  register_attention({.name = "leaky", .source = "a test", .context = [=](const AttentionArgs&) {
                        return [=](const AttentionOperands& in) { return unmasked(in, causal); };
                      }});
  ModelConfig config{.d_model = 4, .num_layers = 1, .num_heads = 2, .max_seq_len = 6};
  config.attention.kind = "leaky";
  std::fputs(check_layer(config, 1, 6, documents).failure.c_str(), stderr);
  std::exit(0);
}

// Each runs in a separate process, so that no other test has the kind.
TEST(ContextRule, that_reads_a_later_token_or_another_document_is_rejected_with_its_position) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto ends = testing::ExitedWithCode(0);
  EXPECT_EXIT(check_kind(false, nullptr), ends,
              "output of token 0 of sequence 0 depends on token 1 of sequence 0, but must not");
  EXPECT_EXIT(check_kind(true, packed_documents(1, 6)), ends,
              "output of token 2 of sequence 0 depends on token 0 of sequence 0");
  EXPECT_EXIT(check_kind(true, nullptr), ends, "^$");
}

/// Returns the fields of a configuration without the value of lambda_init_value, and without the
/// window, which every variant is checked with.
AttentionFields layer_of(const AttentionConfig& attention) {
  AttentionFields fields = fields_of(attention);
  fields.lambda_init_value = 0;
  fields.sliding_window = 0;
  return fields;
}

TEST(GradcheckedConfigs, contain_the_attention_of_every_shipped_variant_and_ablation) {
  const std::vector<AttentionVariant> checked = attention_variants();
  int count = 0;
  for (const char* folder : {"variants", "ablations"}) {
    const auto path = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "configs" / folder;
    for (const auto& entry : fs::directory_iterator(path)) {
      const AttentionConfig attention = run::load_config(entry.path()).config.model.attention;
      EXPECT_TRUE(std::any_of(checked.begin(), checked.end(),
                              [&](const AttentionVariant& variant) {
                                return layer_of(variant.attention) == layer_of(attention);
                              }))
          << entry.path() << " has no variant in train/app/gradcheck/cases.h";
      ++count;
    }
  }
  EXPECT_GE(count, 14);
}

}  // namespace
}  // namespace difftape::app
