// Exact properties of every attention layer, whatever its weights.
#include "autograd/gradcheck/gradcheck.h"
#include "tests/layers/attention_layer.h"

namespace difftape {
namespace {

using test::Layer;
using test::layer_config;
using test::random;
using test::same;
using test::variants;

std::string name_of(const ModelConfig& config) {
  const AttentionConfig& a = config.attention;
  std::string name(a.kind.name());
  const auto add = [&](const auto& field) {
    if (field) name += fmt::format(" {}", to_string(*field));
  };
  add(a.pairing);
  add(a.lambda);
  add(a.softmax_denominator);
  return name + (a.subln ? fmt::format(" subln {}", *a.subln) : "");
}

/// Returns true if the plain difference of both maps is 0, as with one visible key.
bool vanishes(const ModelConfig& config, Index visible_keys) {
  return config.attention.lambda == LambdaKind::one && visible_keys == 1;
}

/// d out_t / d x: zeros at the tokens that t does not see, not only zeros at the others.
void expect_only_visible(Layer& layer, const Tensor& x, Index t, Index first,
                         const DocumentOffsets& starts = nullptr) {
  const Index seq = x.shape()[1], width = x.shape()[2];
  Tensor cotangent = Tensor::zeros(x.shape());
  std::copy_n(random({width}, "cotangent").data(), width, cotangent.row(t));
  const Tensor dx = layer.backward(x, cotangent, starts);
  for (Index s = 0; s < seq; ++s) {
    double total = 0;
    for (Index c = 0; c < width; ++c) total += std::abs(static_cast<double>(dx.row(s)[c]));
    const bool visible = first <= s && s <= t;
    if (visible && !vanishes(layer.config, t - first + 1)) {
      EXPECT_GT(total, 0) << name_of(layer.config) << " t=" << t << " s=" << s;
    } else {
      EXPECT_EQ(total, 0) << name_of(layer.config) << " t=" << t << " s=" << s;
    }
  }
}

TEST(Structure, no_token_depends_on_a_later_one) {
  for (const ModelConfig& config : variants()) {
    Layer layer(config);
    const Tensor x = random({1, 7, 6}, "x");
    for (Index t = 0; t < 7; ++t) expect_only_visible(layer, x, t, 0);
  }
}

TEST(Structure, a_window_hides_earlier_tokens) {
  for (ModelConfig config : variants()) {
    config.attention.sliding_window = 3;
    Layer layer(config);
    const Tensor x = random({1, 80, 6}, "x");
    for (const Index t : {0, 1, 3, 64, 66, 79}) {
      expect_only_visible(layer, x, t, std::max<Index>(0, t - 2));
    }
  }
}

TEST(Structure, packed_documents_do_not_see_each_other) {
  std::vector<std::int32_t> starts(150, 0);
  for (size_t t = 3; t < 150; ++t) starts[t] = t < 70 ? 3 : 70;
  const auto documents = std::make_shared<const std::vector<std::int32_t>>(starts);
  for (const ModelConfig& config : variants()) {
    Layer layer(config);
    const Tensor x = random({1, 150, 6}, "x");
    for (const Index t : {2, 3, 69, 70, 149}) {
      expect_only_visible(layer, x, t, starts[t], documents);
    }
  }
}

TEST(Structure, a_packed_document_is_computed_as_if_it_were_alone) {
  std::vector<std::int32_t> starts(90, 0);
  for (size_t t = 21; t < 90; ++t) starts[t] = 21;
  const auto documents = std::make_shared<const std::vector<std::int32_t>>(starts);
  for (ModelConfig config : variants()) {
    config.rope = false;  // positions count over the whole row
    Layer layer(config);
    const Tensor x = random({1, 90, 6}, "x");
    Tensor second = Tensor::empty({1, 69, 6});
    std::copy_n(x.row(21), second.size(), second.data());
    const Tensor packed = layer.forward(x, documents), alone = layer.forward(second);
    Tensor part = Tensor::empty(alone.shape());
    std::copy_n(packed.row(21), part.size(), part.data());
    EXPECT_LE(relative_error(part, alone), 1e-13) << name_of(config);
  }
}

TEST(Structure, a_window_as_long_as_the_row_hides_nothing) {
  for (ModelConfig config : variants()) {
    Layer full(config);
    config.attention.sliding_window = 75;
    Layer windowed(config);
    const Tensor x = random({2, 75, 6}, "x"), cotangent = random({2, 75, 6}, "cotangent");
    EXPECT_TRUE(same(full.forward(x), windowed.forward(x))) << name_of(config);
    EXPECT_TRUE(same(full.backward(x, cotangent), windowed.backward(x, cotangent)));
  }
}

/// Layers with sinks of one value are bitwise those with another denominator.
void expect_sinks(real value, SoftmaxDenominator same_as, auto&& of_gradient) {
  for (const std::string kind : {"softmax", "diff_v1", "diff_v2"}) {
    ModelConfig config = layer_config(kind);
    config.attention.softmax_denominator = same_as;
    Layer other(config);
    config.attention.softmax_denominator = SoftmaxDenominator::sink;
    Layer sink(config);
    sink.weight("sinks").fill(value);
    const Tensor x = random({1, 33, 6}, "x"), cotangent = random({1, 33, 6}, "cotangent");
    EXPECT_TRUE(same(sink.forward(x), other.forward(x))) << kind;
    EXPECT_TRUE(same(sink.backward(x, cotangent), other.backward(x, cotangent))) << kind;
    for (const real g : sink.gradient("sinks").values()) of_gradient(g);
  }
}

TEST(Structure, sinks_of_zero_are_softmax1) {
  expect_sinks(0, SoftmaxDenominator::softmax1, [](real) {});
}

TEST(Structure, sinks_of_minus_infinity_have_no_effect) {
  expect_sinks(-std::numeric_limits<real>::infinity(), SoftmaxDenominator::softmax,
               [](real g) { EXPECT_EQ(g, 0); });
}

/// Rows of `from` that make one head each, repeated into `to`: head i of `to` is head source[i].
void repeat_heads(const Tensor& from, Tensor& to, const std::vector<Index>& source, Index width) {
  const Index size = width * from.shape()[1];
  for (size_t i = 0; i < source.size(); ++i) {
    std::copy_n(from.data() + source[i] * size, size, to.data() + i * size);
  }
}

Tensor sum_heads(const Tensor& of, const Tensor& like, const std::vector<Index>& source,
                 Index width) {
  Tensor total = Tensor::zeros(like.shape());
  const Index size = width * of.shape()[1];
  for (size_t i = 0; i < source.size(); ++i) {
    for (Index j = 0; j < size; ++j) {
      total.data()[source[i] * size + j] += of.data()[i * size + j];
    }
  }
  return total;
}

TEST(Structure, grouped_queries_equal_repeated_keys_with_summed_gradients) {
  for (ModelConfig config : variants()) {
    if (config.attention.pairing == Pairing::split_half) continue;  // its groups follow other heads
    Layer grouped(config);
    config.num_kv_heads = config.num_heads;
    Layer repeated(config);
    const HeadMapping &few = grouped.attention.mapping(), &many = repeated.attention.mapping();
    std::vector<Index> keys(many.key_heads), values(many.value_heads);
    for (size_t i = 0; i < many.outputs.size(); ++i) {
      for (Index map = 0; map < many.maps; ++map) {
        keys[many.outputs[i].key[map]] = few.outputs[i].key[map];
        values[many.outputs[i].value[map]] = few.outputs[i].value[map];
      }
    }
    const Index width = grouped.attention.value_dim();
    repeat_heads(grouped.weight("k_proj.weight"), repeated.weight("k_proj.weight"), keys, 4);
    repeat_heads(grouped.weight("v_proj.weight"), repeated.weight("v_proj.weight"), values, width);
    const Tensor x = random({2, 19, 6}, "x"), cotangent = random({2, 19, 6}, "cotangent");
    EXPECT_LE(relative_error(grouped.forward(x), repeated.forward(x)), 1e-14) << name_of(config);
    EXPECT_LE(relative_error(grouped.backward(x, cotangent), repeated.backward(x, cotangent)),
              1e-13);
    const auto expect_sum = [&](const char* name, const std::vector<Index>& source, Index size) {
      const Tensor& sum = grouped.gradient(name);
      EXPECT_LE(relative_error(sum_heads(repeated.gradient(name), sum, source, size), sum), 1e-12)
          << name_of(config) << " " << name;
    };
    expect_sum("k_proj.weight", keys, 4);
    expect_sum("v_proj.weight", values, width);
  }
}

}  // namespace
}  // namespace difftape
