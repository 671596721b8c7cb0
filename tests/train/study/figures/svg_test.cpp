

#include "tests/support/test.h"
#include "train/study/figures/drawing.h"
#include "train/study/figures/figures.h"

namespace difftape::study::svg {
namespace {

TEST(SvgText, is_escaped_and_cut_between_characters) {
  EXPECT_EQ(escape("<a & \"b\"\x01>"), "&lt;a &amp; &quot;b&quot;&gt;");
  EXPECT_EQ(shortened("λλλλ", 4), "λλλλ");
  EXPECT_EQ(shortened("λλλλλ", 4), "λλλ…");
}

TEST(SvgText, writes_numbers_without_noise) {
  EXPECT_EQ(number(12.5), "12.5");
  EXPECT_EQ(number(-0.001), "0");
  EXPECT_EQ(number(100), "100");
}

TEST(Axis, has_round_ticks_within_its_range) {
  EXPECT_THAT(Axis({0, 1000}, 0, 1, false).ticks(5), ElementsAre(0, 200, 400, 600, 800, 1000));
  EXPECT_THAT(
      Axis({2.27, 2.49}, 0, 1, false).ticks(5),
      testing::Pointwise(testing::DoubleNear(1e-9), std::vector<double>{2.3, 2.35, 2.4, 2.45}));
  EXPECT_THAT(Axis({0.02, 3}, 0, 1, true).ticks(5),
              testing::Pointwise(testing::DoubleNear(1e-9),
                                 std::vector<double>{0.02, 0.05, 0.1, 0.2, 0.5, 1, 2}));
  EXPECT_THAT(Axis({1e-8, 1e8}, 0, 1, true).ticks(5).size(), testing::Le(6u));
}

TEST(Axis, maps_ends_to_ends_and_equal_ratios_to_equal_lengths) {
  const Axis axis({1e-4, 1}, 100, 500, true);
  EXPECT_DOUBLE_EQ(axis.at(1e-4), 100);
  EXPECT_DOUBLE_EQ(axis.at(1e-2), 300);
  EXPECT_DOUBLE_EQ(axis.at(1), 500);
}

TEST(Axis, widens_a_range_of_one_value_or_none) {
  for (const Axis& axis : {Axis({}, 0, 1, false), Axis({3, 3}, 0, 1, false),
                           Axis({3, 3}, 0, 1, true), Axis({0, 3}, 0, 1, true)}) {
    EXPECT_TRUE(std::isfinite(axis.at(3)));
    EXPECT_GE(axis.ticks(5).size(), 2u);
  }
}

TEST(Axis, skips_values_that_are_too_large_to_subtract) {
  constexpr double kMost = std::numeric_limits<double>::max();
  Range range;
  for (const double value : {-1e300, 1e300, kMost, -kMost, std::nan("")}) range.add(value);
  const Axis axis = Axis(range, 0, 200, false).padded(0.1);
  EXPECT_LT(0, axis.at(-1e300));
  EXPECT_LT(axis.at(-1e300), axis.at(1e300));
  EXPECT_LT(axis.at(1e300), 200);
  EXPECT_EQ(number(-axis.at(kMost) * kMost), "-1000000");
}

TEST(Colors, repeat_dashed_from_the_ninth_arm_on) {
  EXPECT_THAT(stroke(1), Not(HasSubstr("dash")));
  EXPECT_THAT(stroke(9), HasSubstr("class=\"stroke-1\" stroke=\"#0072b2\" stroke-dasharray"));
}

LrCurve curve(const std::string& arm, const std::vector<LrPoint>& points) {
  LrCurve curve;
  curve.arm = arm;
  curve.points = points;
  curve.ladder = points;
  return curve;
}

std::vector<LrCurve> two_curves() {
  return {
      curve("softmax", {{1e-3, {2.3, 0.02}, 2, 0, {2.31, 2.29}}, {1e-2, {5.5, NAN}, 2, 1, {5.5}}}),
      curve("diff & v2", {{1e-3, {2.2, NAN}, 1, 0, {2.2}}, {1e-2, {NAN, NAN}, 1, 1, {}}})};
}

TEST(LrCurveSvg, shows_means_bands_of_seeds_and_diverged_counts) {
  std::vector<LrCurve> curves = two_curves();
  curves[0].seeds = {1, 2};
  const std::string svg = lr_curve_svg(curves, SvgKind::standalone);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"880\""));
  EXPECT_THAT(svg, HasSubstr("<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"));
  EXPECT_THAT(svg, HasSubstr("<title>softmax, lr 1e-3: 2.3000 ± 0.0200, 0 of 2 diverged</title>"));
  EXPECT_THAT(svg, HasSubstr("<title>diff &amp; v2, lr 1e-3: 2.2000, 0 of 1 diverged</title>"));
  EXPECT_EQ(count(svg, "fill-opacity=\"0.15\""), 1u) << "where there are several seeds";
  EXPECT_EQ(count(svg, ">1/2</text>"), 1u);
  EXPECT_EQ(count(svg, ">1/1</text>"), 1u);
  EXPECT_THAT(svg, HasSubstr(">1e-3</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

/// Returns softmax and v2 at two sizes, each with an optimum; v2 with a gap.
std::vector<LrCurve> two_sizes() {
  std::vector<LrCurve> curves;
  for (const int size : {2, 1}) {
    for (const char* arm : {"softmax", "v2"}) {
      LrCurve each = curve(arm, {{1e-3, {2.3, NAN}, 1, 0, {2.3}},
                                 {1e-2, {2.1, NAN}, 1, 0, {2.1}},
                                 {1e-1, {2.4, NAN}, 1, 0, {2.4}}});
      each.d_model = fmt::to_string(size);
      each.parameters = size * 100000;
      each.is_baseline = each.arm == "softmax";
      each.unit = "nats per token";
      each.optimum = {.lr = 9e-3, .low = 8e-3, .high = 1e-2, .loss = 2.09};
      if (!each.is_baseline) each.gap = {{{-0.01, 0.004}, 0.01, 6}, true};
      curves.push_back(each);
    }
  }
  return curves;
}

TEST(LrCurveSvg, has_one_panel_per_size_with_stars_at_optima_and_a_strip_of_gaps) {
  const std::vector<LrCurve> curves = two_sizes();
  const std::string svg = lr_curve_svg(curves, SvgKind::standalone);
  EXPECT_LT(svg.find(">0.1 M parameters</text>"), svg.find(">0.2 M parameters</text>"));
  EXPECT_EQ(count(svg, ">softmax</text>"), 1u) << "one color and one entry at all sizes";
  EXPECT_EQ(count(svg, ": lr* 0.009 (0.008 to 0.01), loss 2.0900</title>"), 4u);
  EXPECT_THAT(svg, HasSubstr(">Gap to softmax at each arm&#39;s own rate, nats per token</text>"));
  EXPECT_EQ(count(svg, ": -0.0100 ± 0.0040, 6 seeds</title>"), 2u);
  EXPECT_EQ(count(lr_curve_svg(std::span(curves).first(2), SvgKind::inlined), "Gap to"), 0u)
      << "of one size the gap is in the table";
}

TEST(LrCurveSvg, cuts_off_losses_that_would_flatten_the_rest) {
  std::vector<LrCurve> curves = {curve("a", {{1e-3, {1.7, NAN}, 1, 0, {1.7}},
                                             {1e-2, {1.6, NAN}, 1, 0, {1.6}},
                                             {1e-1, {5.5, NAN}, 1, 1, {5.5}}})};
  const std::string svg = lr_curve_svg(curves, SvgKind::standalone);
  EXPECT_THAT(svg, Not(HasSubstr("lr 0.1:")));
  EXPECT_THAT(svg, HasSubstr("lr 0.01:"));
  EXPECT_THAT(svg, HasSubstr(">1/1</text>"));
}

TEST(LrCurveSvg, without_losses_is_still_a_picture) {
  const std::vector<LrCurve> none = {curve("a", {{1e-3, {}, 1, 1, {}}, {1e-2, {}, 1, 1, {}}})};
  const std::string svg = lr_curve_svg(none, SvgKind::inlined);
  EXPECT_THAT(svg, HasSubstr(">1/1</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
}

}  // namespace
}  // namespace difftape::study::svg
