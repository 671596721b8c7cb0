#include "tests/support/test.h"
#include "train/study/figures/figures.h"

namespace difftape::study {
namespace {

/// Results of the shipped sweep of stability at learning rate 0.01, three seeds each.
std::vector<ForestRow> rows() {
  return {{.label = "V2 reaches a lower loss than softmax",
           .verdict = {Finding::supported},
           .effect = -0.0347,
           .low = -0.0503,
           .high = -0.0191,
           .margin = 0.01,
           .numbers = "-0.035 (-0.050 to -0.019), n 3",
           .unit = "nats per token"},
          {.label = "V1's norm costs loss & more",
           .verdict = {Finding::inconclusive},
           .effect = 0.1374,
           .low = 0.0250,
           .high = 0.2498,
           .margin = 0.01,
           .numbers = "+0.137 (+0.025 to +0.250), n 3",
           .unit = "nats per token"},
          {.label = "V2's gradient norm equals softmax's",
           .verdict = {Finding::equivalent},
           .effect = std::log(0.922),
           .low = std::log(0.914),
           .high = std::log(0.931),
           .margin = std::log(1.2),
           .ratio = true,
           .numbers = "x0.922 (0.914 to 0.931), n 3"},
          {.label = "V2 has fewer loss spikes",
           .verdict = {Finding::not_testable},
           .ratio = true,
           .numbers = "-"}};
}

/// Returns all x1 and x2 of the lines within a group with these attributes.
std::vector<double> ends_of(const std::string& svg, const std::string& group) {
  const std::size_t begin = svg.find(group), end = svg.find("</g>", begin);
  const std::string part = svg.substr(begin, end - begin);
  static const std::regex x("x[12]=\"([-0-9.]+)\"");
  std::vector<double> ends;
  for (std::sregex_iterator match(part.begin(), part.end(), x), none; match != none; ++match) {
    ends.push_back(std::stod((*match)[1]));
  }
  return ends;
}

TEST(Forest, has_one_axis_per_unit_and_one_for_factors) {
  const std::string svg = forest_svg(rows(), SvgKind::standalone);
  EXPECT_TRUE(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"900\""));
  EXPECT_EQ(count(svg, ">← lower</text>"), 2u);
  EXPECT_EQ(count(svg, ">nats per token</text>"), 1u);
  EXPECT_EQ(count(svg, ">factor</text>"), 1u);
  EXPECT_EQ(count(svg, ">×1</text>"), 1u) << "no difference is a factor of 1";
  EXPECT_THAT(svg, HasSubstr("V1&#39;s norm costs loss &amp; more</text>"));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(Forest, marks_each_verdict_by_shape_word_and_color_and_has_a_legend) {
  const std::string svg = forest_svg(rows(), SvgKind::inlined);
  EXPECT_EQ(count(svg, "font-weight=\"600\">"), 4u);
  EXPECT_THAT(svg, HasSubstr("font-weight=\"600\">inconclusive</text>"));
  for (const char* word : {"supported", "inconclusive", "equivalent", "not testable here"}) {
    EXPECT_THAT(svg, HasSubstr("font-size=\"11\">" + std::string(word) + "</text>"));
  }
  EXPECT_THAT(svg, Not(HasSubstr(">contradicted</text>")));
  EXPECT_EQ(count(svg, "<circle"), 3u) << "supported: legend, plot, word";
  EXPECT_EQ(count(svg, "<polygon"), 3u * (1 + 2))
      << "equivalent is a square, inconclusive the outline of a triangle";
  EXPECT_EQ(count(svg, "<path"), 2u) << "not testable is a dash, without a place in the plot";
  EXPECT_EQ(count(svg, "<title>equivalent within this margin: 0.01</title>"), 2u);
  EXPECT_EQ(count(svg, "<title>equivalent within this factor: 1.2</title>"), 1u)
      << "not its logarithm, 0.182";
}

TEST(Forest, draws_effects_and_intervals_in_proportion) {
  const std::vector<ForestRow> two = {{.label = "a",
                                       .verdict = {Finding::supported},
                                       .effect = -1,
                                       .low = -2,
                                       .high = -0.5,
                                       .unit = "u"},
                                      {.label = "b",
                                       .verdict = {Finding::contradicted},
                                       .effect = 2,
                                       .low = 1,
                                       .high = 3,
                                       .unit = "u"}};
  const std::string svg = forest_svg(two, SvgKind::inlined);
  const std::vector<double> a = ends_of(svg,
                                        "class=\"stroke-1\" stroke=\"#0072b2\" stroke-width="
                                        "\"2\""),
                            b = ends_of(svg,
                                        "class=\"stroke-2\" stroke=\"#d55e00\" stroke-width="
                                        "\"2\"");
  ASSERT_GE(a.size(), 2u);
  ASSERT_GE(b.size(), 2u);
  const double unit = (b[1] - b[0]) / 2;  // from 1 to 3
  EXPECT_NEAR(a[1] - a[0], 1.5 * unit, 0.05);
  EXPECT_NEAR(b[0] - a[0], 3 * unit, 0.05);
}

TEST(Forest, equal_ratios_have_equal_lengths_and_a_wide_interval_ends_in_an_arrow) {
  const std::vector<ForestRow> two = {{.label = "half",
                                       .verdict = {Finding::supported},
                                       .effect = -std::log(2),
                                       .low = -std::log(4),
                                       .high = 0,
                                       .ratio = true},
                                      {.label = "of two seeds",
                                       .verdict = {Finding::inconclusive},
                                       .effect = std::log(2),
                                       .low = -30,
                                       .high = 30,
                                       .ratio = true}};
  const std::string svg = forest_svg(two, SvgKind::inlined);
  const std::vector<double> half = ends_of(svg, "class=\"stroke-1\"");
  ASSERT_GE(half.size(), 2u);
  EXPECT_THAT(svg, HasSubstr("cx=\"" + std::to_string(0.5 * (half[0] + half[1])).substr(0, 5)));
  const std::vector<double> wide =
      ends_of(svg, "class=\"reference\" stroke=\"#5b646d\" stroke-width=\"2\"");
  ASSERT_EQ(wide.size(), 10u) << "the interval and two strokes of each arrow";
  EXPECT_EQ(wide[0], 276);
  EXPECT_EQ(wide[1], 612);
  EXPECT_EQ(wide[3], 282);
}

TEST(Forest, shows_an_exploratory_verdict_as_an_outline) {
  std::vector<ForestRow> exploratory = rows();
  exploratory[0].verdict.exploratory = true;
  const std::string svg = forest_svg(exploratory, SvgKind::inlined);
  EXPECT_THAT(svg, HasSubstr("font-size=\"11\">exploratory: supported</text>"));
  EXPECT_EQ(count(svg, "<circle"), 3u * 2) << "the outline over its white inside";
  EXPECT_EQ(count(svg, "class=\"stroke-1\" stroke=\"#0072b2\" stroke-width=\"1.8\""), 3u);
}

TEST(Forest, breaks_a_legend_that_is_too_long) {
  const auto legend_of = [](std::span<const svg::VerdictLook> looks) {
    std::vector<ForestRow> all;
    for (const svg::VerdictLook& look : looks) {
      all.push_back(
          {.label = "a", .verdict = {look.finding, look.exploratory}, .effect = 1, .margin = 1});
    }
    return forest_svg(all, SvgKind::inlined);
  };
  EXPECT_THAT(legend_of(svg::verdict_looks().first(2)), Not(HasSubstr(" y=\"36\"")));
  const std::string svg = legend_of(svg::verdict_looks());
  EXPECT_THAT(svg, HasSubstr(" y=\"36\""));
  EXPECT_THAT(svg, HasSubstr(">margin of equivalence</text>"));
}

TEST(VerdictMarks, differ_in_shape_or_filling) {
  std::set<std::pair<svg::Marker, bool>> shapes;
  for (const svg::VerdictLook& look : svg::verdict_looks()) {
    const Verdict verdict{look.finding, look.exploratory};
    EXPECT_TRUE(shapes.emplace(look.shape, look.filled).second) << verdict.words();
    EXPECT_EQ(&svg::look_of(verdict), &look);
  }
  EXPECT_EQ(svg::look_of({Finding::not_tested}).shape, svg::Marker::dash);
  EXPECT_EQ(&svg::look_of({Finding::inconclusive, true}), &svg::look_of({Finding::inconclusive}));
}

TEST(Forest, is_empty_without_rows_and_deterministic) {
  EXPECT_EQ(forest_svg({}, SvgKind::inlined), "");
  EXPECT_EQ(forest_svg(rows(), SvgKind::standalone), forest_svg(rows(), SvgKind::standalone));
}

}  // namespace
}  // namespace difftape::study
