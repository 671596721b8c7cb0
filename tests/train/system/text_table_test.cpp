#include "train/system/text_table.h"

#include <rapidcheck/gtest.h>

#include "tests/support/test.h"
#include "train/system/suggest.h"

namespace difftape::system {
namespace {

using Lines = std::vector<std::vector<std::string>>;

TEST(Csv, quotes_commas_quotes_and_line_breaks) {
  EXPECT_EQ(csv_field("plain 1.5"), "plain 1.5");
  EXPECT_EQ(csv_field("a,\"b\""), "\"a,\"\"b\"\"\"");
  EXPECT_EQ(csv_field("two\nlines"), "\"two\nlines\"");
}

TEST(Csv, is_read_with_either_line_end) {
  EXPECT_EQ(read_csv(""), Lines());
  EXPECT_EQ(read_csv("a,b\r\n\"c, \"\"d\"\"\",\n,e"),
            (Lines{{"a", "b"}, {"c, \"d\"", ""}, {"", "e"}}));
  EXPECT_EQ(read_csv("\"never closed,\n"), (Lines{{"never closed,\n"}}));
}

RC_GTEST_PROP(Csv, reads_back_every_field, (const std::vector<std::string>& rest)) {
  std::vector<std::string> fields = rest;
  fields.insert(fields.begin(), "first");
  std::string line;
  for (const std::string& field : fields) {
    if (!line.empty()) line += ',';
    line += csv_field(field);
  }
  line += '\n';
  RC_ASSERT(read_csv(line) == Lines{fields});
}

TEST(Csv, a_line_reads_back_and_a_number_keeps_its_digits) {
  const std::vector<std::string> fields{"a", "b,c", "", csv_number(0.1), csv_number(std::nan(""))};
  EXPECT_EQ(csv_line(fields), "a,\"b,c\",,0.1,\n");
  EXPECT_EQ(read_csv(csv_line(fields)).front(), fields);
}

TEST(TextTable, columns_are_as_wide_as_a_terminal_shows_them) {
  // Columns by Unicode's East Asian Width: "\u6a21\u578b" takes 4, "caf\u00e9" 4, "e\u0301" 1.
  const Table table{{{"", "arm", true}, {"", "loss"}},
                    {{"\u6a21\u578b", "1"}, {"caf\u00e9", "2.5"}, {"e\u0301", "3"}}};
  EXPECT_EQ(to_text(table), "arm   loss\n\u6a21\u578b     1\ncaf\u00e9   2.5\ne\u0301        3\n");
}

TEST(EditDistance, counts_insertions_deletions_replacements_and_swaps) {
  EXPECT_EQ(edit_distance("", ""), 0);
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", "ac"), 1);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("modle", "model"), 1);
}

TEST(DidYouMean, offers_the_nearest_word_and_nothing_far) {
  EXPECT_EQ(did_you_mean("diff_v3x", {"softmax", "diff_v1", "diff_v3"}),
            "; did you mean 'diff_v3'?");
  EXPECT_EQ(did_you_mean("relu", {"softmax", "diff_v1"}), "");
}

TEST(NearestKey, matches_the_name_first_and_then_the_section) {
  const std::vector<std::string> keys = {"run.name", "optim.name", "optim.lr"};
  EXPECT_EQ(nearest_key("opt.name", keys), "optim.name");
  EXPECT_EQ(nearest_key("rn.name", keys), "run.name");
  EXPECT_EQ(nearest_key("rn.nam", keys), "run.name");
  EXPECT_EQ(nearest_key("lr", keys), "optim.lr");
  EXPECT_EQ(nearest_key("train.lr", keys), "optim.lr");
  EXPECT_EQ(nearest_key("optim.momentum", keys), "");
}

}  // namespace
}  // namespace difftape::system
