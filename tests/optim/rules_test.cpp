// Every rule against steps computed elsewhere: by hand, by torch.optim, by the papers' algorithms.
#include "optim/rules/rules.h"

#include <Eigen/SVD>

#include "optim/optimizer.h"
#include "tests/optim/set_gradient.h"

namespace difftape {
namespace {

/// A matrix and a vector after three steps; tests/optim/reference.py prints them.
struct Reference {
  std::vector<double> wide, vector;
  std::vector<double> tall = wide;  ///< the same elements, where each is updated by itself
};
const std::map<OptimizerKind, Reference>& reference() {
  static const std::map<OptimizerKind, Reference> values{
      {OptimizerKind::adamw,
       {{0.74985572155004909, 1.1559308213824473, 0.37956234856260901, -0.47655242099942924,
         -0.75287215748408975, -0.5478625512065548},
        {0.82899741157703333, 1.2589733851187532}}},
      {OptimizerKind::muon,
       {{0.78475726355453923, 0.86760827351152747, 0.17566365763349231, -0.60861429603182904,
         -0.84511326141819543, -0.29738041649731878},
        {0.82899741157703333, 1.2589733851187532},
        {0.74743441864749716, 0.87366208294807846, 0.20273528174828273, -0.68091400478498787,
         -0.8270895801610666, -0.3083627301793242}}},
      {OptimizerKind::stable_adamw,
       {{0.74224832069368862, 1.1442707217002448, 0.38713189297105816, -0.47049511407323036,
         -0.74646684929416862, -0.53691817042419787},
        {0.81358826961898578, 1.2213866330474952}}},
      {OptimizerKind::lion,
       {{0.91015444528862233, 1.1562509328729618, 0.36633312499875215, -0.44011172749344235,
         -1.015641946333282, -0.59053948548891388},
        {0.99147098480789664, 1.2592974268256818}}},
      {OptimizerKind::sgd,
       {{0.91878454926687747, 1.0950023821862185, 0.38947758682986899, -0.55614237588285043,
         -0.93495959867380218, -0.48728887485845362},
        {1.0030518839345168, 1.1933897623367757}}},
  };
  return values;
}

TEST(UpdateRule, three_steps_match_pytorch_or_the_paper) {
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    ParameterSet set;
    set.declare("wide", {2, 3}, Role::projection, Init::constant(0));
    set.declare("tall", {3, 2}, Role::projection, Init::constant(0));
    set.declare("vector", {2}, Role::norm_weight, Init::constant(0));
    set.initialize(1);
    for (Parameter& p : set) {
      for (Index i = 0; i < p.value.size(); ++i) {
        p.value.data()[i] = std::sin(1 + static_cast<real>(i));
      }
    }
    Optimizer optimizer(set, {.name = value,
                              .weight_decay = 0.3,
                              .independent_weight_decay = false,
                              .betas = {0.9, 0.95},
                              .eps = 1e-8,
                              .momentum = 0.95});
    const double lr[] = {0.1, 0.2, 0.05}, scale[] = {1, 0.5, 4};
    for (int step = 0; step < 3; ++step) {
      for (Parameter& p : set) {
        for (Index i = 0; i < p.grad.size(); ++i) {
          p.grad.data()[i] = std::cos(real(0.7) * static_cast<real>(i) + real(1.3) * (step + 1));
        }
        p.has_gradient = true;
      }
      optimizer.step(lr[step], scale[step]);
    }
    EXPECT_EQ(optimizer.steps(), 3);
    const Reference& all = reference().at(value);
    for (const Parameter& p : set) {
      const std::vector<double>& expected = p.name == "wide"   ? all.wide
                                            : p.name == "tall" ? all.tall
                                                               : all.vector;
      ASSERT_EQ(p.value.size(), std::ssize(expected));
      for (size_t i = 0; i < expected.size(); ++i) {
        EXPECT_NEAR(p.value.values()[i], expected[i], 2e-14) << kind << " " << p.name << " " << i;
      }
    }
  }
}

TEST(UpdateRule, names_its_state_and_starts_it_at_zero) {
  const std::map<OptimizerKind, std::vector<std::string>> of_matrix{
      {OptimizerKind::adamw, {"m", "v"}},
      {OptimizerKind::muon, {"momentum"}},
      {OptimizerKind::stable_adamw, {"m", "v"}},
      {OptimizerKind::lion, {"momentum"}},
      {OptimizerKind::sgd, {"momentum"}}};
  for (const auto& [kind, value] : kNames<OptimizerKind>) {
    Single matrix(1, Role::projection, {2, 3});
    const Optimizer optimizer(matrix.set, {.name = value});
    std::vector<std::string> names;
    for (const StateTensor& tensor : optimizer.states()[0].tensors) {
      names.emplace_back(tensor.name);
      EXPECT_EQ(tensor.value.shape(), (Shape{2, 3}));
      for (const real x : tensor.value.values()) EXPECT_EQ(x, 0);
    }
    EXPECT_EQ(names, of_matrix.at(value)) << kind;
    EXPECT_EQ(optimizer.state_size(), 6 * std::ssize(names));
  }
}

TEST(Lion, a_momentum_and_gradient_that_cancel_move_nothing) {
  Single one(1, Role::norm_weight);
  Parameter& p = one.p;
  Optimizer lion(one.set, {.name = OptimizerKind::lion, .betas = {0.5, 0.5}});
  set_gradient(p, {2});
  lion.step(0.25);
  EXPECT_EQ(p.value.item(), 0.75);
  set_gradient(p, {-1});  // m = 1, so that 0.5 m + 0.5 g = 0
  lion.step(0.25);
  EXPECT_EQ(p.value.item(), 0.75);
  EXPECT_EQ(lion.states()[0].tensors[0].value.item(), 0);
}

TEST(AdamW, three_steps_equal_the_arithmetic_written_out) {
  Single one(1);
  Parameter& p = one.p;
  Optimizer optimizer(
      one.set,
      {.weight_decay = 0.1, .independent_weight_decay = false, .betas = {0.9, 0.95}, .eps = 1e-8});
  const std::span<const StateTensor> state = optimizer.states()[0].tensors;

  // Step 1, lr 0.1, g = 0.5: bias corrections 0.1 and 0.05.
  set_gradient(p, {0.5});
  optimizer.step(0.1);
  const double m1 = 0.05, v1 = 0.0125;
  const double p1 = 0.99 - 0.1 * 0.5 / (0.5 + 1e-8);
  EXPECT_NEAR(p.value.item(), p1, 1e-15);
  EXPECT_NEAR(state[0].value.item(), m1, 1e-16);
  EXPECT_NEAR(state[1].value.item(), v1, 1e-16);

  // Step 2, lr 0.2, g = -0.25: m = 0.9 * 0.05 - 0.025 = 0.02, v = 0.95 * 0.0125 + 0.003125 = 0.015.
  set_gradient(p, {-0.25});
  optimizer.step(0.2);
  const double p2 = p1 * 0.98 - 0.2 * (0.02 / 0.19) / (std::sqrt(0.015 / 0.0975) + 1e-8);
  EXPECT_NEAR(p.value.item(), p2, 1e-15);
  EXPECT_NEAR(state[0].value.item(), 0.02, 1e-16);
  EXPECT_NEAR(state[1].value.item(), 0.015, 1e-16);

  // Step 3, lr 0.1, gradient 0.4 scaled by 0.25, g = 0.1: m = 0.018 + 0.01 = 0.028,
  // v = 0.01425 + 0.0005 = 0.01475.
  set_gradient(p, {0.4});
  optimizer.step(0.1, 0.25);
  const double p3 = p2 * 0.99 - 0.1 * (0.028 / 0.271) / (std::sqrt(0.01475 / 0.142625) + 1e-8);
  EXPECT_NEAR(p.value.item(), p3, 1e-15);
  EXPECT_NEAR(state[0].value.item(), 0.028, 1e-16);
  EXPECT_NEAR(state[1].value.item(), 0.01475, 1e-16);
  EXPECT_EQ(optimizer.steps(), 3);
  EXPECT_EQ(p.grad.item(), 0.4);
}

TEST(StableAdamW, a_surprising_gradient_moves_a_tensor_less_than_in_adamw) {
  for (const bool surprise : {false, true}) {
    std::vector<double> values;
    for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::stable_adamw}) {
      Single one(0, Role::norm_weight);
      Parameter& p = one.p;
      Optimizer optimizer(one.set, {.name = kind, .betas = {0, 0.5}, .eps = 1e-12});
      set_gradient(p, {1});
      optimizer.step(1);  // v / (1 - beta2) = 1 = g^2
      EXPECT_NEAR(p.value.item(), -1, 1e-11);
      set_gradient(p, {real(surprise ? 7 : 1)});
      optimizer.step(1);
      values.push_back(p.value.item());
    }
    // v = 0.25 + 0.5 49 = 24.75, without bias 33, g^2 / v = 49 / 33: adamw moves by its root.
    const double rms = surprise ? std::sqrt(49.0 / 33) : 1;
    EXPECT_NEAR(values[0], -1 - rms, 1e-11);
    EXPECT_NEAR(values[1], -2, 1e-11) << "never by more than the learning rate on average";
  }
}

TEST(Muon, brings_the_singular_values_of_an_update_near_one) {
  for (const Shape& shape : {Shape{24, 40}, Shape{40, 24}}) {
    Single one(0, Role::projection, shape);
    const Parameter& p = one.p;
    draw_gradients(one.set);
    for (real& g : one.p.grad.values()) g *= 1e-3;
    Optimizer(one.set, {.name = OptimizerKind::muon}).step(1);
    using Matrix = Eigen::Matrix<real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    const Eigen::Map<const Matrix> change(p.value.data(), shape[0], shape[1]),
        gradient(p.grad.data(), shape[0], shape[1]);
    const auto values = Eigen::JacobiSVD<Matrix>(change / (0.2 * std::sqrt(40.0))).singularValues();
    const auto of_gradient = Eigen::JacobiSVD<Matrix>(gradient).singularValues();
    EXPECT_GT(of_gradient.maxCoeff(), 4 * of_gradient.minCoeff());
    EXPECT_GT(values.minCoeff(), 0.6);
    EXPECT_LT(values.maxCoeff(), 1.3);
    EXPECT_LT(change.cwiseProduct(gradient).sum(), 0) << "downhill";
  }
}

TEST(Muon, leaves_all_but_the_projections_to_adamw) {
  std::vector<ParameterSet> sets(2);
  const OptimizerKind kinds[] = {OptimizerKind::adamw, OptimizerKind::muon};
  for (size_t i = 0; i < 2; ++i) {
    ParameterSet& set = sets[i];
    set.declare("projection", {3, 4}, Role::projection, Init::normal(1));
    set.declare("output", {3, 4}, Role::output, Init::normal(1));
    set.declare("embedding", {3, 4}, Role::embedding, Init::normal(1));
    set.declare("norm_weight", {4}, Role::norm_weight, Init::constant(1));
    set.declare("lambda", {4}, Role::other, Init::normal(1));
    set.initialize(1);
    draw_gradients(set);
    Optimizer(set, {.name = kinds[i]}).step(0.1);
  }
  for (const Parameter& p : sets[0]) {
    const bool equal = std::ranges::equal(p.value.values(), sets[1].find(p.name)->value.values());
    EXPECT_EQ(equal, p.role != Role::projection) << p.name;
  }
}

TEST(Muon, a_gradient_of_zeros_moves_nothing) {
  Single one(1, Role::projection, {3, 4});
  one.p.grad.fill(0);
  one.p.has_gradient = true;
  Optimizer(one.set, {.name = OptimizerKind::muon, .weight_decay = 0}).step(0.1);
  for (const real x : one.p.value.values()) EXPECT_EQ(x, 1);
}

}  // namespace
}  // namespace difftape
