#pragma once
// Names of op cases in the output of GoogleTest.

#include "autograd/gradcheck/op_cases.h"
#include "tests/support/test.h"

namespace difftape {

inline void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name(); }

namespace test {
inline std::string name_of(const testing::TestParamInfo<OpCase>& info) {
  return std::regex_replace(info.param.name(), std::regex("/"), "_");
}
}  // namespace test

}  // namespace difftape
