// gradcheck itself lets right gradients pass and nothing else.
#include "autograd/gradcheck/gradcheck.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

/// x^3 of one variable "x", with the gradient 3 x^2 times `factor`, plus `offset`.
Differentiable cube(const Tensor& x, double factor, double offset = 0) {
  Differentiable f{{"x"}, {x}, {}, {}};
  f.value = [x] {
    Tensor y = x.clone();
    for (real& v : y.values()) v = v * v * v;
    return y;
  };
  f.gradients = [x, factor, offset](const Tensor& cotangent) {
    Tensor dx = Tensor::like(x);
    for (Index i = 0; i < x.size(); ++i) {
      const double slope = 3 * x.data()[i] * x.data()[i] * factor + offset;
      dx.data()[i] = static_cast<real>(slope * cotangent.data()[i]);
    }
    return std::vector<Tensor>{dx};
  };
  return f;
}

Tensor three(double a, double b, double c) {
  return Tensor::from(
      {3}, std::vector<real>{static_cast<real>(a), static_cast<real>(b), static_cast<real>(c)});
}
const Tensor kOrdinary = three(0.5, -1, 2);

Expectation always(ExpectedGradient expected) {
  return [expected](const std::string&) { return expected; };
}

/// Fails with a message, for good or so that other inputs may tell.
void expect_failure(const GradcheckResult& result, const testing::Matcher<std::string>& message,
                    bool inconclusive = false) {
  EXPECT_THAT(result.failure, message);
  EXPECT_EQ(result.inconclusive, inconclusive);
}

TEST(Gradcheck, a_right_gradient_passes_far_below_the_tolerance) {
  const GradcheckResult result = gradcheck(cube(kOrdinary, 1));
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.elements, 3);
  EXPECT_EQ(result.zeros, 0);
  EXPECT_LT(result.worst_error, 1e-12);
}

TEST(Gradcheck, a_gradient_that_is_wrong_in_the_tenth_digit_fails) {
  expect_failure(gradcheck(cube(kOrdinary, 1 + 1e-9)),
                 MatchesRegex("x: relative error 1.0e-09 is over the tolerance 1e-10"));
}

TEST(Gradcheck, one_wrong_element_is_enough_to_fail) {
  Differentiable f = cube(kOrdinary, 1);
  f.gradients = [right = f.gradients](const Tensor& cotangent) {
    std::vector<Tensor> dx = right(cotangent);
    dx[0].data()[1] += real(1e-6);
    return dx;
  };
  EXPECT_THAT(gradcheck(f).failure, HasSubstr("is over the tolerance"));
}

TEST(Gradcheck, nan_fails) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  expect_failure(gradcheck(cube(kOrdinary, nan)), HasSubstr("relative error nan"));
  expect_failure(gradcheck(cube(three(1, nan, 1), 1)), HasSubstr("relative error nan"));
}

TEST(Gradcheck, a_trivial_gradient_fails_as_inconclusive) {
  expect_failure(gradcheck(cube(three(0.01, 0.01, 0.005), 1)),
                 HasSubstr("x: trivial, its largest gradient is "), true);
}

TEST(Gradcheck, a_wrong_gradient_is_not_excused_by_a_trivial_one) {
  Differentiable f = cube(three(0.01, 0.01, 0.005), 1);
  const Differentiable wrong = cube(kOrdinary, 2);
  f.names.push_back("wrong");
  f.variables.push_back(wrong.variables[0]);
  f.value = [a = f.value, b = wrong.value] {
    Tensor y = a();
    y.add(b());
    return y;
  };
  f.gradients = [a = f.gradients, b = wrong.gradients](const Tensor& cotangent) {
    return std::vector<Tensor>{a(cotangent)[0], b(cotangent)[0]};
  };
  expect_failure(gradcheck(f), StartsWith("wrong: relative error 1.0e+00"));
}

TEST(Gradcheck, an_expected_zero_fails_if_either_side_is_not_zero) {
  Differentiable constant = cube(kOrdinary, 0);
  constant.value = [] { return Tensor::full({3}, 1); };
  const GradcheckResult zero = gradcheck(constant, always(ExpectedGradient::zero));
  EXPECT_EQ(zero.failure, "");
  EXPECT_EQ(zero.zeros, 3);
  constant.gradients = [](const Tensor&) {
    return std::vector<Tensor>{Tensor::full({3}, real(1e-9))};
  };
  expect_failure(gradcheck(constant, always(ExpectedGradient::zero)),
                 "x: 1.0e-09, but must be zero");
  EXPECT_THAT(gradcheck(cube(kOrdinary, 0), always(ExpectedGradient::zero)).failure,
              HasSubstr("but must be zero"));
}

TEST(Gradcheck, tiny_gradients_are_compared_by_their_absolute_error) {
  const Tensor x = three(0.01, -0.02, 0.01);
  EXPECT_EQ(gradcheck(cube(x, 1), always(ExpectedGradient::near_zero)).failure, "");
  expect_failure(gradcheck(cube(x, 1, 1e-8), always(ExpectedGradient::near_zero)),
                 HasSubstr("x: absolute error "));
  EXPECT_THAT(gradcheck(cube(kOrdinary, 1), always(ExpectedGradient::near_zero)).failure,
              HasSubstr("but should be near zero"));
}

TEST(Gradcheck, reports_numeric_gradients_that_disagree) {
  // Noise in the twelfth digit of the value: no step can tell ten digits of the slope.
  Differentiable f = cube(kOrdinary, 1);
  f.value = [right = f.value] {
    Tensor y = right();
    for (real& v : y.values()) v += static_cast<real>(1e-11 * std::sin(1e9 * double{v}));
    return y;
  };
  expect_failure(gradcheck(f), HasSubstr("differences tell it to "), true);
}

TEST(Gradcheck, passes_noisy_values_only_if_differences_resolve_a_third_of_the_tolerance) {
  int passed = 0, unclear = 0;
  for (double noise = 1e-13; noise < 1e-11; noise *= 1.2) {
    Differentiable f = cube(kOrdinary, 1);
    f.value = [right = f.value, noise] {
      Tensor y = right();
      for (real& v : y.values()) v += static_cast<real>(noise * std::sin(1e9 * double{v}));
      return y;
    };
    const GradcheckResult result = gradcheck(f);
    if (result.passed()) {
      EXPECT_LE(result.worst_error, kGradcheckTolerance / 3) << noise;
      ++passed;
    } else {
      EXPECT_TRUE(result.inconclusive) << result.failure;
      EXPECT_THAT(result.unclear, ElementsAre("x"));
      ++unclear;
    }
  }
  EXPECT_GT(passed, 0);
  EXPECT_GT(unclear, 0);
}

TEST(Gradcheck, a_jump_that_every_step_crosses_is_inconclusive) {
  // Stencils of equal steps see the same slope in the jump; other steps do not.
  Differentiable f = cube(kOrdinary, 1);
  f.value = [x = f.variables[0], right = f.value] {
    Tensor y = right();
    if (x.data()[0] > 0.5 + 1e-5) y.data()[0] += 1;
    return y;
  };
  expect_failure(gradcheck(f), HasSubstr("differences tell it to "), true);
}

TEST(Gradcheck, an_unchecked_variable_is_not_perturbed) {
  const GradcheckResult result = gradcheck(cube(kOrdinary, 2), always(ExpectedGradient::unchecked));
  EXPECT_EQ(result.failure, "");
  EXPECT_EQ(result.elements, 0);
}

TEST(Gradcheck, an_evaluation_that_changes_its_input_fails) {
  Differentiable f = cube(kOrdinary.clone(), 1);
  f.value = [x = f.variables[0], right = f.value]() mutable {
    const Tensor y = right();
    x.data()[2] = 2;  // undoes the perturbation, which is then left behind
    x.data()[0] += real(1e-9);
    return y;
  };
  EXPECT_NE(gradcheck(f).failure, "");
  Differentiable last = cube(kOrdinary.clone(), 1);
  last.gradients = [x = last.variables[0], right = last.gradients](const Tensor& dy) mutable {
    const std::vector<Tensor> dx = right(dy);
    x.data()[0] += real(1e-12);
    return dx;
  };
  EXPECT_EQ(gradcheck(last).failure, "evaluation changed an input");
}

}  // namespace
}  // namespace difftape
