#include "train/study/page/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/study/figures/forest.h"
#include "train/study/page/sections.h"

namespace difftape::study::page {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(ArmTable, marks_a_diverged_run_and_escapes_names) {
  system::Table table;
  table.columns = {{"", "run", true}, {"loss", "train"}, {"loss", "val"}, {"", "state", true}};
  table.rows = {{"<a>", "1", "2", "diverged at step 3"}};
  const std::vector<std::size_t> arms = {9};
  const std::string html = arm_table(table, arms);
  EXPECT_THAT(html, HasSubstr("<th scope=\"colgroup\" colspan=\"2\">loss</th>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch arm-1 hollow\"></span>&lt;a&gt;</th>"
                              "<td class=\"number\">1</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"left diverged\">diverged at step 3</td>"));
}

TEST(ArmTable, has_no_line_of_groups_without_groups) {
  const system::Table table{{{"", "arm", true}, {"", "lr"}}, {{"a", "1"}}};
  const std::vector<std::size_t> arms = {0};
  EXPECT_THAT(arm_table(table, arms), Not(HasSubstr("<td></td>")));
}

TEST(ArmTable, finds_the_arm_of_a_row_by_the_longest_name_it_begins_with) {
  const std::vector<std::string> names = {"diff", "diff_v2", "softmax"};
  const system::Table table{{{"", "arm", true}},
                            {{"diff_v2 lr 0.1"}, {"diff"}, {"other"}, {"softmax"}}};
  EXPECT_EQ(arms_of(table, names), (std::vector<std::size_t>{1, 0, 3, 2}));
}

TEST(VerdictCards, give_each_verdict_its_words_and_the_mark_of_the_forest_plot) {
  const system::Table table{{{"", "claim", true}, {"", "measured", true}, {"", "verdict", true}},
                            {{"a", "supported by 1 < 2", "supported"},
                             {"b", "", "exploratory: contradicted"},
                             {"c", "", "equivalent: no difference larger than 0.01"},
                             {"d", "", "not tested: no such arm"}}};
  const std::string html = verdict_cards(table);
  EXPECT_THAT(html,
              HasSubstr("<td class=\"left\" data-label=\"measured\">supported by 1 &lt; 2</td>"));
  for (const auto& row : table.rows) {
    EXPECT_THAT(html, HasSubstr("<span class=\"verdict\">" +
                                svg::verdict_icon(svg::look_of(row[2])) + row[2] + "</span>"));
  }
  EXPECT_THAT(svg::verdict_icon(svg::look_of("contradicted")),
              AllOf(HasSubstr("<svg class=\"icon\""), HasSubstr("aria-hidden=\"true\""),
                    HasSubstr("<polygon points=\"7,0.76 13.24,7 7,13.24 0.76,7\"")));
}

}  // namespace
}  // namespace difftape::study::page
