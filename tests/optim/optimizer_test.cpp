#include "optim/optimizer.h"

#include "tests/optim/set_gradient.h"
#include "tests/support/tensors.h"

namespace difftape {
namespace {

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

TEST(Optimizer, a_measured_step_gives_the_same_bits_and_its_norms) {
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    std::vector<ParameterSet> sets(2);
    std::vector<double> update, weight;
    UpdateNorms norms;
    for (ParameterSet& set : sets) {
      set.declare("large", {70, 501}, Role::projection, Init::normal(1));  // several blocks
      set.declare("small", {3}, Role::norm_weight, Init::constant(0));
      set.initialize(1);
      draw_gradients(set);
      Optimizer optimizer(set,
                          {.name = value, .weight_decay = 0.1, .independent_weight_decay = false});
      optimizer.step(0.01, 0.5);
      if (&set == &sets[0]) {
        optimizer.step(0.01, 0.5);
        continue;
      }
      std::vector<Tensor> before;
      for (Parameter& p : set) before.push_back(p.value.clone());
      optimizer.step(0.01, 0.5, &norms);
      for (Parameter& p : set) {
        Tensor& change = before[update.size()];
        weight.push_back(norm(change));
        for (Index i = 0; i < change.size(); ++i) change.data()[i] -= p.value.data()[i];
        update.push_back(norm(change));
      }
    }
    for (size_t i = 0; i < 2; ++i) {
      EXPECT_NEAR(norms.update[i], update[i], 1e-6 * update[i]) << kind;
      EXPECT_NEAR(norms.weight[i], weight[i], 1e-6 * weight[i]) << kind;
      EXPECT_GT(norms.update[i], 0) << kind;
    }
    for (const size_t i : {0, 1})
      EXPECT_TRUE(test::same(sets[0][i].value, sets[1][i].value)) << kind << " " << i;
  }
}

TEST(Optimizer, decays_projections_and_the_output_only_and_embeddings_on_request) {
  for (bool decay_embeddings : {false, true}) {
    ParameterSet set;
    one(set, "projection", Role::projection);
    one(set, "output", Role::output);
    one(set, "embedding", Role::embedding);
    one(set, "norm_weight", Role::norm_weight);
    one(set, "lambda", Role::other);
    set.initialize(1);
    for (Parameter& p : set) set_gradient(p, {0});
    Optimizer(set, {.weight_decay = 0.5,
                    .independent_weight_decay = false,
                    .decay_embeddings = decay_embeddings})
        .step(0.1);
    EXPECT_DOUBLE_EQ(set.find("projection")->value.item(), 0.95);
    EXPECT_DOUBLE_EQ(set.find("output")->value.item(), 0.95);
    EXPECT_DOUBLE_EQ(set.find("embedding")->value.item(), decay_embeddings ? 0.95 : 1.0);
    EXPECT_EQ(set.find("norm_weight")->value.item(), 1.0);
    EXPECT_EQ(set.find("lambda")->value.item(), 1.0);
  }
}

TEST(Optimizer, leaves_state_without_a_gradient_alone_whatever_the_rule) {
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    Single state(0.3, Role::state, {2});
    const Tensor before = state.p.value.clone();
    Optimizer optimizer(state.set, {.name = value, .weight_decay = 0.5});
    for (int step = 0; step < 3; ++step) {
      set_gradient(state.p, {0, 0});
      optimizer.step(0.1);
    }
    EXPECT_TRUE(test::same(state.p.value, before)) << kind;
  }
}

TEST(Optimizer, independent_weight_decay_follows_the_schedule_and_not_the_peak) {
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    for (const double peak : {0.1, 0.001}) {
      Single one(1, Role::projection, {1, 1});
      Parameter& p = one.p;
      Optimizer optimizer(
          one.set,
          {.name = value, .lr = peak, .weight_decay = 0.25, .independent_weight_decay = true});
      set_gradient(p, {0});
      optimizer.step(peak);
      EXPECT_DOUBLE_EQ(p.value.item(), 0.75) << kind;
      optimizer.step(peak / 2);
      EXPECT_DOUBLE_EQ(p.value.item(), 0.75 * 0.875) << kind;
    }
  }
}

TEST(Optimizer, coupled_weight_decay_of_stable_adamw_follows_its_own_learning_rate) {
  for (const bool independent : {false, true}) {
    Single one(0);
    Parameter& p = one.p;
    Optimizer optimizer(one.set, {.name = OptimizerKind::stable_adamw,
                                  .lr = 1,
                                  .weight_decay = 0.5,
                                  .independent_weight_decay = independent,
                                  .betas = {0, 0.5},
                                  .eps = 1e-12});
    set_gradient(p, {1});
    optimizer.step(1);
    EXPECT_NEAR(p.value.item(), -1, 1e-11);
    set_gradient(p, {7});
    optimizer.step(1);  // g^2 over v without bias is 49 / 33; its root divides the learning rate
    const double rate = independent ? 1 : 1 / std::sqrt(49.0 / 33);
    EXPECT_NEAR(p.value.item(), -(1 - 0.5 * rate) - 1, 1e-11);
  }
}

TEST(Optimizer, updates_every_element_of_parameters_longer_than_a_block) {
  ParameterSet set;
  Parameter& big = set.declare("big", {3, 16385}, Role::norm_weight, Init::constant(1));
  Parameter& small = set.declare("small", {5}, Role::norm_weight, Init::constant(2));
  set.initialize(1);
  for (Parameter* p : {&big, &small}) {
    p->grad.fill(3);
    p->has_gradient = true;
  }
  Optimizer(set, {.eps = 1e-8}).step(0.25);
  for (real x : big.value.values()) ASSERT_NEAR(x, 0.75, 1e-8);
  for (real x : small.value.values()) ASSERT_NEAR(x, 1.75, 1e-8);
}

TEST(Optimizer, continues_bitwise_equal_from_its_states_and_step_count) {
  const auto run = [](int steps, Optimizer& optimizer, ParameterSet& set) {
    for (int i = 0; i < steps; ++i) {
      for (Parameter& p : set) {
        p.grad.fill(std::sin(static_cast<real>(optimizer.steps())));
        p.grad.data()[0] = real(0.5);
        p.has_gradient = true;
      }
      optimizer.step(0.01);
    }
  };
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    ParameterSet whole, resumed;
    for (ParameterSet* set : {&whole, &resumed}) {
      set->declare("matrix", {2, 3}, Role::projection, Init::normal(1));
      set->declare("vector", {3}, Role::norm_weight, Init::constant(1));
      set->initialize(1);
    }
    const OptimConfig config{.name = value};
    Optimizer straight(whole, config), first(resumed, config), second(resumed, config);
    run(7, straight, whole);
    run(4, first, resumed);
    for (size_t p = 0; p < 2; ++p) {
      ASSERT_FALSE(first.states()[p].tensors.empty()) << kind;
      for (size_t i = 0; i < first.states()[p].tensors.size(); ++i) {
        const StateTensor& from = first.states()[p].tensors[i];
        EXPECT_GT(norm(from.value), 0) << kind << " " << from.name;
        second.states()[p].tensors[i].value.copy_from(from.value);
      }
    }
    second.set_steps(first.steps());
    run(3, second, resumed);
    for (const size_t i : {0, 1})
      EXPECT_TRUE(test::same(whole[i].value, resumed[i].value)) << kind << " " << i;
  }
}

TEST(Optimizer, refuses_a_parameter_without_gradient) {
  Single one(1);
  Optimizer optimizer(one.set, {});
  EXPECT_THAT([&] { optimizer.step(0.1); },
              ThrowsMessage<std::logic_error>("no gradient: run backward first: w"));
  EXPECT_EQ(optimizer.steps(), 0);
}

}  // namespace
}  // namespace difftape
