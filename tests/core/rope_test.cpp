#include "core/rope.h"

#include <cmath>

#include "core/error.h"

namespace difftape {
namespace {

TEST(Rope, rotates_neighbouring_channels_by_position_times_frequency) {
  const RopeTable table(8, 4, 10000);
  const Tensor x = Tensor::from({1, 2, 1, 4}, std::vector<real>{1, 2, 3, 4, 1, 2, 3, 4});
  Tensor y = Tensor::like(x);
  table.rotate(x, y, 1);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(y.data()[i], x.data()[i]) << "position 0 stays";
  const double tolerance = sizeof(real) == 4 ? 1e-6 : 1e-14;
  EXPECT_NEAR(y.data()[4], std::cos(1.0) - 2 * std::sin(1.0), tolerance);
  EXPECT_NEAR(y.data()[5], std::sin(1.0) + 2 * std::cos(1.0), tolerance);
  EXPECT_NEAR(y.data()[6], 3 * std::cos(0.01) - 4 * std::sin(0.01), tolerance);
  EXPECT_NEAR(y.data()[7], 3 * std::sin(0.01) + 4 * std::cos(0.01), tolerance);
}

TEST(Rope, turning_back_gives_the_input) {
  const RopeTable table(5, 6, 100);
  Tensor x = Tensor::empty({2, 5, 3, 6});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<real>(std::sin(i));
  Tensor y = Tensor::like(x);
  table.rotate(x, y, 1);
  table.rotate(y, y, -1);
  for (Index i = 0; i < x.size(); ++i) EXPECT_NEAR(y.data()[i], x.data()[i], 1e-6);
}

TEST(Rope, says_which_shapes_it_takes) {
  EXPECT_THROW(RopeTable(4, 3, 100), ShapeError);
  const RopeTable table(4, 2, 100);
  Tensor x = Tensor::zeros({1, 5, 1, 2});
  try {
    table.rotate(x, x, 1);
    FAIL() << "no error";
  } catch (const ShapeError& error) {
    EXPECT_STREQ(error.what(), "rope: x is (1, 5, 1, 2); need (B, T <= 4, H, 2)");
  }
}

}  // namespace
}  // namespace difftape
