#include "optim/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <initializer_list>
#include <stdexcept>
#include <vector>

#include "core/random.h"

namespace difftape {
namespace {

void set_gradient(Parameter& p, std::initializer_list<real> values) {
  p.grad.copy_from(Tensor::from(p.shape, values));
  p.has_gradient = true;
}

double norm(const Tensor& x) {
  double squares = 0;
  for (const real value : x.values()) {
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(squares);
}

Parameter& one(ParameterSet& set, const char* name, Role role) {
  return set.declare(name, {1}, role, Init::constant(1));
}

TEST(AdamW, three_steps_equal_the_arithmetic_written_out) {
  ParameterSet set;
  Parameter& p = one(set, "w", Role::projection);
  set.initialize(1);
  AdamW adamw(set, {.weight_decay = 0.1, .betas = {0.9, 0.95}, .eps = 1e-8});

  // Step 1, lr 0.1, g = 0.5: bias corrections 0.1 and 0.05.
  set_gradient(p, {0.5});
  adamw.step(0.1);
  const double m1 = 0.05, v1 = 0.0125;
  const double p1 = 0.99 - 0.1 * 0.5 / (0.5 + 1e-8);
  EXPECT_NEAR(p.value.item(), p1, 1e-15);
  EXPECT_NEAR(adamw.moments()[0].m.item(), m1, 1e-16);
  EXPECT_NEAR(adamw.moments()[0].v.item(), v1, 1e-16);

  // Step 2, lr 0.2, g = -0.25: m = 0.9 * 0.05 - 0.025 = 0.02, v = 0.95 * 0.0125 + 0.003125 = 0.015.
  set_gradient(p, {-0.25});
  adamw.step(0.2);
  const double p2 = p1 * 0.98 - 0.2 * (0.02 / 0.19) / (std::sqrt(0.015 / 0.0975) + 1e-8);
  EXPECT_NEAR(p.value.item(), p2, 1e-15);
  EXPECT_NEAR(adamw.moments()[0].m.item(), 0.02, 1e-16);
  EXPECT_NEAR(adamw.moments()[0].v.item(), 0.015, 1e-16);

  // Step 3, lr 0.1, gradient 0.4 scaled by 0.25, g = 0.1: m = 0.018 + 0.01 = 0.028,
  // v = 0.01425 + 0.0005 = 0.01475.
  set_gradient(p, {0.4});
  adamw.step(0.1, 0.25);
  const double p3 = p2 * 0.99 - 0.1 * (0.028 / 0.271) / (std::sqrt(0.01475 / 0.142625) + 1e-8);
  EXPECT_NEAR(p.value.item(), p3, 1e-15);
  EXPECT_NEAR(adamw.moments()[0].m.item(), 0.028, 1e-16);
  EXPECT_NEAR(adamw.moments()[0].v.item(), 0.01475, 1e-16);
  EXPECT_EQ(adamw.steps(), 3);
  EXPECT_EQ(p.grad.item(), 0.4);
}

TEST(AdamW, a_measured_step_gives_the_same_bits_and_the_norms_of_what_it_changed) {
  std::vector<ParameterSet> sets(2);
  UpdateNorms norms;
  for (ParameterSet& set : sets) {
    set.declare("large", {70, 501}, Role::projection, Init::normal(1));  // several blocks
    set.declare("small", {3}, Role::norm_weight, Init::constant(0));
    set.initialize(1);
    for (Parameter& p : set) {
      fill_normal(p.grad, RandomStream(2, p.name), 1);
      p.has_gradient = true;
    }
    AdamW adamw(set, {.weight_decay = 0.1});
    adamw.step(0.01, 0.5);
    if (&set == &sets[0]) {
      adamw.step(0.01, 0.5);
      continue;
    }
    std::vector<double> update, weight;
    for (Parameter& p : set) weight.push_back(norm(p.value));
    std::vector<Tensor> before;
    for (Parameter& p : set) before.push_back(p.value.clone());
    adamw.step(0.01, 0.5, &norms);
    for (Parameter& p : set) {
      Tensor& change = before[update.size()];
      for (Index i = 0; i < change.size(); ++i) change.data()[i] -= p.value.data()[i];
      update.push_back(norm(change));
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(norms.update[i], update[i], 1e-6 * update[i]);
      EXPECT_NEAR(norms.weight[i], weight[i], 1e-6 * weight[i]);
      EXPECT_GT(norms.update[i], 0);
    }
  }
  for (const char* name : {"large", "small"}) {
    const auto a = sets[0].find(name)->value.values(), b = sets[1].find(name)->value.values();
    EXPECT_TRUE(std::equal(a.begin(), a.end(), b.begin(), b.end())) << name;
  }
}

TEST(AdamW, decays_projections_only_and_embeddings_on_request) {
  for (bool decay_embeddings : {false, true}) {
    ParameterSet set;
    one(set, "projection", Role::projection);
    one(set, "embedding", Role::embedding);
    one(set, "norm_weight", Role::norm_weight);
    one(set, "lambda", Role::other);
    set.initialize(1);
    for (Parameter& p : set) set_gradient(p, {0});
    AdamW(set, {.weight_decay = 0.5, .decay_embeddings = decay_embeddings}).step(0.1);
    EXPECT_DOUBLE_EQ(set.find("projection")->value.item(), 0.95);
    EXPECT_DOUBLE_EQ(set.find("embedding")->value.item(), decay_embeddings ? 0.95 : 1.0);
    EXPECT_EQ(set.find("norm_weight")->value.item(), 1.0);
    EXPECT_EQ(set.find("lambda")->value.item(), 1.0);
  }
}

TEST(AdamW, updates_every_element_of_parameters_longer_than_a_block) {
  ParameterSet set;
  Parameter& big = set.declare("big", {3, 16385}, Role::norm_weight, Init::constant(1));
  Parameter& small = set.declare("small", {5}, Role::norm_weight, Init::constant(2));
  set.initialize(1);
  for (Parameter* p : {&big, &small}) {
    p->grad.fill(3);
    p->has_gradient = true;
  }
  AdamW(set, {.eps = 1e-8}).step(0.25);
  for (real x : big.value.values()) ASSERT_NEAR(x, 0.75, 1e-8);
  for (real x : small.value.values()) ASSERT_NEAR(x, 1.75, 1e-8);
}

TEST(AdamW, continues_bitwise_equal_from_moments_and_step_count) {
  const auto run = [](int steps, AdamW& adamw, Parameter& p) {
    for (int i = 0; i < steps; ++i) {
      set_gradient(p, {std::sin(static_cast<real>(adamw.steps()))});
      adamw.step(0.01);
    }
  };
  ParameterSet whole, resumed;
  Parameter& a = one(whole, "w", Role::projection);
  Parameter& b = one(resumed, "w", Role::projection);
  whole.initialize(1);
  resumed.initialize(1);
  AdamW straight(whole, {}), first(resumed, {});
  run(7, straight, a);
  run(4, first, b);
  AdamW second(resumed, {});
  second.moments()[0].m.copy_from(first.moments()[0].m);
  second.moments()[0].v.copy_from(first.moments()[0].v);
  second.set_steps(first.steps());
  run(3, second, b);
  EXPECT_EQ(a.value.item(), b.value.item());
}

TEST(AdamW, refuses_a_parameter_without_gradient) {
  ParameterSet set;
  set_gradient((one(set, "w", Role::norm_weight), set.initialize(1), *set.find("w")), {1});
  AdamW adamw(set, {});
  set.find("w")->zero_grad();
  try {
    adamw.step(0.1);
    FAIL() << "no exception";
  } catch (const std::logic_error& e) {
    EXPECT_STREQ(e.what(), "no gradient: run backward first: w");
  }
  EXPECT_EQ(adamw.steps(), 0);
}

}  // namespace
}  // namespace difftape
