// Decoding with a cache equals one pass over the whole sequence.
#include "core/attention/decode.h"

#include "layers/language_model.h"
#include "tests/core/attention_problem.h"
#include "tests/layers/attention_layer.h"

namespace difftape {
namespace {

using test::Layer;
using test::layer_config;
using test::tokens_of;

constexpr Index kBatchSize = 2, kSeqLen = 45;
constexpr double kTolerance = sizeof(real) == 4 ? 1e-5 : 1e-13;

/// The documents of these tokens.
DocumentOffsets documents_of(const DocumentOffsets& all, Index begin, Index n) {
  if (!all) return nullptr;
  std::vector<std::int32_t> part;
  for (Index b = 0; b < kBatchSize; ++b) {
    const auto from = all->begin() + (b * kSeqLen + begin);
    part.insert(part.end(), from, from + n);
  }
  return std::make_shared<const std::vector<std::int32_t>>(part);
}

/// Returns the largest difference between one pass over all tokens and passes over `pieces`,
/// relative to the largest element.
double difference(Layer& layer, const std::vector<Index>& pieces,
                  const DocumentOffsets& documents = nullptr) {
  const Tensor x = test::random({kBatchSize, kSeqLen, layer.config.d_model}, "x");
  const Tensor whole = layer.forward(x, documents);
  ModelKvCache cache;
  cache.layers.emplace_back(layer.attention.mapping(), kBatchSize, kSeqLen,
                            head_dim_of(layer.config), layer.attention.value_dim());
  double largest = 0, size = 0;
  Index begin = 0;
  for (const Index n : pieces) {
    Tape tape(Tape::Mode::inference);
    const Var y =
        layer.attention(tape.constant(tokens_of(x, begin, n)),
                        {.document_offsets = documents_of(documents, begin, n), .cache = &cache});
    const Tensor expected = tokens_of(whole, begin, n);
    for (Index i = 0; i < expected.size(); ++i) {
      const double is = y.value().data()[i], should = expected.data()[i];
      largest = std::max(largest, std::abs(is - should));
      size = std::max(size, std::abs(should));
    }
    begin += n;
  }
  EXPECT_EQ(begin, kSeqLen);
  EXPECT_EQ(cache.length(), kSeqLen);
  return largest / size;
}

std::vector<Index> prompt_then_one_by_one(Index prompt) {
  std::vector<Index> pieces(kSeqLen - prompt + 1, 1);
  pieces.front() = prompt;
  return pieces;
}

TEST(KvCache, equals_one_pass_over_the_sequence_for_every_variant) {
  for (const ModelConfig& config : test::variants()) {
    Layer layer(config);
    for (const Index prompt : {1, 7, 16, 33}) {
      EXPECT_LT(difference(layer, prompt_then_one_by_one(prompt)), kTolerance)
          << config.attention.kind.name() << ", prompt of " << prompt;
    }
    EXPECT_LT(difference(layer, {3, 20, 1, 17, 4}), kTolerance) << config.attention.kind.name();
  }
}

TEST(KvCache, works_with_every_option_of_a_layer) {
  const auto worst = [](auto&& change) {
    double largest = 0;
    for (const char* kind : {"softmax", "diff_v1", "diff_v2", "softmax_2h"}) {
      ModelConfig config = layer_config(kind);
      change(config);
      Layer layer(config);
      largest = std::max(largest, difference(layer, prompt_then_one_by_one(5)));
    }
    return largest;
  };
  EXPECT_LT(worst([](ModelConfig& c) { c.attention.sliding_window = 6; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.attention.sliding_window = 1; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.attention.sliding_window = 20; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.attention.qk_norm = true; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.attention.attn_logit_softcap = 2; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.attention.gate = Gate::elementwise; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.rope = false; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.num_kv_heads = 4; }), kTolerance);
  EXPECT_LT(worst([](ModelConfig& c) { c.head_dim = 22; }), kTolerance)
      << "no multiple of a vector, nor of the sums side by side";
}

TEST(KvCache, reads_the_blocks_that_one_pass_reads) {
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    for (const BlockSelection selection : {BlockSelection::averaged, BlockSelection::separately}) {
      ModelConfig config = layer_config(kind);
      if (kind == std::string("softmax") && selection == BlockSelection::separately) continue;
      config.attention.block_size = 16;
      config.attention.num_selected_blocks = 2;
      config.attention.block_selection = selection;
      Layer layer(config);
      for (const Index prompt : {1, 16, 20, 33}) {
        EXPECT_LT(difference(layer, prompt_then_one_by_one(prompt)), kTolerance)
            << kind << ", prompt of " << prompt;
      }
      EXPECT_LT(difference(layer, {3, 20, 1, 17, 4}), kTolerance) << kind;
    }
  }
}

TEST(KvCache, keeps_documents_apart) {
  std::vector<std::int32_t> begins(kBatchSize * kSeqLen, 0);
  std::fill(begins.begin() + 20, begins.begin() + kSeqLen, 20);  // the first sequence has two
  const auto documents = std::make_shared<const std::vector<std::int32_t>>(begins);
  for (const char* kind : {"softmax", "diff_v1", "diff_v2"}) {
    Layer layer(layer_config(kind));
    EXPECT_LT(difference(layer, prompt_then_one_by_one(5), documents), kTolerance) << kind;
    EXPECT_LT(difference(layer, {5, 30, 10}, documents), kTolerance) << kind;
  }
}

TEST(KvCache, enforces_its_capacity_and_shapes) {
  const HeadMapping mapping = HeadMapping::standard(4, 2);
  KvCache cache(mapping, 1, 3, 8, 8);
  cache.append(Tensor::zeros({1, 2, 2, 8}), Tensor::zeros({1, 2, 2, 8}));
  EXPECT_EQ(cache.bytes_read(), 2 * (2 * 8 + 2 * 8) * static_cast<Index>(sizeof(real)));
  EXPECT_THROW(cache.append(Tensor::zeros({1, 2, 2, 8}), Tensor::zeros({1, 2, 2, 8})), ShapeError);
  EXPECT_THROW(cache.append(Tensor::zeros({1, 1, 4, 8}), Tensor::zeros({1, 1, 2, 8})), ShapeError);
  EXPECT_EQ(cache.length(), 2);
  const Tensor q = Tensor::zeros({1, 3, 4, 8});
  EXPECT_THROW(attention_cached({.mapping = mapping, .q = q, .k = {}, .v = {}}, cache), ShapeError);
}

TEST(KvCache, has_no_backward_pass) {
  Layer layer(layer_config("softmax"));
  ModelKvCache cache;
  cache.layers.emplace_back(layer.attention.mapping(), 1, 4, 4, 4);
  Tape tape;
  const Var x = tape.input(Tensor::zeros({1, 2, 6}));
  layer.attention(x, {.cache = &cache});
  EXPECT_THROW(layer.attention(x, {.cache = &cache}), std::logic_error);
}

/// Reads `pieces` of tokens over a cache, and expects the logits of one pass over all of them.
void expect_logits_of_the_model(const ModelConfig& config, const std::vector<Index>& pieces,
                                const DocumentOffsets& documents = nullptr) {
  LanguageModel model(config);
  model.parameters().initialize(1);
  for (Parameter& p : model.parameters()) p.value.copy_from(test::random(p.shape, p.name, 0.4));
  std::vector<std::int32_t> ids(kBatchSize * kSeqLen);
  for (size_t i = 0; i < ids.size(); ++i) ids[i] = i * 7 % 50;
  Tape tape(Tape::Mode::inference);
  const Tensor logits = model.logits(tape, {ids, kBatchSize, kSeqLen, documents}).value();
  ModelKvCache cache = model.make_cache(kBatchSize, kSeqLen);
  Index begin = 0;
  for (const Index n : pieces) {
    std::vector<std::int32_t> piece;
    for (Index b = 0; b < kBatchSize; ++b) {
      const auto from = ids.begin() + (b * kSeqLen + begin);
      piece.insert(piece.end(), from, from + n);
    }
    const TokenBatch tokens{piece, kBatchSize, n, documents_of(documents, begin, n)};
    begin += n;
    const Tensor next = model.next_logits(tape, tokens, cache).value();
    ASSERT_EQ(next.shape(), (Shape{kBatchSize, 50}));
    for (Index b = 0; b < kBatchSize; ++b) {
      for (Index v = 0; v < 50; ++v) {
        EXPECT_NEAR(next.row(b)[v], logits.row(b * kSeqLen + begin - 1)[v], 4 * kTolerance)
            << config.attention.kind.name();
      }
    }
  }
  EXPECT_EQ(cache.length(), kSeqLen);
  EXPECT_GT(cache.bytes_read(), 0);
}

ModelConfig small_model(ModelConfig config) {
  config.num_layers = 3;
  config.vocab_size = 50;
  config.d_ff = 12;
  return config;
}

TEST(ModelKvCache, gives_the_logits_of_the_model) {
  ModelConfig config = small_model(layer_config("diff_v2"));
  expect_logits_of_the_model(config, prompt_then_one_by_one(9));
  config.embedding_norm = config.tie_word_embeddings = true;
  config.final_logit_softcap = 3;
  config.attention.block_size = 16;
  config.attention.num_selected_blocks = 2;
  expect_logits_of_the_model(config, prompt_then_one_by_one(9));
}

TEST(ModelKvCache, that_a_cross_decoder_shares_gives_the_logits_of_the_model) {
  std::vector<std::int32_t> begins(kBatchSize * kSeqLen, 0);
  std::fill(begins.begin() + 20, begins.begin() + kSeqLen, 20);  // the first sequence has two
  const auto documents = std::make_shared<const std::vector<std::int32_t>>(begins);
  for (const ModelConfig& layer : test::variants()) {
    ModelConfig config = small_model(layer);
    config.yoco_self_layers = 1;
    config.attention.sliding_window = 6;
    expect_logits_of_the_model(config, prompt_then_one_by_one(9));
    expect_logits_of_the_model(config, {1, 20, 3, 21}, documents);
  }
}

}  // namespace
}  // namespace difftape
