// Every op: gradient against finite differences, coarse ops against their composition.
#include "autograd/ops.h"
#include "core/pool.h"
#include "tests/autograd/named_op_cases.h"
#include "tests/support/tensors.h"

namespace difftape {
namespace {

using test::random;
using test::same;

struct Evaluated {
  Tensor value;
  std::vector<Tensor> gradients;
};
/// Returns value and gradients of f; the gradient of input `given` starts from `before` if
/// allocated.
Evaluated evaluate(const std::vector<Tensor>& inputs, const OpFunction& f, size_t given = 0,
                   const Tensor& before = {}) {
  Tape tape;
  std::vector<Var> vars;
  for (const Tensor& input : inputs) vars.push_back(tape.input(input));
  if (before.allocated()) vars[given].gradient().add(before);
  const Var y = f(vars);
  tape.backward(y, random(y.shape(), "cotangent"));
  Evaluated result{y.value(), {}};
  for (const Var& var : vars) result.gradients.push_back(tape.gradient_of(var));
  return result;
}

struct EveryOp : testing::TestWithParam<OpCase> {};

TEST_P(EveryOp, gradient_matches_finite_differences) {
  const OpCase& c = GetParam();
  const GradcheckResult result = gradcheck(c.make_inputs(), c.f);
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.elements, 0);
}

TEST_P(EveryOp, takes_equal_memory_in_a_dry_run) {
  const OpCase& c = GetParam();
  const auto peak = [&c] {
    const auto before = pool::stats().bytes_in_use;
    pool::reset_peak();
    std::vector<Tensor> inputs;
    for (const Shape& shape : c.inputs) inputs.push_back(random(shape, "input"));
    evaluate(inputs, c.f);
    return pool::stats().peak_bytes_in_use - before;
  };
  peak();  // tables are filled once
  const auto real_peak = peak();
  const pool::DryRun dry;
  EXPECT_EQ(peak(), real_peak);
  EXPECT_GT(real_peak, 0u);
}

TEST_P(EveryOp, adds_to_the_one_input_that_has_a_gradient) {
  const OpCase& c = GetParam();
  const std::vector<Tensor> inputs = c.make_inputs();
  const Evaluated plain = evaluate(inputs, c.f);
  for (size_t given = 0; given < inputs.size(); ++given) {
    const Tensor before = random(inputs[given].shape(), "before");
    const Evaluated added = evaluate(inputs, c.f, given, before);
    for (size_t i = 0; i < inputs.size(); ++i) {
      Tensor expected = plain.gradients[i].clone();
      if (i == given) expected.add(before);
      EXPECT_LE(relative_error(added.gradients[i], expected), 1e-13) << i << ", given " << given;
    }
  }
}

struct EveryCoarseOp : testing::TestWithParam<OpCase> {};

TEST_P(EveryCoarseOp, equals_its_composition_from_primitives) {
  const OpCase& c = GetParam();
  const Evaluated coarse = evaluate(c.make_inputs(), c.f);
  const Evaluated composed = evaluate(c.make_inputs(), c.composition);
  EXPECT_EQ(coarse.value.shape(), composed.value.shape());
  EXPECT_LE(relative_error(coarse.value, composed.value), 1e-12);
  for (size_t i = 0; i < coarse.gradients.size(); ++i) {
    EXPECT_LE(relative_error(coarse.gradients[i], composed.gradients[i]), 1e-12) << "input " << i;
  }
}

std::vector<OpCase> cases_with_composition() {
  std::vector<OpCase> cases = op_cases();
  std::erase_if(cases, [](const OpCase& c) { return !c.composition; });
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Ops, EveryOp, testing::ValuesIn(op_cases()), test::name_of);
INSTANTIATE_TEST_SUITE_P(Ops, EveryCoarseOp, testing::ValuesIn(cases_with_composition()),
                         test::name_of);

std::set<std::string> ops_with_cases() {
  std::set<std::string> names;
  for (const OpCase& c : op_cases()) names.insert(c.op);
  return names;
}

TEST(OpCoverage, every_name_that_an_op_file_records_has_a_case) {
  const fs::path folder = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "autograd" / "ops";
  const std::set<std::string> covered = ops_with_cases();
  int ops = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    std::ifstream file(entry.path());
    std::stringstream text;
    text << file.rdbuf();
    const std::string source = text.str();
    const std::regex recorded("record\\(\\s*\"(\\w+)\"");
    auto match = std::sregex_iterator(source.begin(), source.end(), recorded);
    EXPECT_NE(match, std::sregex_iterator()) << entry.path() << " records no op";
    for (; match != std::sregex_iterator(); ++match) {
      EXPECT_TRUE(covered.contains((*match)[1])) << (*match)[1] << " has no gradcheck case";
      ++ops;
    }
  }
  EXPECT_GE(ops, 24);
}

TEST(OpCoverage, each_case_ends_with_the_op_it_is_named_after) {
  for (const OpCase& c : op_cases()) {
    Tape tape;
    std::vector<Var> vars;
    for (const Tensor& input : c.make_inputs()) vars.push_back(tape.input(input));
    c.f(vars);
    const std::vector<std::string> ops = tape.ops();
    EXPECT_TRUE(std::find(ops.begin(), ops.end(), c.op) != ops.end()) << c.name();
  }
}

TEST(Rope, rotates_in_place_only_unshared_tensors) {
  const auto table = std::make_shared<const RopeTable>(5, 4, RopeRule{.theta = 100});
  const Tensor x = random({2, 5, 3, 4}, "x"), before = x.clone();
  Tape tape;
  const Var kept = tape.input(x);
  const Var y = rope(kept, table);
  EXPECT_NE(y.value().data(), x.data());
  EXPECT_TRUE(same(x, before));
  Var own = tape.input(x.clone());
  const real* memory = own.value().data();
  const Var in_place = rope(std::move(own), table);
  EXPECT_EQ(in_place.value().data(), memory);
  EXPECT_TRUE(same(y.value(), in_place.value()));
}

}  // namespace
}  // namespace difftape
