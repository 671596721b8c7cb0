// Every op in every precision against its composition in double: values and gradients differ by no
// more than the bound of the rounding errors.
#include "autograd/gradcheck/rounding.h"

#include "core/gemm_backend.h"
#include "tests/autograd/named_op_cases.h"
#include "tests/support/tensors.h"

namespace difftape {
namespace {

constexpr double kUnit = sizeof(real) == 4 ? 0x1p-24 : 0x1p-53;
constexpr double kUnitOfBf16 = 0x1p-8;
/// The reference is computed in double.
constexpr double kSlack = 1 + 0x1p-53 / kUnit;

const std::set<std::string> kOpsWithMatrixProducts{"attention", "cross_entropy", "experts",
                                                   "linear", "swiglu_linear"};

/// Returns the value of an op and the gradients of its inputs, for a random cotangent.
std::vector<Tensor> computed(const OpCase& c, Precision precision) {
  Tape tape(Tape::Mode::training, precision);
  std::vector<Var> inputs;
  for (const Tensor& x : c.make_inputs()) inputs.push_back(tape.input(x));
  const Var y = c.f(inputs);
  std::vector<Tensor> results{y.value().clone()};
  tape.backward(y, test::random(y.shape(), "cotangent"));
  for (const Var& x : inputs) results.push_back(tape.gradient_of(x));
  return results;
}

std::vector<std::vector<Bounded>> bounded(const OpCase& c, const Roundoff& roundoff) {
  BoundedTape tape(roundoff);
  std::vector<BoundedVar> inputs;
  for (const Tensor& x : c.make_inputs()) inputs.push_back(tape.input(x));
  const BoundedVar y = c.bounded(inputs);
  std::vector<std::vector<Bounded>> results{tape.values_of(y)};
  tape.backward(y, test::random(y.shape(), "cotangent"));
  for (const BoundedVar& x : inputs) results.push_back(tape.gradients_of(x));
  return results;
}

/// Returns the largest error in units of its bound.
double largest_error(const Tensor& x, const std::vector<Bounded>& expected) {
  double largest = 0;
  EXPECT_EQ(x.size(), std::ssize(expected));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double error = std::abs(static_cast<double>(x.values()[i]) - expected[i].value);
    const bool bounds = expected[i].error >= 0 && std::isfinite(expected[i].error);
    EXPECT_TRUE(bounds || !std::isfinite(expected[i].value)) << i << ": " << expected[i].error;
    if (error == 0) continue;
    largest = std::max(largest, error / (kSlack * expected[i].error));
    if (std::isnan(error)) return error;
  }
  return largest;
}

/// Returns the smallest bound relative to its value.
double tightness(const std::vector<Bounded>& expected) {
  double smallest = kInfinity;
  for (const Bounded& x : expected)
    if (x.value != 0) smallest = std::min(smallest, x.error / std::abs(x.value));
  return smallest;
}

struct EveryRoundedOp : testing::TestWithParam<OpCase> {
  /// Some bound of every result must be below `tight`, relative to the value. The gradient of a
  /// scalar is excepted: its terms may cancel (V1's lambda, DERIVATIONS.md, section 12).
  void expect_within_bounds(Precision precision, const Roundoff& roundoff, double tight) {
    const std::vector<Tensor> results = computed(GetParam(), precision);
    const auto expected = bounded(GetParam(), roundoff);
    ASSERT_EQ(results.size(), expected.size());
    double worst = 0;
    for (size_t i = 0; i < results.size(); ++i) {
      const std::string what = i == 0 ? "value" : fmt::format("gradient of input {}", i - 1);
      const double error = largest_error(results[i], expected[i]);
      EXPECT_LE(error, 1) << what;
      EXPECT_TRUE(tightness(expected[i]) < tight || expected[i].size() == 1) << what;
      worst = std::max(worst, error);
    }
    RecordProperty("error_over_bound", fmt::format("{:.2g}", worst));
  }
  bool has_matrix_product() const { return kOpsWithMatrixProducts.contains(GetParam().op); }
};

TEST_P(EveryRoundedOp, is_within_the_bound_of_its_rounding_errors) {
  expect_within_bounds(Precision::full, {kUnit}, 1000 * kUnit);
}

#ifndef DIFFTAPE_F64  // doubles are not rounded to bfloat16
TEST_P(EveryRoundedOp, in_bfloat16_is_within_the_bound_of_its_rounding_errors) {
  for (const Precision precision : {Precision::bf16_emulated, Precision::bf16}) {
    if (!unsupported_reason(precision).empty()) continue;
    if (has_matrix_product()) {
      expect_within_bounds(precision, {kUnit, kUnitOfBf16}, 0.5);
    } else {
      const std::vector<Tensor> full = computed(GetParam(), Precision::full);
      const std::vector<Tensor> results = computed(GetParam(), precision);
      for (size_t i = 0; i < full.size(); ++i) EXPECT_TRUE(test::same(results[i], full[i])) << i;
    }
  }
}
#endif

std::vector<OpCase> bounded_cases() {
  std::vector<OpCase> cases = op_cases();
  std::erase_if(cases, [](const OpCase& c) { return !c.bounded; });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryRoundedOp, testing::ValuesIn(bounded_cases()), test::name_of);

TEST(Rounding, every_op_has_a_bound) {
  for (const OpCase& c : op_cases()) EXPECT_TRUE(c.bounded) << c.name();
}

TEST(Rounding, a_sum_is_bounded_for_any_order) {
  const double unit = 0x1p-10;
  BoundedSum sum;
  for (const double x : {8.0, -4.0, 0.0, 2.0, 1.0}) sum.add({x, 0});
  EXPECT_EQ(sum.total({unit}).value, 7);
  EXPECT_DOUBLE_EQ(sum.total({unit}).error, 3 * unit / (1 - 3 * unit) * 15);  // 0 is added exactly
  sum.add({1, 0.5});
  EXPECT_DOUBLE_EQ(sum.total({0}).error, 0.5);
}

TEST(Rounding, products_with_zero_and_one_are_exact) {
  BoundedTape tape({kUnit, kUnitOfBf16});
  const BoundedVar x = tape.input(test::random({3}, "x")),
                   ones = tape.constant(Tensor::full({3}, 1)),
                   zeros = tape.constant(Tensor::zeros({3}));
  for (const Bounded& y : tape.values_of(add(mul(x, ones), mul(x, zeros)))) EXPECT_EQ(y.error, 0);
  for (const Bounded& y : tape.values_of(mul(x, x))) EXPECT_EQ(y.error, kUnit * y.value);
}

TEST(Rounding, operands_of_matrix_products_have_the_error_of_bfloat16) {
  BoundedTape tape({0, kUnitOfBf16});
  const BoundedVar a = tape.input(Tensor::full({1, 1}, real(1 + 0x1p-10))),
                   b = tape.input(Tensor::full({1, 1}, real(0.5)));  // which is a bfloat16
  const BoundedVar y = matmul(a, b);
  EXPECT_DOUBLE_EQ(tape.values_of(y)[0].error, kUnitOfBf16 * tape.values_of(y)[0].value);
  tape.backward(y, Tensor::full({1, 1}, real(1 + 0x1p-10)));
  EXPECT_DOUBLE_EQ(tape.gradients_of(a)[0].error, kUnitOfBf16 * 0.5 * (1 + 0x1p-10));
}

TEST(Rounding, a_gradient_that_is_wrong_in_the_fourth_digit_exceeds_its_bound) {
  for (const OpCase& c : bounded_cases()) {
    if (!c.composition || sizeof(real) == 8) continue;
    std::vector<Tensor> results = computed(c, Precision::full);
    for (real& x : results[1].values()) x *= real(1.001);
    EXPECT_GT(largest_error(results[1], bounded(c, {kUnit})[1]), 1) << c.name();
  }
}

TEST(Rounding, in_bfloat16_a_gradient_that_is_wrong_by_a_half_exceeds_its_bound) {
  for (const OpCase& c : bounded_cases()) {
    if (!kOpsWithMatrixProducts.contains(c.op) || sizeof(real) == 8) continue;
    std::vector<Tensor> results = computed(c, Precision::bf16_emulated);
    const auto expected = bounded(c, {kUnit, kUnitOfBf16});
    for (size_t i = 1; i < results.size(); ++i) {
      if (expected[i].size() == 1) continue;
      for (real& x : results[i].values()) x *= real(1.5);
      EXPECT_GT(largest_error(results[i], expected[i]), 1) << c.name() << ", input " << i - 1;
    }
  }
}

}  // namespace
}  // namespace difftape
