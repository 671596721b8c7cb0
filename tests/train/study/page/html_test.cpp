#include "train/study/page/frame.h"
#include "train/system/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

namespace difftape::study::page {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;

TEST(EscapeHtml, leaves_nothing_that_could_open_a_tag_or_end_an_attribute) {
  EXPECT_EQ(escape_html("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
}

RC_GTEST_PROP(JsonForScript, reads_back_and_never_ends_the_script, (const std::string& text)) {
  const nlohmann::ordered_json json = {{"text", text + "</script><!--"}};
  const std::string safe = json_for_script(json);
  RC_ASSERT(safe.find('<') == std::string::npos);
  const auto valid = nlohmann::ordered_json::parse(
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  RC_ASSERT(system::parse_json(safe) == valid);
}

TEST(ShellCommand, quotes_what_a_shell_would_interpret) {
  const std::vector<std::string> words = {
      "difftape", "train", "my runs/a.yaml", "--set", "run.name=it's", "", "a*b"};
  EXPECT_EQ(shell_command(words),
            "difftape train 'my runs/a.yaml' --set 'run.name=it'\\''s' '' 'a*b'");
}

TEST(CsvLink, holds_the_data) {
  EXPECT_EQ(csv_link("a.csv", "x,1\n<é"),
            "<a class=\"csv\" download=\"a.csv\" "
            "href=\"data:text/csv;charset=utf-8,x,1%0A%3C%C3%A9\">CSV</a>");
}

TEST(MarkedTable, marks_a_diverged_run_and_escapes_names) {
  const system::Table table{
      {{"", "run", true}, {"loss", "train"}, {"loss", "val"}, {"", "state", true}},
      {{"<a>", "1", "2", "diverged at step 3"}}};
  const std::vector<RowMark> diverged{{.arm = 9, .diverged = true}};
  const std::string html = marked_table(table, diverged);
  EXPECT_THAT(html, HasSubstr("<th scope=\"colgroup\" colspan=\"2\">loss</th>"));
  EXPECT_THAT(html, HasSubstr("<span class=\"swatch arm-1 hollow\"></span>&lt;a&gt;</th>"
                              "<td class=\"number\">1</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"left diverged\">diverged at step 3</td>"));
  const std::vector<RowMark> plain(1);
  EXPECT_THAT(marked_table(table, plain),
              Not(AnyOf(HasSubstr("left diverged"), HasSubstr("swatch"))));
}

TEST(MarkedTable, has_no_line_of_groups_without_groups) {
  const system::Table table{{{"", "arm", true}, {"", "lr"}}, {{"a", "1"}}};
  const std::vector<RowMark> marks(1);
  EXPECT_THAT(marked_table(table, marks), Not(HasSubstr("<td></td>")));
}

}  // namespace
}  // namespace difftape::study::page
