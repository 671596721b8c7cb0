#include "core/bf16.h"

#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Bf16, rounds_to_the_nearest_and_ties_to_the_even_neighbor) {
  const double step = std::ldexp(1.0, -7);  // between bfloat16s in [1, 2)
  EXPECT_EQ(round_bf16(real(1 + 0.49 * step)), real(1));
  EXPECT_EQ(round_bf16(real(1 + 0.51 * step)), real(1 + step));
  EXPECT_EQ(round_bf16(real(1 + 0.5 * step)), real(1));             // even below
  EXPECT_EQ(round_bf16(real(1 + 1.5 * step)), real(1 + 2 * step));  // even above
  EXPECT_EQ(round_bf16(real(-1 - 1.5 * step)), real(-1 - 2 * step));
}

TEST(Bf16, keeps_bfloat16_values_infinity_and_nan) {
  const real infinity = std::numeric_limits<real>::infinity();
  for (const real x : {real(0), real(1.5), real(-3), infinity, -infinity}) {
    EXPECT_EQ(round_bf16(x), x);
  }
  EXPECT_TRUE(std::isnan(round_bf16(std::numeric_limits<real>::quiet_NaN())));
  EXPECT_EQ(round_bf16(real(3.4e38)), infinity);  // beyond the largest bfloat16
  EXPECT_TRUE(std::signbit(round_bf16(real(-0.0))));
}

TEST(Bf16, bits_and_pairs_are_the_upper_halves) {
  EXPECT_EQ(bf16_bits(real(1)), 0x3f80);
  EXPECT_EQ(bf16_bits(real(-2)), 0xc000);
  EXPECT_EQ(bf16_pair(real(1), real(-2)), 0xc0003f80u);
}

}  // namespace
}  // namespace difftape
