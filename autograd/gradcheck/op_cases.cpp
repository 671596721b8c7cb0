#include "autograd/gradcheck/op_cases.h"

#include <fmt/format.h>

#include <cmath>

#include "autograd/gradcheck/compositions.h"
#include "core/random.h"

namespace difftape {

namespace {

using Vars = const std::vector<Var>&;
using BoundedVars = const std::vector<BoundedVar>&;

const std::vector<std::int32_t> kTokens{3, 0, 6, 3, 1, 3};
const std::vector<std::int32_t> kSomeIgnored{3, kIgnoreIndex, 6, 3, kIgnoreIndex, kIgnoreIndex};

const RopeRule kRope{.theta = 100, .scaling = {}};
const RopeRule kYarn{.theta = 100,
                     .scaling = {.rope_type = RopeScalingKind::yarn,
                                 .factor = 2.5,
                                 .original_seq_len = 60,
                                 .attention_factor = 0}};

/// Makes a case of a function of ops that Var and BoundedVar share.
template <class F>
OpCase primitive(const char* op, const char* variant, const std::vector<Shape>& inputs, F f,
                 bool positive = false) {
  return {.op = op,
          .variant = variant,
          .inputs = inputs,
          .f = [f](Vars v) { return f(v); },
          .bounded = [f](BoundedVars v) { return f(v); },
          .positive = positive};
}

/// Makes a case of a coarse op and its composition, which takes either kind of values.
template <class F, class Composition>
OpCase composed(const char* op, const char* variant, const std::vector<Shape>& inputs, F f,
                Composition composition) {
  return {.op = op,
          .variant = variant,
          .inputs = inputs,
          .f = f,
          .composition = [composition](Vars v) { return composition(v); },
          .bounded = [composition](BoundedVars v) { return composition(v); }};
}

/// The properties of an attention case besides its head mapping.
struct AttentionShape {
  Index seq, head_dim, value_dim;
  bool one_lambda = false;
  bool sinks = false;
  Visibility visible{};
  BlockSparsity blocks{};
  double logit_softcap = 0;
};

/// Makes a case with B = 2 and inputs q, k, v, then lambda and sinks if present.
OpCase attention_case(const char* variant, const HeadMapping& mapping,
                      const AttentionShape& shape) {
  const bool differential = mapping.maps == 2;
  const Index seq = shape.seq;
  std::vector<Shape> inputs{{2, seq, mapping.query_heads, shape.head_dim},
                            {2, seq, mapping.key_heads, shape.head_dim},
                            {2, seq, mapping.value_heads, shape.value_dim}};
  if (differential)
    inputs.push_back(shape.one_lambda ? Shape{} : Shape{2, seq, std::ssize(mapping.outputs)});
  if (shape.sinks) inputs.push_back({mapping.query_heads});
  const auto operands = [mapping, shape, differential]<class V>(const std::vector<V>& v) {
    return BasicAttentionInputs<V>{.mapping = mapping,
                                   .q = v[0],
                                   .k = v[1],
                                   .v = v[2],
                                   .lambda = differential ? v[3] : V(),
                                   .sinks = shape.sinks ? v.back() : V(),
                                   .scale = attention_scale(shape.head_dim),
                                   .visible = shape.visible,
                                   .blocks = shape.blocks,
                                   .logit_softcap = shape.logit_softcap};
  };
  return composed(
      "attention", variant, inputs, [operands](Vars v) { return attention(operands(v)); },
      [operands](auto& v) { return composition::attention(operands(v)); });
}

/// Attention of x (B, T, 2, D) to x.
template <class V>
BasicAttentionInputs<V> to_itself(const V& x) {
  return {.mapping = HeadMapping::standard(2, 2),
          .q = x,
          .k = x,
          .v = x,
          .scale = attention_scale(x.shape().last())};
}

/// Three documents in 2 sequences of 7 tokens.
Visibility three_documents() {
  const std::vector<std::int32_t> starts{0, 0, 0, 3, 3, 3, 3, 0, 1, 1, 1, 1, 1, 6};
  return {0, std::make_shared<const std::vector<std::int32_t>>(starts)};
}

/// One document in the first of 2 sequences, two in the other.
DocumentOffsets two_documents(Index seq) {
  std::vector<std::int32_t> starts(2 * seq);
  std::fill(starts.begin() + seq + 21, starts.end(), 21);
  return std::make_shared<const std::vector<std::int32_t>>(std::move(starts));
}

/// Two maps that read different value heads and share some with others.
HeadMapping crossed_values() {
  HeadMapping mapping{2, 4, 2, 2, {}};
  mapping.outputs = {{{0, 2}, {0, 1}, {0, 1}}, {{1, 3}, {0, 1}, {0, 1}}};
  return mapping;
}

/// The coarse ops and their compositions, with equal signatures.
struct Fused {
  Var embedding(const Var& table) const { return difftape::embedding(kTokens, {2, 3}, table); }
  Var rope(const Var& x, const RopeRule& rule, Index first) const {
    return difftape::rope(x, std::make_shared<const RopeTable>(9, 6, rule), first);
  }
  Var linear(auto&&... x) const { return difftape::linear(x...); }
  Var rms_norm(auto&&... x) const { return difftape::rms_norm(x...); }
  Var swiglu_linear(auto&&... x) const { return difftape::swiglu_linear(x...); }
  Var cross_entropy(auto&&... x) const { return difftape::cross_entropy(x...); }
  Var route(auto&&... x) const { return difftape::route(x...).weights; }
  Var router_loss(auto&&... x) const { return difftape::router_loss(x...); }
  Var experts(const Var& x, const Var& weights, const Routing& routing,
              const std::vector<Var>& gate, const std::vector<Var>& up,
              const std::vector<Var>& down, const Var& residual) const {
    return difftape::experts(x, {weights, std::make_shared<const Routing>(routing)},
                             {gate, up, down}, residual);
  }
};
struct Composed {
  auto embedding(const auto& table) const { return composition::embedding(kTokens, {2, 3}, table); }
  auto rope(auto&&... x) const { return composition::rope(x...); }
  auto linear(auto&&... x) const { return composition::linear(x...); }
  auto rms_norm(auto&&... x) const { return composition::rms_norm(x...); }
  auto swiglu_linear(auto&&... x) const { return composition::swiglu_linear(x...); }
  auto cross_entropy(auto&&... x) const { return composition::cross_entropy(x...); }
  auto route(auto&&... x) const { return composition::route(x...); }
  auto router_loss(auto&&... x) const { return composition::router_loss(x...); }
  auto experts(auto&&... x) const { return composition::experts(x...); }
};

/// Makes a case of f(ops, inputs), which must give the same with Fused and Composed.
template <class F>
OpCase coarse(const char* op, const char* variant, const std::vector<Shape>& inputs, F f) {
  return composed(
      op, variant, inputs, [f](Vars v) { return f(Fused(), v); },
      [f](auto& v) { return f(Composed(), v); });
}

/// Makes a cross-entropy case; the last axis of `hidden` is 3.
OpCase loss_case(const char* variant, const Shape& hidden, Index vocab,
                 const std::vector<std::int32_t>& targets, const LossOptions& options) {
  return coarse("cross_entropy", variant, {hidden, {vocab, 3}},
                [targets, options](auto ops, auto& v) {
                  return ops.cross_entropy(v[0], v[1], targets, options);
                });
}

/// Makes a case with 6 tokens and 5 experts.
OpCase route_case(const char* variant, const RouterRule& rule, const std::vector<real>& bias = {}) {
  return coarse("route", variant, {{6, 5}},
                [rule, bias](auto ops, auto& v) { return ops.route(v[0], rule, bias); });
}

/// Returns a choice of experts whose loads differ.
Routing some_routing(Index tokens, Index experts, Index top_k) {
  Tensor scores = Tensor::empty({tokens, experts});
  fill_normal(scores, RandomStream(1, "routing"), 1);
  return choose_experts(scores, {}, top_k);
}

OpCase router_loss_case(const char* variant, RouterScore score, const RouterLosses& weights) {
  return coarse("router_loss", variant, {{6, 5}}, [=](auto ops, auto& v) {
    return ops.router_loss(v[0], score, some_routing(6, 5, 2), weights);
  });
}

/// Makes a case with 3 experts; inputs are x, the weights, gates, ups, downs, and a residual.
OpCase experts_case(const char* variant, const Shape& x, Index top_k, bool residual) {
  const Index tokens = x.rows(), width = x.last(), hidden = 4;
  std::vector<Shape> inputs{x, {tokens, top_k}};
  for (int i = 0; i < 6; ++i) inputs.push_back({hidden, width});
  for (int i = 0; i < 3; ++i) inputs.push_back({width, hidden});
  if (residual) inputs.push_back(x);
  return coarse("experts", variant, inputs, [=]<class V>(auto ops, const std::vector<V>& v) {
    const auto three = [&v](int first) { return std::vector<V>{&v[first], &v[first] + 3}; };
    return ops.experts(v[0], v[1], some_routing(tokens, 3, top_k), three(2), three(5), three(8),
                       residual ? v[11] : V());
  });
}

std::vector<OpCase> primitives() {
  return {
      primitive("add", "", {{3, 4}, {3, 4}}, [](auto& v) { return add(v[0], v[1]); }),
      primitive("add", "broadcast", {{2, 3, 4}, {3, 1}}, [](auto& v) { return add(v[0], v[1]); }),
      primitive("add", "itself", {{3, 4}}, [](auto& v) { return add(v[0], v[0]); }),
      primitive("sub", "", {{3, 4}, {3, 4}}, [](auto& v) { return sub(v[0], v[1]); }),
      primitive("sub", "broadcast", {{4}, {2, 3, 4}}, [](auto& v) { return sub(v[0], v[1]); }),
      primitive("mul", "", {{3, 4}, {3, 4}}, [](auto& v) { return mul(v[0], v[1]); }),
      primitive("mul", "broadcast", {{2, 1, 4}, {3, 1}}, [](auto& v) { return mul(v[0], v[1]); }),
      primitive("mul", "scalar", {{3, 4}, {}}, [](auto& v) { return mul(v[0], v[1]); }),
      primitive("affine", "", {{3, 5}}, [](auto& v) { return affine(v[0], -1.5, 0.25); }),
      primitive("exp", "", {{3, 5}}, [](auto& v) { return exp(v[0]); }),
      primitive(
          "log", "", {{3, 5}}, [](auto& v) { return log(v[0]); }, true),
      primitive("sigmoid", "", {{3, 5}}, [](auto& v) { return sigmoid(v[0]); }),
      primitive(
          "rsqrt", "", {{3, 5}}, [](auto& v) { return rsqrt(v[0]); }, true),
      primitive("softcap", "", {{3, 7}}, [](auto& v) { return softcap(v[0], 1.5); }),
      primitive("softmax", "", {{3, 5}}, [](auto& v) { return softmax(v[0]); }),
      primitive("sum", "", {{3, 5}}, [](auto& v) { return sum(v[0]); }),
      primitive("sum_last", "", {{2, 3, 5}}, [](auto& v) { return sum_last(v[0]); }),
      primitive("matmul", "", {{5, 3}, {3, 4}}, [](auto& v) { return matmul(v[0], v[1]); }),
      primitive("matmul", "batched", {{2, 5, 3}, {2, 3, 4}},
                [](auto& v) { return matmul(v[0], v[1]); }),
      primitive("transpose", "", {{2, 3, 4}}, [](auto& v) { return transpose(v[0], 0, -1); }),
      primitive("slice", "", {{2, 5, 3}}, [](auto& v) { return slice(v[0], 1, 1, 3); }),
      primitive("reshape", "", {{2, 6}},
                [](auto& v) {
                  return reshape(v[0], Shape{3, 4});
                }),
  };
}

std::vector<OpCase> coarse_ops() {
  return {
      coarse("embedding", "", {{7, 3}}, [](auto ops, auto& v) { return ops.embedding(v[0]); }),
      coarse("linear", "", {{2, 3, 5}, {4, 5}},
             [](auto ops, auto& v) { return ops.linear(v[0], v[1]); }),
      coarse("linear", "residual", {{2, 3, 5}, {4, 5}, {2, 3, 4}},
             [](auto ops, auto& v) { return ops.linear(v[0], v[1], v[2]); }),
      coarse("rms_norm", "", {{2, 3, 7}, {7}},
             [](auto ops, auto& v) { return ops.rms_norm(v[0], v[1], 1e-5); }),
      coarse("rope", "", {{2, 5, 3, 6}},
             [](auto ops, auto& v) { return ops.rope(v[0], kRope, 0); }),
      coarse("rope", "from_a_position", {{2, 5, 3, 6}},
             [](auto ops, auto& v) { return ops.rope(v[0], kRope, 4); }),
      coarse("rope", "yarn", {{2, 5, 3, 6}},
             [](auto ops, auto& v) { return ops.rope(v[0], kYarn, 4); }),
      coarse("swiglu_linear", "", {{3, 5}, {3, 5}, {4, 5}},
             [](auto ops, auto& v) { return ops.swiglu_linear(v[0], v[1], v[2]); }),
      coarse("swiglu_linear", "itself", {{3, 5}, {4, 5}},
             [](auto ops, auto& v) { return ops.swiglu_linear(v[0], v[0], v[1]); }),
      coarse("swiglu_linear", "residual", {{3, 5}, {3, 5}, {4, 5}, {3, 4}},
             [](auto ops, auto& v) { return ops.swiglu_linear(v[0], v[1], v[2], v[3]); }),
      loss_case("", {6, 3}, 7, kTokens, {}),
      coarse(
          "cross_entropy", "scaled", {{2, 3, 3}, {7, 3}},
          [](auto ops, auto& v) { return affine(ops.cross_entropy(v[0], v[1], kTokens), 0.5, 0); }),
      loss_case("ignored", {2, 3, 3}, 7, kSomeIgnored, {}),
      loss_case("z_loss", {2, 3, 3}, 7, kSomeIgnored, {.z_loss = 0.3}),
      loss_case("softcap", {6, 3}, 19, kTokens, {.softcap = 1.5}),
      loss_case("z_loss_softcap", {6, 3}, 7, kTokens, {.z_loss = 0.2, .softcap = 2}),
      route_case("", {RouterScore::softmax, 2, true}),
      route_case("softmax_plain", {RouterScore::softmax, 2, false}),
      route_case("sigmoid", {RouterScore::sigmoid, 2, true}),
      route_case("sigmoid_plain", {RouterScore::sigmoid, 3, false}),
      route_case("bias", {RouterScore::sigmoid, 2, true}, {0.3, -0.2, 0.1, 0.4, -0.4}),
      router_loss_case("", RouterScore::softmax, {.load_balancing = 0.7}),
      router_loss_case("sigmoid", RouterScore::sigmoid, {.load_balancing = 0.7}),
      router_loss_case("z_loss", RouterScore::softmax, {.z_loss = 0.3}),
      router_loss_case("both_sigmoid", RouterScore::sigmoid,
                       {.load_balancing = 0.7, .z_loss = 0.3}),
      experts_case("", {6, 5}, 2, false),
      experts_case("residual", {2, 3, 5}, 2, true),
      experts_case("one_of_three", {6, 5}, 1, false),
      experts_case("all", {4, 5}, 3, false),
      composed(
          "checkpointed", "", {{2, 3, 4}, {3, 1}},
          [](Vars v) {
            const std::vector<Var> y = checkpointed({v[0], v[1]}, [](Vars x) {
              return std::vector{mul(softmax(x[0]), sigmoid(x[1])), sigmoid(x[0])};
            });
            return mul(y[0], y[1]);
          },
          [](auto& v) { return mul(mul(softmax(v[0]), sigmoid(v[1])), sigmoid(v[0])); }),
      attention_case("mha", HeadMapping::standard(2, 2), {.seq = 5, .head_dim = 4, .value_dim = 4}),
      attention_case("gqa", HeadMapping::standard(4, 2), {.seq = 3, .head_dim = 3, .value_dim = 5}),
      attention_case("blocks", HeadMapping::standard(1, 1),
                     {.seq = 67, .head_dim = 2, .value_dim = 3}),
      attention_case("sinks", HeadMapping::standard(4, 2),
                     {.seq = 5, .head_dim = 3, .value_dim = 2, .sinks = true}),
      attention_case("window", HeadMapping::standard(2, 1),
                     {.seq = 9, .head_dim = 3, .value_dim = 2, .visible = {.sliding_window = 3}}),
      attention_case("window_blocks", HeadMapping::standard(1, 1),
                     {.seq = 133, .head_dim = 2, .value_dim = 2, .visible = {.sliding_window = 5}}),
      attention_case("softcap", HeadMapping::standard(4, 2),
                     {.seq = 9, .head_dim = 3, .value_dim = 2, .logit_softcap = 1.2}),
      attention_case("softcap_blocks", HeadMapping::standard(1, 1),
                     {.seq = 67, .head_dim = 2, .value_dim = 3, .logit_softcap = 1.5}),
      attention_case(
          "v1_softcap", HeadMapping::paired(4, 2),
          {.seq = 5, .head_dim = 3, .value_dim = 6, .one_lambda = true, .logit_softcap = 1.2}),
      attention_case("v2_softcap_sinks_window", HeadMapping::doubled(2, 1),
                     {.seq = 9,
                      .head_dim = 3,
                      .value_dim = 2,
                      .sinks = true,
                      .visible = {.sliding_window = 4},
                      .logit_softcap = 1.2}),
      attention_case("v2_split_half_softcap", HeadMapping::doubled(4, 2, true),
                     {.seq = 5, .head_dim = 3, .value_dim = 3, .logit_softcap = 1.2}),
      attention_case("documents", HeadMapping::standard(2, 1),
                     {.seq = 7, .head_dim = 3, .value_dim = 2, .visible = three_documents()}),
      composed(
          "attention", "itself", {{2, 5, 2, 3}}, [](Vars v) { return attention(to_itself(v[0])); },
          [](auto& v) { return composition::attention(to_itself(v[0])); }),
      attention_case("v1", HeadMapping::paired(4, 4),
                     {.seq = 5, .head_dim = 3, .value_dim = 6, .one_lambda = true}),
      attention_case("v1_gqa", HeadMapping::paired(8, 4),
                     {.seq = 3, .head_dim = 2, .value_dim = 4, .one_lambda = true}),
      attention_case("v1_sinks", HeadMapping::paired(4, 2),
                     {.seq = 5, .head_dim = 2, .value_dim = 4, .one_lambda = true, .sinks = true}),
      attention_case("v2", HeadMapping::doubled(2, 2), {.seq = 5, .head_dim = 4, .value_dim = 4}),
      attention_case("v2_mqa", HeadMapping::doubled(3, 1),
                     {.seq = 4, .head_dim = 2, .value_dim = 2}),
      attention_case("v2_blocks", HeadMapping::doubled(1, 1),
                     {.seq = 67, .head_dim = 2, .value_dim = 2}),
      attention_case("v2_window_sinks", HeadMapping::doubled(2, 1),
                     {.seq = 9,
                      .head_dim = 2,
                      .value_dim = 3,
                      .sinks = true,
                      .visible = {.sliding_window = 4}}),
      attention_case("v2_documents", HeadMapping::doubled(2, 2),
                     {.seq = 7, .head_dim = 2, .value_dim = 2, .visible = three_documents()}),
      attention_case("v2_split_half", HeadMapping::doubled(4, 2, true),
                     {.seq = 5, .head_dim = 3, .value_dim = 3}),
      attention_case("v2_split_half_sinks", HeadMapping::doubled(2, 2, true),
                     {.seq = 5,
                      .head_dim = 2,
                      .value_dim = 3,
                      .sinks = true,
                      .visible = {.sliding_window = 3}}),
      attention_case("crossed_values", crossed_values(), {.seq = 5, .head_dim = 3, .value_dim = 4}),
      attention_case("selected", HeadMapping::standard(4, 2),
                     {.seq = 69, .head_dim = 3, .value_dim = 2, .blocks = {16, 2}}),
      attention_case("selected_own", HeadMapping::standard(1, 1),
                     {.seq = 67, .head_dim = 2, .value_dim = 2, .blocks = {32, 1}}),
      attention_case("v2_selected", HeadMapping::doubled(2, 1),
                     {.seq = 69, .head_dim = 2, .value_dim = 2, .blocks = {16, 3}}),
      attention_case("v2_selected_separately", HeadMapping::doubled(2, 2),
                     {.seq = 69, .head_dim = 2, .value_dim = 2, .blocks = {16, 2, true}}),
      attention_case("v2_split_half_selected_separately", HeadMapping::doubled(2, 2, true),
                     {.seq = 52,
                      .head_dim = 2,
                      .value_dim = 2,
                      .sinks = true,
                      .blocks = {16, 2, true},
                      .logit_softcap = 1.2}),
      attention_case("v1_selected_separately", HeadMapping::paired(4, 4),
                     {.seq = 52, .head_dim = 2, .value_dim = 4, .blocks = {16, 2, true}}),
      attention_case("v2_selected_window_documents", HeadMapping::doubled(1, 1),
                     {.seq = 70,
                      .head_dim = 2,
                      .value_dim = 2,
                      .visible = {45, two_documents(70)},
                      .blocks = {16, 2}}),
  };
}

}  // namespace

std::vector<Tensor> OpCase::make_inputs() const {
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Tensor tensor = Tensor::empty(inputs[i]);
    fill_normal(tensor, RandomStream(1, fmt::format("{}/{}", name(), i)), scale);
    for (real& x : tensor.values()) x = positive ? std::abs(x) + real(0.5) : x;
    tensors.push_back(tensor);
  }
  return tensors;
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> cases = primitives();
  std::ranges::move(coarse_ops(), std::back_inserter(cases));
  return cases;
}

}  // namespace difftape
