// The worked example of CONTRIBUTING.md: an op from its declaration to the test of its gradient.
#include "autograd/gradcheck/op_cases.h"
#include "autograd/ops.h"
#include "core/rows.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

using Vars = std::vector<Var>&;

// The example begins.
// autograd/ops.h
/// a b summed over the last axis, which stays with extent 1; equal shapes.
Var dot_last(const Var& a, const Var& b);

// autograd/ops/dot_last.cpp
// Dot products of the rows of a and b.
//   forward   y = sum(a b)       each row
//   backward  da += dy b         each row
//             db += dy a
//   saves     a, b
//   fails     the shapes of a and b differ, or their rank is 0
Var dot_last(const Var& a, const Var& b) {
  require_shape(a.shape() == b.shape() && a.shape().rank() > 0, "dot_last",
                "a is {}, b is {}; need equal shapes of rank 1 at least", a.shape().str(),
                b.shape().str());
  Tensor y = Tensor::empty(a.shape().with(-1, 1));
  for_each_row(a.value(), b.value(), y,
               [](ConstRow ai, ConstRow bi, Row yi) { yi[0] = sum_of(ai * bi); });
  return record("dot_last", y, {a, b},
                [saved_a = a.value(), saved_b = b.value(), da = a.gradient(),
                 db = b.gradient()](const Tensor& dy) {
                  const auto add = [&dy](const Gradient& to, const Tensor& other) {
                    if (!to.requires_grad()) return;
                    Tensor out = to.grad();
                    for_each_row(dy, other, out,
                                 [](ConstRow dyi, ConstRow oi, Row outi) { outi += dyi[0] * oi; });
                  };
                  add(da, saved_b);
                  add(db, saved_a);
                });
}

// autograd/gradcheck/op_cases.cpp: one line of its list
const std::vector<OpCase> primitives{
    {"dot_last", "", {{3, 5}, {3, 5}}, [](Vars v) { return dot_last(v[0], v[1]); }},
};
// The example ends.

/// Returns the text between the first `begin` and the next `end`.
std::string between(const char* file, const std::string& begin, const std::string& end) {
  std::stringstream text;
  text << std::ifstream(std::string(DIFFTAPE_TEST_SOURCE_DIR) + "/" + file).rdbuf();
  const std::string all = text.str();
  const size_t from = all.find(begin) + begin.size();
  return all.substr(from, all.find(end, from) - from);
}

TEST(ContributingExample, shows_the_code_that_is_compiled_here) {
  const std::string code = between("tests/autograd/contributing_example_test.cpp",
                                   "// The example begins.\n", "// The example ends.\n");
  EXPECT_THAT(code, HasSubstr("\nVar dot_last("));
  EXPECT_EQ(between("CONTRIBUTING.md", "```cpp\n", "```\n"), code);
}

TEST(ContributingExample, has_the_gradient_of_finite_differences) {
  for (const OpCase& c : primitives) {
    const GradcheckResult result = gradcheck(c.make_inputs(), c.f);
    EXPECT_EQ(result.failure, "");
    EXPECT_EQ(result.elements, 30);
  }
}

TEST(ContributingExample, names_the_shapes_that_it_rejects) {
  Tape tape;
  const Var a = tape.input(Tensor::full({3, 5}, 1)), b = tape.input(Tensor::full({3, 4}, 1));
  EXPECT_THAT([&] { dot_last(a, b); },
              ThrowsMessage<ShapeError>(
                  "dot_last: a is (3, 5), b is (3, 4); need equal shapes of rank 1 at least"));
}

}  // namespace
}  // namespace difftape
