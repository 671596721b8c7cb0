#include "autograd/tape.h"

#include "autograd/ops.h"
#include "core/error.h"
#include "core/name_scope.h"
#include "core/pool.h"
#include "core/profile.h"
#include "core/rows.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Tape, a_value_used_twice_gets_the_sum_of_both_gradients) {
  Tape tape;
  const Var x = tape.input(Tensor::full({3}, 2));
  const Var y = sum(add(mul(x, x), x));
  tape.backward(y);
  for (real g : tape.gradient_of(x).values()) EXPECT_EQ(g, 5);
}

TEST(Tape, a_shared_gradient_is_not_changed_for_the_other_owner) {
  Tape tape;
  const Var a = tape.input(Tensor::full({2}, 1)), b = tape.input(Tensor::full({2}, 1));
  const Var y = add(a, b);  // hands the same dy to both
  tape.backward(sum(add(y, affine(a, 3, 0))));
  EXPECT_EQ(tape.gradient_of(a).data()[0], 4);
  EXPECT_EQ(tape.gradient_of(b).data()[0], 1);
}

TEST(Tape, two_buffers_of_one_value_add_to_the_same_gradient) {
  { const Tensor garbage = Tensor::full({3}, 1000); }  // memory that the pool hands out again
  Tape tape;
  const Var x = tape.input(Tensor::full({3}, 2));
  const Var twice = record("twice", Tensor::full({3}, 4), {x, x},
                           [a = x.gradient(), b = x.gradient()](const Tensor& dy) {
                             Gradient::Buffer first = a.buffer(), second = b.buffer();
                             EXPECT_EQ(first.grad.data(), second.grad.data());
                             first.grad.copy_from(dy);
                             second.grad.add(dy);
                           });
  tape.backward(sum(twice));
  for (real g : tape.gradient_of(x).values()) EXPECT_EQ(g, 2);
}

TEST(Tape, runs_backward_once) {
  Tape tape;
  const Var x = tape.input(Tensor::full({3}, 2));
  const Var y = sum(mul(x, x)), z = sum(x);
  tape.backward(y);
  EXPECT_THAT([&] { tape.backward(z); },
              ThrowsMessage<UsageError>(HasSubstr("call backward once")));
  EXPECT_EQ(tape.gradient_of(x).data()[0], 4);
}

TEST(Tape, rejects_an_op_over_two_tapes) {
  Tape one, two;
  const Var x = one.input(Tensor::full({3}, 2)), y = two.input(Tensor::full({3}, 2));
  EXPECT_THAT([&] { mul(x, y); }, ThrowsMessage<UsageError>(
                                      "mul: its inputs are on two tapes; need values of one tape"));
}

TEST(Tape, keeps_an_operand_once_for_all_products_that_follow_each_other) {
  const Index rows = 64, width = 32, bytes_of_output = rows * 16 * Index{sizeof(real)};
  Tape tape(Tape::Mode::training, Precision::bf16_emulated);
  const Var x = tape.input(test::random({rows, width}, "x")),
            other = tape.input(test::random({rows, width}, "other")),
            w = tape.input(test::random({16, width}, "w"));
  std::vector<Var> results;
  const auto bytes_of_linear = [&](const Var& of) {
    const auto before = pool::stats().bytes_in_use;
    results.push_back(linear(of, w));
    return static_cast<Index>(pool::stats().bytes_in_use - before);
  };
  EXPECT_EQ(bytes_of_linear(x), bytes_of_output + 2 * rows * width);
  EXPECT_EQ(bytes_of_linear(x), bytes_of_output);
  EXPECT_EQ(bytes_of_linear(other), bytes_of_output + 2 * rows * width);
  EXPECT_FALSE(test::same(results[0].value(), results[2].value()));
}

TEST(Tape, keeps_no_operand_after_backward) {
  const Index size = 64 * 32, bytes = size * Index{sizeof(real)};
  Tape tape(Tape::Mode::training, Precision::bf16_emulated);
  const Var w = tape.input(test::random({1, size}, "w"));
  const auto before = pool::stats().bytes_in_use;
  const Var y = linear(tape.constant(test::random({1, size}, "x")), w);
  EXPECT_GE(pool::stats().bytes_in_use, before + bytes + 2 * size);  // x and its copy
  tape.backward(y, Tensor::full({1, 1}, 1));
  EXPECT_LE(pool::stats().bytes_in_use, before + bytes + 256);  // the gradient of w
}

TEST(Tape, parameters_accumulate_over_tapes_until_they_are_zeroed) {
  ParameterSet parameters;
  Parameter& w = parameters.declare("w", {2}, Role::norm_weight, Init::constant(3));
  parameters.initialize(1);
  const auto pass = [&] {
    Tape tape;
    tape.backward(sum(affine(tape.parameter(w), 2, 0)));
  };
  pass();
  EXPECT_EQ(w.grad.data()[1], 2);
  pass();
  EXPECT_EQ(w.grad.data()[1], 4);
  w.zero_grad();
  pass();
  EXPECT_EQ(w.grad.data()[1], 2);
}

TEST(Tape, a_parameter_that_no_gradient_reaches_gets_zeros) {
  ParameterSet parameters;
  Parameter& used = parameters.declare("used", {2}, Role::norm_weight, Init::constant(1));
  Parameter& idle = parameters.declare("idle", {2}, Role::norm_weight, Init::constant(1));
  parameters.initialize(1);
  idle.grad.fill(7);
  Tape tape;
  tape.parameter(idle);
  tape.backward(sum(tape.parameter(used)));
  EXPECT_TRUE(idle.has_gradient);
  EXPECT_EQ(idle.grad.data()[0], 0);
}

TEST(Tape, a_branch_that_does_not_reach_the_result_adds_nothing) {
  Tape tape;
  const Var x = tape.input(Tensor::full({3}, 2));
  const Var y = affine(x, 5, 0);
  exp(y);
  tape.backward(sum(y));
  for (real g : tape.gradient_of(x).values()) EXPECT_EQ(g, 5);
}

TEST(Tape, backward_releases_saved_tensors_as_it_goes) {
  const size_t before = pool::stats().bytes_in_use;
  Tape tape;
  Var x = tape.input(Tensor::full({1000}, real(0.5)));
  for (int i = 0; i < 8; ++i) x = exp(x);
  const Var y = sum(x);
  x = Var();
  EXPECT_GE(pool::stats().bytes_in_use - before, 8 * 1000 * sizeof(real));
  tape.backward(y);
  EXPECT_LT(pool::stats().bytes_in_use - before, 3 * 1001 * sizeof(real));
}

TEST(Tape, inference_records_nothing) {
  Tape tape(Tape::Mode::inference);
  const Var y = exp(tape.input(Tensor::full({3}, 0)));
  EXPECT_EQ(tape.size(), 0u);
  EXPECT_EQ(y.value().data()[0], 1);
  EXPECT_THROW(tape.backward(y, y.value()), ShapeError);
}

TEST(Tape, times_the_value_and_the_pullback_of_each_op_under_the_name_of_its_layer) {
  profile::Recorder recorder;
  Tape tape;
  const Var x = tape.input(Tensor::full({3}, 2));
  {
    const profile::Recording recording(recorder);
    const profile::Span pass(profile::Category::pass, "forward");
    const Var y = [&] {
      const NameScope scope("layer");
      return exp(x);
    }();
    tape.backward(sum(y));
  }
  std::string seen;
  for (const profile::Event& event : recorder.events()) {
    seen += fmt::format("{} {} '{}'\n", to_string(event.category), event.name, event.scope);
  }
  EXPECT_EQ(seen,
            "pass forward ''\nforward exp 'layer'\nforward sum ''\nbackward sum ''\n"
            "backward exp 'layer'\n");
  EXPECT_EQ(recorder.events()[1].begin, recorder.events()[0].begin);
  EXPECT_EQ(recorder.events()[2].begin, recorder.events()[1].end);
}

TEST(Parameters, equal_declarations_start_equal_in_every_model) {
  const auto draw = [](std::uint64_t seed, bool with_another) {
    ParameterSet parameters;
    if (with_another) parameters.declare("other", {5}, Role::norm_weight, Init::normal(1));
    Parameter& w = parameters.declare("w", {3, 4}, Role::projection, Init::normal(0.02));
    parameters.initialize(seed);
    return w.value.clone();
  };
  const Tensor a = draw(1, false), b = draw(1, true), c = draw(2, false);
  EXPECT_TRUE(test::same(a, b));
  EXPECT_FALSE(test::same(a, c));
}

TEST(Ops, name_op_shapes_and_rule_when_shapes_are_wrong) {
  Tape tape;
  const auto var = [&](auto... extents) { return tape.input(Tensor::zeros({Index{extents}...})); };
  const std::vector<std::pair<std::function<void()>, const char*>> wrong{
      {[&] { matmul(var(8, 64, 128), var(8, 96, 256)); },
       "matmul: inner sizes differ: a is (8, 64, 128), b is (8, 96, 256); need a.shape[-1] == "
       "b.shape[-2]"},
      {[&] { linear(var(2, 3), var(4, 5)); },
       "linear: inner sizes differ: x is (2, 3), weight is (4, 5); need x.shape[-1] == "
       "weight.shape[1]"},
      {[&] { linear(var(3, 5), var(4, 5), var(3, 5)); },
       "linear: the residual is (3, 5); need (3, 4)"},
      {[&] { add(var(2, 3), var(4)); },
       "add: shapes do not broadcast: a is (2, 3), b is (4); need equal extents or 1 at axis -1"},
      {[&] { rms_norm(var(2, 3), var(4), 1e-5); },
       "rms_norm: x is (2, 3), weight is (4); need weight.shape == (x.shape[-1])"},
      {[&] { swiglu_linear(var(2, 3), var(3, 2), var(4, 3)); },
       "swiglu_linear: gate is (2, 3), up is (3, 2); need equal shapes"},
      {[&] { softmax(var()); }, "softmax: x is (); need a last axis that is not empty"},
      {[&] { slice(var(4, 3), 0, 2, 3); }, "slice: [2, 5) is not within axis 0 of (4, 3)"},
      {[&] { transpose(var(4, 3), 0, 2); }, "transpose: x is (4, 3); it has no axes 0 and 2"}};
  for (const auto& [op, message] : wrong) {
    EXPECT_THAT(op, ThrowsMessage<ShapeError>(message));
  }
}

TEST(Ops, name_tokens_or_targets_out_of_range_and_need_a_scored_one) {
  Tape tape;
  const Var table = tape.input(Tensor::zeros({4, 2})), hidden = tape.input(Tensor::zeros({2, 2}));
  const std::vector<std::int32_t> ids{1, 4}, none(2, kIgnoreIndex);
  const auto fails = [](const char* message) { return ThrowsMessage<DataError>(message); };
  EXPECT_THAT([&] { embedding(ids, Shape{2}, table); },
              fails("embedding: token 4 at position 1 is not in [0, 4)"));
  EXPECT_THAT([&] { cross_entropy(hidden, table, ids); },
              fails("cross_entropy: target 4 of row 1 is not in [0, 4)"));
  EXPECT_THAT([&] { cross_entropy(hidden, table, none); },
              fails("cross_entropy: all 2 targets are ignored; need at least one that is scored"));
}

/// Returns the events of a tape, one string per event.
std::vector<std::string> watched(Tape& tape, const std::function<void(Tape&)>& body) {
  std::vector<std::string> seen;
  const auto see = [&seen](const char* before) {
    return [&seen, before](const char* op, std::string_view scope, const Tensor& x) {
      seen.push_back(fmt::format("{}{} {} {}", before, op, scope, x.shape().str()));
    };
  };
  tape.set_events({.on_value = see(""), .on_gradient = see("d ")});
  body(tape);
  return seen;
}

TEST(Tape, events_report_values_and_then_gradients) {
  Tape tape;
  Tensor dx;
  const auto seen = watched(tape, [&](Tape& watched_tape) {
    const NameScope scope("layer");
    const Var x = watched_tape.input(Tensor::full({2}, 3));
    const Var y = sum(mul(x, watched_tape.constant(Tensor::full({2}, 2))));
    watched_tape.backward(y);
    dx = watched_tape.gradient_of(x);
  });
  EXPECT_EQ(seen, (std::vector<std::string>{"mul layer (2)", "sum layer ()", "d sum layer (2)",
                                            "d mul layer (2)"}));
  EXPECT_EQ(dx.data()[0], 2);
}

TEST(Tape, events_report_complete_parameter_gradients) {
  ParameterSet set;
  Parameter& twice = set.declare("twice", {2}, Role::other, Init::constant(3));
  Parameter& once = set.declare("once", {2}, Role::other, Init::constant(2));
  set.initialize(1);
  Tape tape;
  std::vector<std::pair<std::string, real>> complete;
  tape.set_events({.on_complete = [&](Parameter& parameter) {
    complete.emplace_back(parameter.name, parameter.grad.data()[0]);
  }});
  const Var first = exp(tape.parameter(twice));
  const Var product = mul(first, tape.parameter(once));
  tape.backward(sum(mul(product, tape.parameter(twice))));
  ASSERT_EQ(complete.size(), 2u);
  EXPECT_EQ(complete[0], std::pair(std::string("once"), once.grad.data()[0]));
  EXPECT_EQ(complete[1], std::pair(std::string("twice"), twice.grad.data()[0]));
  EXPECT_NEAR(twice.grad.data()[0], 2 * (std::exp(3.0) + 3 * std::exp(3.0)), 1e-10);
}

TEST(Tape, events_report_values_in_inference_mode) {
  Tape tape(Tape::Mode::inference);
  const auto seen = watched(tape, [](Tape& t) { exp(t.input(Tensor::full({2}, 3))); });
  EXPECT_EQ(seen, std::vector<std::string>{"exp  (2)"});
}

TEST(Tape, events_report_the_inside_of_an_op) {
  Tape tape;
  const auto seen = watched(tape, [](Tape& t) {
    const Var x = t.input(Tensor::full({2}, 3));
    t.backward(sum(checkpointed({x}, [](const auto& in) { return std::vector{exp(in[0])}; })[0]));
  });
  EXPECT_EQ(seen,
            (std::vector<std::string>{"exp  (2)", "checkpointed  (2)", "sum  ()", "d sum  (2)",
                                      "exp  (2)", "d exp  (2)", "d checkpointed  (2)"}));
}

TEST(Ops, cross_entropy_leaves_rows_that_are_not_scored_out_of_value_and_gradients) {
  const Tensor weight = test::random({5, 3}, "weight");
  Tensor all = test::random({4, 3}, "hidden"), some = Tensor::empty({2, 3});
  std::copy_n(all.row(1), 3, some.row(0));
  std::copy_n(all.row(2), 3, some.row(1));
  Row(all.row(0), 3) = std::numeric_limits<real>::quiet_NaN();
  Row(all.row(3), 3) = std::numeric_limits<real>::infinity();
  const std::vector<std::int32_t> targets{kIgnoreIndex, 4, 0, kIgnoreIndex}, scored{4, 0};

  Tape tape;
  const Var x = tape.input(all), w = tape.input(weight), y = cross_entropy(x, w, targets);
  tape.backward(y);
  Tape plain;
  const Var xs = plain.input(some), ws = plain.input(weight), ys = cross_entropy(xs, ws, scored);
  plain.backward(ys);

  EXPECT_EQ(y.value().item(), ys.value().item());
  const Tensor dx = tape.gradient_of(x), dxs = plain.gradient_of(xs);
  EXPECT_TRUE(test::same(tape.gradient_of(w), plain.gradient_of(ws)));
  EXPECT_TRUE(std::ranges::equal(dx.values().subspan(3, 6), dxs.values()));
  for (const Index row : {0, 3}) {
    for (Index j = 0; j < 3; ++j) EXPECT_EQ(dx.row(row)[j], 0);
  }
}

}  // namespace
}  // namespace difftape
