#include "optim/grad_norm.h"

#include "tests/support/test.h"
#include "tests/support/threads.h"

namespace difftape {
namespace {

struct Model {
  ParameterSet set;
  Model() {
    set.declare("a", {2}, Role::norm_weight, Init::constant(0));
    set.declare("b", {3, 2}, Role::projection, Init::constant(0));
    set.initialize(1);
    fill("a", 0);
    fill("b", 0);
  }
  void fill(const char* name, real value) {
    set.find(name)->grad.fill(value);
    set.find(name)->has_gradient = true;
  }
};

TEST(GradNorm, of_a_3_4_and_12_gradient_is_13) {
  Model model;
  model.set.find("a")->grad.copy_from(Tensor::from({2}, std::vector<real>{3, -4}));
  model.set.find("b")->grad.data()[4] = -12;
  const GradNorms norms = grad_norms(model.set);
  EXPECT_EQ(norms.global, 13.0);
  ASSERT_EQ(norms.per_parameter.size(), 2u);
  EXPECT_EQ(norms.per_parameter[0], 5.0);
  EXPECT_EQ(norms.per_parameter[1], 12.0);
}

TEST(GradNorm, counts_every_element_and_does_not_depend_on_threads) {
  ParameterSet set;
  Parameter& p = set.declare("p", {5, 16389}, Role::projection, Init::normal(1));
  set.initialize(3);
  p.grad.copy_from(p.value);
  p.has_gradient = true;
  double expected = 0;
  for (real x : p.grad.values()) expected += x * x;

  const auto norm_on = [&](int count) {
    const test::Threads threads(count);
    return grad_norms(set).global;
  };
  const double alone = norm_on(1);
  EXPECT_NEAR(alone, std::sqrt(expected), 1e-10 * std::sqrt(expected));
  EXPECT_EQ(alone, norm_on(4));
  EXPECT_EQ(grad_norms(set).per_parameter[0], alone);
}

TEST(GradNorm, clip_scale_equals_pytorch) {
  EXPECT_DOUBLE_EQ(clip_scale(4.0, 1.0), 1.0 / 4.000001);
  EXPECT_DOUBLE_EQ(clip_scale(10.0, 2.5), 2.5 / 10.000001);
  EXPECT_EQ(clip_scale(0.5, 1.0), 1.0);
  EXPECT_EQ(clip_scale(0.0, 1.0), 1.0);
  EXPECT_EQ(clip_scale(1e9, 0), 1.0) << "no clipping";
}

TEST(GradNorm, names_the_first_parameter_that_went_non_finite) {
  Model model;
  EXPECT_EQ(first_non_finite(model.set), nullptr);
  model.set.find("b")->grad.data()[5] = std::numeric_limits<real>::infinity();
  ASSERT_NE(first_non_finite(model.set), nullptr);
  EXPECT_EQ(first_non_finite(model.set)->name, "b");
  EXPECT_TRUE(std::isinf(grad_norms(model.set).global));
  model.fill("a", std::numeric_limits<real>::quiet_NaN());
  EXPECT_EQ(first_non_finite(model.set)->name, "b") << "backward reaches the last one first";
  EXPECT_TRUE(std::isnan(grad_norms(model.set).global));
  model.set.find("a")->value.data()[0] = std::numeric_limits<real>::infinity();
  EXPECT_EQ(first_non_finite(model.set)->name, "a") << "a value comes before any gradient";
}

}  // namespace
}  // namespace difftape
