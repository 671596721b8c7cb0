#include "train/study/compare/quantities.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <stdexcept>

#include "tests/support/scratch.h"

namespace difftape::study {
namespace {

const std::string kReadme = DIFFTAPE_TEST_SOURCE_DIR "/train/study/compare/README.md";

/// Where a quantity appears: "runs, study, index, claims".
std::string places(const Quantity& quantity) {
  std::string text;
  const auto add = [&](bool there, const char* name) {
    if (there) text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(quantity.column.tables & kRunTable, "runs");
  add(quantity.column.tables & kStudyTable, "study");
  add(quantity.column.tables & kIndex, "index");
  add(quantity.claims.label[0] != 0, "claims");
  return text;
}

TEST(Quantities, are_the_table_of_their_readme) {
  std::string table =
      "| quantity | of | unit | what | compared by | in |\n|---|---|---|---|---|---|\n";
  for (const Quantity& each : quantities()) {
    table +=
        fmt::format("| `{}` | `{}` | {} | {} | {} | {} |\n", each.name, each.metric, each.unit,
                    each.what, each.scale == Scale::ratio ? "ratio" : "difference", places(each));
  }
  EXPECT_NE(test::contents(kReadme).find("\n\n" + table), std::string::npos)
      << kReadme << " must hold, after an empty line:\n"
      << table;
}

TEST(Quantities, have_names_of_their_own_a_unit_a_sentence_and_a_place_to_appear) {
  std::set<std::string> names, labels;
  for (const Quantity& each : quantities()) {
    EXPECT_TRUE(names.insert(each.name).second) << each.name;
    EXPECT_FALSE(std::string(each.unit).empty() || std::string(each.what).empty()) << each.name;
    EXPECT_TRUE((each.of_run == nullptr) != (each.of_seed == nullptr)) << each.name;
    const std::string label = each.claims.label;
    EXPECT_TRUE(label.empty() || labels.insert(label).second) << label;
    EXPECT_TRUE(!label.empty() || each.column.tables != kNoTable) << each.name;
    EXPECT_TRUE(each.of_run != nullptr || each.column.tables == kNoTable) << each.name;
  }
  EXPECT_THROW(quantity("val loss"), std::logic_error);
}

}  // namespace
}  // namespace difftape::study
