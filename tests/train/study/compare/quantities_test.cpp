#include "train/study/compare/quantities.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <stdexcept>

#include "tests/support/scratch.h"

namespace difftape::study {
namespace {

const std::string kReadme = DIFFTAPE_TEST_SOURCE_DIR "/train/study/compare/README.md";

/// The tables that a quantity appears in: "runs, study, index".
std::string places(const Quantity& quantity) {
  std::string text;
  const auto add = [&](bool there, const char* name) {
    if (there) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(quantity.column.tables & kRunTable, "runs");
  add(quantity.column.tables & kStudyTable, "study");
  return text;
}

TEST(Quantities, are_the_table_of_their_readme) {
  std::string table =
      "| quantity | of | unit | what | compared by | in |\n|---|---|---|---|---|---|\n";
  for (const Quantity& each : quantities()) {
    table += fmt::format("| `{}` | `{}` | {} | {} | {} | {} |\n", each.name, each.metric, each.unit,
                         each.what, what_differs(each.scale), places(each));
  }
  EXPECT_NE(test::contents(kReadme).find("\n\n" + table), std::string::npos)
      << kReadme << " must hold, after an empty line:\n"
      << table;
}

TEST(Quantities, have_names_and_labels_of_their_own_a_unit_and_a_sentence) {
  std::set<std::string> names, labels;
  for (const Quantity& each : quantities()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(std::string(each.unit).empty() || std::string(each.what).empty()) << each.name;
    EXPECT_TRUE((each.of_run == nullptr) != (each.of_seed == nullptr)) << each.name;
    EXPECT_TRUE(labels.insert(each.label).second) << each.label;
    EXPECT_TRUE(each.of_run != nullptr || each.column.tables == kNoTable) << each.name;
  }
  EXPECT_THROW(quantity("val loss"), std::logic_error);
  EXPECT_EQ(find_quantity("val loss"), nullptr);
}

TEST(Quantities, are_compared_on_an_axis_that_leads_back) {
  EXPECT_EQ(on_scale(4, Scale::difference), 4);
  EXPECT_DOUBLE_EQ(on_scale(4, Scale::ratio), std::log(4));
  EXPECT_EQ(on_scale(4, Scale::root), 2);
  for (const Scale scale : {Scale::difference, Scale::ratio, Scale::root}) {
    EXPECT_DOUBLE_EQ(from_scale(on_scale(4, scale), scale), 4);
  }
}

TEST(Quantities, are_averaged_as_they_are_read) {
  const auto mean = [](Scale scale) {
    return mean_from_scale(std::vector{on_scale(4, scale), on_scale(16, scale)}, scale);
  };
  EXPECT_DOUBLE_EQ(mean(Scale::difference), 10);
  EXPECT_DOUBLE_EQ(mean(Scale::ratio), 8) << "the geometric mean";
  EXPECT_DOUBLE_EQ(mean(Scale::root), 10) << "of the counts, not of their roots (9)";
}

}  // namespace
}  // namespace difftape::study
