// Recomputation in backward: parameters, constants, errors.
#include "autograd/gradcheck/gradcheck.h"
#include "autograd/ops.h"
#include "core/name_scope.h"
#include "tests/support/tensors.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

/// A norm and a gated projection of x (B, C), as in a block of a model.
struct Part {
  ParameterSet parameters;
  Parameter& x = parameters.declare("x", {3, 4}, Role::projection, Init::normal(1));
  Parameter& norm_weight =
      parameters.declare("norm_weight", {4}, Role::norm_weight, Init::normal(1));
  Parameter& weight = parameters.declare("weight", {4, 4}, Role::projection, Init::normal(0.5));
  Part() { parameters.initialize(1); }

  Var operator()(const Var& in) {
    Tape& tape = in.tape();
    const Var h = rms_norm(in, tape.parameter(norm_weight), 0.1);
    return add(in, mul(h, sigmoid(linear(h, tape.parameter(weight)))));
  }
};

TEST(Checkpointed, gradients_of_input_and_parameters_match_finite_differences) {
  Part part;
  const GradcheckResult result = gradcheck(part.parameters, [&](Tape& tape) {
    const auto body = [&](const std::vector<Var>& in) { return std::vector<Var>{part(in[0])}; };
    const Var once = checkpointed({tape.parameter(part.x)}, body)[0];  // the parameters serve twice
    return sum(exp(checkpointed({once}, body)[0]));
  });
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.elements, 12 + 4 + 16);
}

TEST(Checkpointed, runs_its_body_once_more_and_only_if_a_gradient_arrives) {
  Part part;
  int runs = 0;
  const auto body = [&](const std::vector<Var>& in) {
    ++runs;
    return std::vector<Var>{part(in[0])};
  };
  Tape tape;
  const Var x = tape.parameter(part.x), y = checkpointed({x}, body)[0];
  EXPECT_EQ(runs, 1);
  checkpointed({x}, body);  // reaches nothing
  tape.backward(sum(y));
  EXPECT_EQ(runs, 3);
}

TEST(Checkpointed, of_a_value_without_gradient_still_gives_parameter_gradients) {
  Part part;
  const auto gradient_of_weight = [&](bool kept) {
    part.weight.zero_grad();
    Tape tape;
    const Var x = tape.constant(part.x.value);
    const auto body = [&](const std::vector<Var>& in) { return std::vector<Var>{part(in[0])}; };
    tape.backward(sum(kept ? part(x) : checkpointed({x}, body)[0]));
    return part.weight.grad.clone();
  };
  const Tensor kept = gradient_of_weight(true), again = gradient_of_weight(false);
  EXPECT_TRUE(test::same(kept, again));
  EXPECT_NE(kept.data()[0], 0);
}

TEST(Checkpointed, of_several_inputs_leaves_out_absent_ones_and_constants) {
  const Tensor values = test::random({3, 4}, "x");
  const auto gradient_of = [&](bool kept) {
    Tape tape;
    const Var x = tape.input(values), constant = tape.constant(values);
    const auto body = [](const std::vector<Var>& in) {
      EXPECT_FALSE(in[1].defined());
      return std::vector<Var>{mul(exp(in[2]), in[0])};
    };
    const std::vector<Var> inputs{constant, Var(), x};
    tape.backward(sum((kept ? body(inputs) : checkpointed(inputs, body))[0]));
    return tape.gradient_of(x);
  };
  EXPECT_TRUE(test::same(gradient_of(true), gradient_of(false)));
}

TEST(Checkpointed, an_error_in_the_second_run_names_the_layer_of_the_body) {
  Tape tape;
  int runs = 0;
  const Var x = tape.input(Tensor::full({2, 3}, 1));
  const Var y = checkpointed({x}, [&](const std::vector<Var>& in) {
    const NameScope scope("layers.7");
    return std::vector<Var>{++runs == 1 ? exp(in[0]) : reshape(in[0], {7})};
  })[0];
  const Var loss = sum(y);
  EXPECT_THAT([&] { tape.backward(loss); }, ThrowsMessage<ShapeError>(EndsWith("\nin layers.7")));
}

}  // namespace
}  // namespace difftape
