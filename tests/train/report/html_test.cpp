#include "train/report/html.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace difftape {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

TEST(EscapeHtml, leaves_nothing_that_could_open_a_tag_or_end_an_attribute) {
  EXPECT_EQ(escape_html("<b a='1' c=\"2\">&"), "&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;&amp;");
}

RC_GTEST_PROP(JsonForScript, reads_back_and_never_ends_the_script, (const std::string& text)) {
  const nlohmann::ordered_json json = {{"text", text + "</script><!--"}};
  const std::string safe = json_for_script(json);
  RC_ASSERT(safe.find('<') == std::string::npos);
  const auto valid = nlohmann::ordered_json::parse(
      json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  RC_ASSERT(nlohmann::ordered_json::parse(safe) == valid);
}

TEST(FillTemplate, replaces_each_key_and_does_not_search_values) {
  EXPECT_EQ(fill_template("<{{a}}|{{b}}|{{a}}>", {{"a", "{{b}}"}, {"b", "2"}}), "<{{b}}|2|{{b}}>");
}

TEST(FillTemplate, refuses_unknown_unused_and_unclosed_keys) {
  EXPECT_THAT([] { fill_template("{{a}}", {}); },
              ThrowsMessage<std::logic_error>("template: unknown key a"));
  EXPECT_THAT(
      [] {
        fill_template("", {{"a", ""}});
      },
      ThrowsMessage<std::logic_error>("template: unused key a"));
  EXPECT_THAT([] { fill_template("{{a", {}); },
              ThrowsMessage<std::logic_error>("template: {{ without }}"));
}

TEST(Differences, shows_what_differs_and_folds_the_rest_away) {
  const std::vector<std::string> runs = {"one", "<two>"};
  const std::string html =
      differences({{"optim.lr", {"1e-3", "1e-2"}}, {"run.seed", {"1", "1"}}}, runs);
  EXPECT_THAT(html, HasSubstr("&lt;two&gt;"));
  EXPECT_THAT(html,
              HasSubstr("<tr><th scope=\"row\">optim.lr</th><td>1e-3</td><td>1e-2</td></tr>"));
  EXPECT_THAT(html, HasSubstr("1 the same in every run"));
  EXPECT_LT(html.find("optim.lr"), html.find("<details>"));
  EXPECT_GT(html.find("run.seed"), html.find("<details>"));
}

TEST(Differences, of_equal_runs_are_none) {
  const std::vector<std::string> two = {"a", "b"}, one = {"a"};
  EXPECT_THAT(differences({{"run.seed", {"1", "1"}}}, two), HasSubstr("No differences."));
  EXPECT_THAT(differences({{"run.seed", {"1"}}}, one), Not(HasSubstr("No differences.")));
}

TEST(ShellCommand, quotes_what_a_shell_would_interpret) {
  const std::vector<std::string> words = {
      "difftape", "train", "my runs/a.yaml", "--set", "run.name=it's", "", "a*b"};
  EXPECT_EQ(shell_command(words),
            "difftape train 'my runs/a.yaml' --set 'run.name=it'\\''s' '' 'a*b'");
}

TEST(SummaryTable, marks_a_diverged_run_and_escapes_names) {
  Table table;
  table.columns = {{"", "run", true}, {"loss", "train"}, {"loss", "val"}, {"", "state", true}};
  table.rows = {{"<a>", "1", "2", "diverged at step 3"}};
  const std::string html = summary_table(table);
  EXPECT_THAT(html, HasSubstr("<th scope=\"colgroup\" colspan=\"2\">loss</th>"));
  EXPECT_THAT(html, HasSubstr("&lt;a&gt;</th><td class=\"number\">1</td>"));
  EXPECT_THAT(html, HasSubstr("<td class=\"left diverged\">diverged at step 3</td>"));
}

}  // namespace
}  // namespace difftape
