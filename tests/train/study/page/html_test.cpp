#include "train/study/page/html.h"
#include "train/system/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>

namespace difftape::study::page {
namespace {

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
  RC_ASSERT(system::parse_json(safe) == valid);
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

TEST(ShellCommand, quotes_what_a_shell_would_interpret) {
  const std::vector<std::string> words = {
      "difftape", "train", "my runs/a.yaml", "--set", "run.name=it's", "", "a*b"};
  EXPECT_EQ(shell_command(words),
            "difftape train 'my runs/a.yaml' --set 'run.name=it'\\''s' '' 'a*b'");
}

}  // namespace
}  // namespace difftape::study::page
