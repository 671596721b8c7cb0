// Attention layers and whole models against finite differences, every element of every parameter.
#include <algorithm>

#include "layers/gradcheck_cases.h"

namespace difftape {

void PrintTo(const GradcheckCase& c, std::ostream* out) { *out << c.name; }

namespace {

class EveryLayer : public testing::TestWithParam<GradcheckCase> {};

TEST_P(EveryLayer, gradient_matches_finite_differences) {
  const GradcheckResult result = GetParam().run();
  EXPECT_EQ(result.failure, "");
  EXPECT_GT(result.elements, 100);
}

std::vector<GradcheckCase> layer_cases() {
  std::vector<GradcheckCase> cases = gradcheck_cases();
  std::erase_if(cases, [](const GradcheckCase& c) {
    return !c.name.starts_with("layer/") && !c.name.starts_with("model/");
  });
  return cases;
}

std::string test_name(const testing::TestParamInfo<GradcheckCase>& test) {
  std::string name = test.param.name;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(Layers, EveryLayer, testing::ValuesIn(layer_cases()), test_name);

}  // namespace
}  // namespace difftape
