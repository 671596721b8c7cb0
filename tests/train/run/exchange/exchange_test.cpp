// Tests that exported models come back bit for bit, and that models saved by transformers have its
// logits.

#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/test.h"
#include "train/run/config/writer.h"
#include "train/run/exchange/export.h"
#include "train/run/exchange/hf_config.h"
#include "train/run/exchange/safetensors.h"
#include "train/run/loop/grads.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

/// Returns a model whose weights differ from initial ones; norms are not 1.
NamedModel some_model(const AttentionConfig& attention, bool tied = false,
                      const MoeConfig& moe = {}) {
  NamedModel named;
  named.config.model = {.d_model = 24,
                        .num_layers = 2,
                        .num_heads = 4,
                        .num_kv_heads = 2,
                        .d_ff = 20,
                        .max_seq_len = 32,
                        .tie_word_embeddings = tied,
                        .moe = moe,
                        .attention = attention};
  named.config.data.seq_len = 32;
  named.model = std::make_unique<LanguageModel>(named.config.model);
  named.model->parameters().initialize(7);
  for (Parameter& p : named.model->parameters())
    for (Index i = 0; i < p.value.size(); ++i)
      p.value.data()[i] += static_cast<real>(0.3 * std::sin(static_cast<double>(i) + 0.1));
  named.step = 123;
  named.data = {{"type", "text"}, {"files", 3}};
  return named;
}

void expect_same(const NamedModel& a, const NamedModel& b) {
  EXPECT_EQ(to_yaml(a.config), to_yaml(b.config));
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.data, b.data);
  ASSERT_EQ(a.model->parameters().size(), b.model->parameters().size());
  for (const Parameter& p : a.model->parameters()) {
    const Parameter& q = *b.model->parameters().find(p.name);
    EXPECT_TRUE(std::ranges::equal(p.value.values(), q.value.values())) << p.name;
  }
}

/// Returns every combination that transformers can compute.
std::vector<AttentionConfig> exportable() {
  std::vector<AttentionConfig> all;
  for (const char* kind : {"softmax", "softmax_2h", "diff_v1", "diff_v2"})
    all.push_back({.kind = kind});
  for (const Pairing pairing : {Pairing::interleaved, Pairing::split_half})
    for (const LambdaKind lambda : {LambdaKind::sigmoid, LambdaKind::raw, LambdaKind::one})
      all.push_back({.kind = "diff_v2", .pairing = pairing, .lambda = lambda});
  return all;
}

TEST(Exchange, every_kind_comes_back_from_safetensors_bit_for_bit) {
  const ScratchDir dir;
  for (const std::string& kind : attention_kinds()) {
    const NamedModel model = some_model({.kind = kind});
    export_safetensors(model, dir / "m.safetensors");
    expect_same(import_model(dir / "m.safetensors"), model);
  }
}

TEST(Exchange, every_kind_in_transformers_comes_back_bit_for_bit) {
  for (const AttentionConfig& attention : exportable()) {
    for (const bool tied : {false, true}) {
      const ScratchDir dir;
      const NamedModel model = some_model(attention, tied);
      export_hf(model, dir / "hf");
      expect_same(import_model(dir / "hf"), model);
      expect_same(import_model(dir / "hf/model.safetensors"), model);
    }
  }
}

TEST(Exchange, experts_come_back_bit_for_bit_with_the_names_of_mixtral) {
  const ScratchDir dir;
  const NamedModel model = some_model(
      {}, false, {.num_experts = 4, .num_experts_per_tok = 3, .moe_intermediate_size = 8});
  export_hf(model, dir / "hf");
  expect_same(import_model(dir / "hf"), model);
  const auto file = safetensors::File::read(dir / "hf/model.safetensors");
  EXPECT_TRUE(file.tensors().contains("model.layers.1.block_sparse_moe.experts.3.w2.weight"));
  const NamedModel other = some_model({}, false,
                                      {.num_experts = 3,
                                       .num_shared_experts = 1,
                                       .moe_intermediate_size = 8,
                                       .scoring_func = RouterScore::sigmoid,
                                       .router_bias_update_rate = 0.1});
  export_safetensors(other, dir / "m.safetensors");
  expect_same(import_model(dir / "m.safetensors"), other);
}

TEST(Exchange, equal_models_give_equal_bytes) {
  const ScratchDir dir;
  export_hf(some_model({.kind = "diff_v1"}), dir / "a");
  export_hf(some_model({.kind = "diff_v1"}), dir / "b");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(dir / "a")) {
    EXPECT_EQ(contents(entry.path()), contents(dir / "b" / entry.path().filename()));
    ++files;
  }
  EXPECT_EQ(files, 4) << "config.json, model.safetensors, difftape.safetensors, README.md";
}

TEST(HfLayout, rows_of_even_features_and_heads_come_first) {
  ModelConfig model{.d_model = 16, .num_heads = 4, .num_kv_heads = 2};
  const std::string q = "model.layers.0.self_attn.q_proj.weight";
  const std::string v = "model.layers.0.self_attn.v_proj.weight";
  EXPECT_THAT(hf_rows(q, model), ElementsAre(0, 2, 1, 3, 4, 6, 5, 7, 8, 10, 9, 11, 12, 14, 13, 15));
  EXPECT_THAT(hf_rows(v, model), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  model.attention.kind = "diff_v1";
  EXPECT_THAT(hf_rows(q, model), ElementsAre(0, 2, 1, 3, 8, 10, 9, 11, 4, 6, 5, 7, 12, 14, 13, 15));
  model.num_kv_heads = 4;
  EXPECT_THAT(hf_rows(v, model), ElementsAre(0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15));
  EXPECT_THAT(hf_rows("model.layers.0.self_attn.o_proj.weight", model), IsEmpty());
}

TEST(HfLayout, o_proj_of_v1_is_multiplied_by_the_weights_of_its_norm) {
  const Tensor o_proj = Tensor::from({2, 4}, std::vector<real>{1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor folded = with_subln(o_proj, Tensor::from({2}, std::vector<real>{10, -1}));
  EXPECT_THAT(folded.values(), ElementsAre(10, -2, 30, -4, 50, -6, 70, -8));
}

/// Returns the largest error of the logits of a model that transformers saved, relative to its
/// largest logit.
double difference_from_transformers(const std::string& name) {
  const fs::path at = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "tests/train/run/exchange" / name;
  const NamedModel named = import_model(at, {});
  const Batch batch = read_token_batch(at / "logits.h5");
  const Tensor logits = forward_backward(*named.model, batch, -1).logits;
  const auto expected = h5::File::open(at / "logits.h5").read<double>("logits");
  EXPECT_EQ(static_cast<size_t>(logits.size()), expected.size());
  double largest = 0, error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    error = std::max(error, std::abs(static_cast<double>(logits.data()[i]) - expected[i]));
  }
  EXPECT_GT(largest, 0.1);
  return error / largest;
}

TEST(Exchange, models_saved_by_transformers_have_the_same_logits) {
  EXPECT_LT(difference_from_transformers("llama"), 1e-5) << "weights in BF16";
  EXPECT_LT(difference_from_transformers("mixtral"), 1e-5);
  EXPECT_LT(difference_from_transformers("diffllama"), 1e-5);
}

/// Writes a safetensors file again after `change` of its header and its data.
void rewrite(const fs::path& path,
             const std::function<void(nlohmann::json& header, std::string& data)>& change) {
  const std::string bytes = contents(path);
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  nlohmann::json header = nlohmann::json::parse(bytes.substr(8, length));
  std::string data = bytes.substr(8 + length);
  change(header, data);
  const std::string text = header.dump();
  length = text.size();
  put(path, std::string(reinterpret_cast<const char*>(&length), 8) + text + data);
}

/// Adds a tensor of F32 zeros.
void add_zeros(nlohmann::json& header, std::string& data, const std::string& name, Index count) {
  const std::size_t begin = data.size();
  data.append(static_cast<std::size_t>(4 * count), '\0');
  header[name] = {{"dtype", "F32"}, {"shape", {count}}, {"data_offsets", {begin, data.size()}}};
}

TEST(Import, ignores_what_transformers_ignores) {
  if (sizeof(real) == 8) GTEST_SKIP() << "the tensors that are added are F32";
  const ScratchDir dir;
  const NamedModel model = some_model({}, true);
  export_hf(model, dir / "hf");
  const fs::path file = dir / "hf/model.safetensors";
  rewrite(file, [](auto& header, auto& data) {
    for (const char* buffer : {"rotary_emb.inv_freq", "rotary_emb.cos_cached",
                               "rotary_emb.sin_cached", "masked_bias", "bias"})
      add_zeros(header, data, std::string("model.layers.0.self_attn.") + buffer, 3);
    auto entry = header["model.embed_tokens.weight"];
    const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
    const std::string copy = data.substr(begin, end - begin);
    entry["data_offsets"] = {data.size(), data.size() + copy.size()};
    header["lm_head.weight"] = entry;
    data += copy;
  });
  expect_same(import_model(dir / "hf"), model);
  rewrite(file, [](auto&, auto& data) { data.back() ^= 1; });
  EXPECT_THAT(message_of<DataError>([&] { import_model(dir / "hf"); }),
              HasSubstr("lm_head.weight (256, 24) differs from the embeddings, to which the model "
                        "ties it"));
  export_hf(some_model({}), dir / "untied");
  rewrite(dir / "untied/model.safetensors",
          [](auto& header, auto& data) { add_zeros(header, data, "model.extra", 3); });
  EXPECT_THAT(message_of<DataError>([&] { import_model(dir / "untied"); }),
              HasSubstr("model.extra (3) belongs to no parameter"));
}

TEST(Import, takes_tied_embeddings_from_a_stored_output_projection) {
  const ScratchDir dir;
  const NamedModel model = some_model({}, true);
  export_hf(model, dir / "hf");
  rewrite(dir / "hf/model.safetensors", [](auto& header, auto&) {
    header["lm_head.weight"] = header["model.embed_tokens.weight"];
    header.erase("model.embed_tokens.weight");
  });
  expect_same(import_model(dir / "hf"), model);
}

TEST(Import, takes_weights_in_bf16_beside_norms_in_f32) {
  if (sizeof(real) == 8) GTEST_SKIP() << "the exported tensors are F64";
  const ScratchDir dir;
  const NamedModel model = some_model({});
  export_hf(model, dir / "hf");
  rewrite(dir / "hf/model.safetensors", [](auto& header, auto& data) {
    std::string shorter;
    for (auto& [name, entry] : header.items()) {
      if (name == "__metadata__") continue;
      const std::size_t begin = entry["data_offsets"][0], end = entry["data_offsets"][1];
      const bool norm = name.find("norm") != std::string::npos;
      const std::size_t start = shorter.size();
      for (std::size_t i = begin; i < end; i += 4)
        shorter += norm ? data.substr(i, 4) : data.substr(i + 2, 2);  // bf16: the upper half
      if (!norm) entry["dtype"] = "BF16";
      entry["data_offsets"] = {start, shorter.size()};
    }
    data = shorter;
  });
  const NamedModel read = import_model(dir / "hf");
  for (const Parameter& p : model.model->parameters()) {
    const Parameter& q = *read.model->parameters().find(p.name);
    const bool norm = p.name.find("norm") != std::string::npos;
    for (Index i = 0; i < p.value.size(); ++i) {
      const real x = p.value.data()[i];
      EXPECT_NEAR(q.value.data()[i], x, norm ? 0 : std::abs(x) / 128) << p.name;
    }
  }
}

TEST(Import, of_a_router_that_chooses_one_expert_gives_it_the_weight_1) {
  const ScratchDir dir;
  const NamedModel model = some_model(
      {}, false, {.num_experts = 4, .num_experts_per_tok = 1, .moe_intermediate_size = 8});
  export_hf(model, dir / "hf");
  const NamedModel read = import_model(dir / "hf");
  EXPECT_TRUE(read.config.model.moe.norm_topk_prob) << "as MixtralTopKRouter, which divides by the "
                                                       "sum of the chosen probabilities";
  expect_same(read, model);
}

/// Imports an exported directory after a change.
struct ChangedExport : testing::Test {
  ChangedExport() { export_hf(some_model({.kind = "diff_v1"}), dir / "hf"); }

  template <class Failure = DataError>
  std::string refusal() {
    return message_of<Failure>([&] { import_model(dir / "hf"); });
  }

  ScratchDir dir;
};

TEST_F(ChangedExport, mismatched_weight_files_are_rejected) {
  std::string bytes = contents(dir / "hf/difftape.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  put(dir / "hf/difftape.safetensors", bytes);
  EXPECT_THAT(refusal(), HasSubstr("differs from model.safetensors"));
  fs::remove(dir / "hf/difftape.safetensors");
  EXPECT_THAT(refusal<MissingInput>(),
              HasSubstr("needs difftape.safetensors, which difftape export wrote next to it"));
}

TEST_F(ChangedExport, a_sharded_or_missing_file_is_named) {
  fs::rename(dir / "hf/model.safetensors", dir / "hf/model-00001-of-00002.safetensors");
  EXPECT_THAT(refusal<MissingInput>(), HasSubstr("model.safetensors: No such file"));
  put(dir / "hf/model.safetensors.index.json", "{}");
  EXPECT_THAT(refusal(), HasSubstr("the weights are in several files"));
}

TEST_F(ChangedExport, damaged_metadata_is_rejected) {
  const std::string bytes = contents(dir / "hf/model.safetensors");
  const auto with = [&](const std::string& old, const std::string& now) {
    std::string changed = bytes;
    changed.replace(changed.find(old), old.size(), now);
    put(dir / "hf/model.safetensors", changed);
    return refusal();
  };
  EXPECT_THAT(with(R"("difftape_step":"123")", R"("difftape_step":"12x")"),
              HasSubstr("metadata entry difftape_step"));
  EXPECT_THAT(with(R"("difftape_layout":"hf")", R"("difftape_layout":"gg")"),
              HasSubstr("metadata entry difftape_layout"));
  EXPECT_THAT(with(R"("difftape_data":"{)", R"("difftape_data":"[)"),
              HasSubstr("metadata entry difftape_data"));
  EXPECT_THAT(with(R"("difftape_data")", R"("difftape_date")"),
              HasSubstr("metadata entry difftape_data"));
  EXPECT_EQ(with("\"123\"", "\"124\""), "") << "as sound as before";
}

TEST(Export, gives_every_reason_at_once) {
  const ScratchDir dir;
  const std::string error = message_of<UsageError>([&] {
    export_hf(some_model({.kind = "sink", .gate = Gate::head, .qk_norm = true}), dir / "hf");
  });
  for (const char* key : {"softmax_denominator", "gate", "qk_norm"})
    EXPECT_THAT(error, HasSubstr(std::string("\n  model.attention.") + key + ": "));
  EXPECT_THAT(error, HasSubstr("but --format safetensors exports any model"));
  EXPECT_TRUE(fs::is_empty(dir.path()));
}

TEST(Export, writes_the_classes_of_v2_next_to_its_weights) {
  const ScratchDir dir;
  export_hf(some_model({.kind = "diff_v2"}), dir / "hf");
  EXPECT_EQ(
      contents(dir / "hf/modeling_difftape.py"),
      contents(fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "train/run/exchange/modeling_difftape.py"));
}

TEST(Export, readme_has_the_code_of_the_page_on_interoperability) {
  const ScratchDir dir;
  export_hf(some_model({.kind = "softmax"}), dir / "hf");
  const fs::path source = DIFFTAPE_TEST_SOURCE_DIR;
  const auto code = [](const std::string& page) {
    const auto begin = page.find("```python");
    return page.substr(begin, page.find("```\n", begin) - begin);
  };
  const std::string page = contents(source / "docs/interoperability.md");
  EXPECT_EQ(code(contents(dir / "hf/README.md")),
            std::regex_replace(code(page), std::regex("\"exported\""), "\".\""));
}

TEST(Export, readme_has_code_for_the_tokens_of_the_model) {
  const ScratchDir dir;
  NamedModel model = some_model({.kind = "softmax"});
  model.config.data.type = DataKind::tokens;
  export_hf(model, dir / "unknown");
  EXPECT_THAT(contents(dir / "unknown/README.md"),
              AllOf(HasSubstr("torch.tensor([[0, 1]])"), HasSubstr("\nprint(ids)\n"),
                    Not(HasSubstr("bytes("))));
  EXPECT_FALSE(fs::exists(dir / "unknown/tokenizer.model"));
  model.tokens.tokenizer = {"en.model", "a SentencePiece model"};
  export_hf(model, dir / "known");
  EXPECT_THAT(contents(dir / "known/README.md"),
              AllOf(HasSubstr("SentencePieceProcessor(model_file=\"tokenizer.model\")\n"),
                    HasSubstr("torch.tensor([tokenizer.encode(\"The \")])"), Not(HasSubstr("@"))));
  EXPECT_EQ(contents(dir / "known/tokenizer.model"), "a SentencePiece model");
}

}  // namespace
}  // namespace difftape::run
