#include "core/rope.h"

#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Rope, rotates_neighboring_channels_by_position_times_frequency) {
  const RopeTable table(8, 4);
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

TEST(Rope, turns_each_of_many_heads_as_if_it_were_alone) {
  for (const Index width : {2, 8, 16, 28}) {  // of which few are whole vectors
    const RopeTable table(3, width);
    const Tensor alone = test::random({1, 3, 1, width}, "x");
    Tensor x = Tensor::empty({1, 3, 7, width}), turned = Tensor::like(alone), y = Tensor::like(x);
    for (Index i = 0; i < x.size(); ++i)
      x.data()[i] = alone.data()[i / (7 * width) * width + i % width];
    table.rotate(alone, turned, 1);
    table.rotate(x, y, 1);
    for (Index i = 0; i < x.size(); ++i)
      ASSERT_EQ(y.data()[i], turned.data()[i / (7 * width) * width + i % width]) << width;
  }
}

TEST(Rope, a_table_serves_after_a_dry_run) {
  const RopeTable table(8, 4), other(8, 4);
  const Tensor x = test::random({1, 8, 1, 4}, "x");
  {
    const pool::DryRun dry;
    Tensor y = Tensor::empty({1, 8, 1, 4});
    table.rotate(Tensor::like(y), y, 1);
  }
  Tensor y = Tensor::like(x), expected = Tensor::like(x);
  table.rotate(x, y, 1);
  other.rotate(x, expected, 1);
  EXPECT_TRUE(test::same(y, expected));
}

TEST(Rope, rejects_widths_without_planes) {
  EXPECT_THROW(RopeTable(8, 3), ShapeError);
  EXPECT_THROW(RopeTable(8, 0), ShapeError);
}

TEST(Rope, turning_back_gives_the_input) {
  const RopeTable table(5, 6, {.theta = 100});
  Tensor x = Tensor::empty({2, 5, 3, 6});
  for (Index i = 0; i < x.size(); ++i) x.data()[i] = static_cast<real>(std::sin(i));
  Tensor y = Tensor::like(x);
  table.rotate(x, y, 1);
  table.rotate(y, y, -1);
  for (Index i = 0; i < x.size(); ++i) EXPECT_NEAR(y.data()[i], x.data()[i], 1e-6);
}

/// Returns frequencies for heads of 16 and sequences four times as long as in training.
std::vector<double> scaled(RopeScalingKind kind) {
  return rope_frequencies(
      {.theta = 10000,
       .scaling = {.rope_type = kind, .factor = 4, .original_seq_len = 256, .attention_factor = 0}},
      16);
}

TEST(RopeScaling, has_the_frequencies_of_transformers) {
  const auto expect = [](const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i] / expected[i], 1, 1e-7) << i;
  };
  expect(scaled(RopeScalingKind::linear),
         {0.25, 0.079056941, 0.0250000004, 0.00790569466, 0.00249999994, 0.000790569466,
          0.000250000012, 7.90569466e-05});
  expect(scaled(RopeScalingKind::yarn), {1, 0.25693506, 0.0625, 0.0138349654, 0.00249999994,
                                         0.000790569466, 0.000250000012, 7.90569466e-05});
}

TEST(RopeScaling, by_a_larger_theta_keeps_the_fastest_plane_and_divides_the_slowest) {
  const std::vector<double> plain = rope_frequencies({}, 16), ntk = scaled(RopeScalingKind::ntk);
  EXPECT_EQ(ntk.front(), plain.front());
  EXPECT_NEAR(ntk.back() * 4 / plain.back(), 1, 1e-14);
  EXPECT_EQ(ntk_theta(100, 4, 2), 100) << "one plane, which is the fastest";
}

TEST(RopeScaling, by_yarn_makes_queries_and_keys_longer) {
  const RopeScaling yarn{.rope_type = RopeScalingKind::yarn, .factor = 4, .original_seq_len = 256};
  EXPECT_NEAR(attention_factor_of(yarn), 1.138629436111989, 1e-15);
  EXPECT_EQ(attention_factor_of({.rope_type = RopeScalingKind::linear, .factor = 4}), 1);
  EXPECT_EQ(
      attention_factor_of({.rope_type = RopeScalingKind::yarn, .factor = 4, .attention_factor = 1}),
      1);
  const RopeTable table(8, 4, {.scaling = yarn});
  const Tensor x = Tensor::from({1, 2, 1, 4}, std::vector<real>{1, 2, 3, 4, 1, 2, 3, 4});
  Tensor y = Tensor::like(x);
  table.rotate(x, y, 1);
  double squares = 0;
  for (int i = 4; i < 8; ++i) squares += static_cast<double>(y.data()[i] * y.data()[i]);
  EXPECT_NEAR(squares, 30 * 1.138629436111989 * 1.138629436111989, 1e-4);
}

TEST(Rope, errors_name_the_accepted_shapes) {
  EXPECT_THROW(RopeTable(4, 3), ShapeError);
  const RopeTable table(4, 2);
  Tensor x = Tensor::zeros({1, 5, 1, 2});
  EXPECT_EQ(message_of<ShapeError>([&] { table.rotate(x, x, 1); }),
            "rope: x is (1, 5, 1, 2); need (B, T <= 4, H, 2)");
}

}  // namespace
}  // namespace difftape
