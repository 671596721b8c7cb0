// An old name of a key or word is an error at its place that says the new one.
#include "train/run/config/former_names.h"

#include <fmt/ranges.h>

#include "tests/train/run/config/config_files.h"
#include "train/run/config/fields.h"

namespace difftape::run {
namespace {

using FormerNames = ConfigFiles;

TEST_F(FormerNames, of_keys_are_errors_that_name_the_new_ones) {
  ASSERT_EQ(former_keys().size(), 16u);
  for (const FormerKey& former : former_keys()) {
    EXPECT_EQ(find_field(former.key), nullptr) << former.key;
    for (const std::string& now : former.now) EXPECT_NE(find_field(now), nullptr) << now;
    const std::string message =
        fmt::format("error: unknown key '{}'; it is now {}", former.key, former.description());
    EXPECT_EQ(error(former.key + ": 1\n"), "a.yaml:1:1: " + message);
    EXPECT_EQ(error("", {former.key + "=1"}), "--set " + former.key + "=1: " + message);
    const size_t dot = former.key.rfind('.');
    EXPECT_EQ(error(former.key.substr(0, dot) + ":\n  " + former.key.substr(dot + 1) + ": 1\n"),
              "a.yaml:2:3: " + message);
    EXPECT_EQ(sweep_error("sweep.grid: {" + former.key + ": [1, 2]}\n"), "s.yaml:1:14: " + message);
  }
}

TEST_F(FormerNames, of_values_are_errors_that_name_the_new_ones) {
  ASSERT_EQ(former_values().size(), 4u);
  for (const FormerValue& former : former_values()) {
    const Field* field = find_field(former.key);
    ASSERT_NE(field, nullptr) << former.key;
    EXPECT_THAT(field->spec.constraint.names, testing::Contains(former.now));
    EXPECT_THAT(field->spec.constraint.names, testing::Not(testing::Contains(former.value)));
    EXPECT_EQ(error(former.key + ": " + former.value + "\n"),
              fmt::format("a.yaml:1:{}: error: {}: '{}' is not one of {}; it is now '{}'",
                          former.key.size() + 3, former.key, former.value,
                          fmt::join(field->spec.constraint.names, ", "), former.now));
  }
}

TEST_F(FormerNames, are_told_once_in_full) {
  EXPECT_EQ(error("model: {attention: {window: 128}}\n"),
            "a.yaml:1:21: error: unknown key 'model.attention.window'; it is now "
            "model.attention.sliding_window");
  EXPECT_EQ(error("model.match: parameters\ndata.keys: 3\n"),
            "a.yaml:1:1: error: unknown key 'model.match'; it is now model.match_params: true for "
            "parameters, false for none\n"
            "a.yaml:2:1: error: unknown key 'data.keys'; it is now data.needles.cities or "
            "data.mqar.keys or data.noisy_recall.keys");
  EXPECT_THAT(error("data.kind: recall\n"), testing::EndsWith("; it is now 'mqar'"));
}

TEST(UnderNewNames, what_a_run_recorded_is_what_it_would_record_today) {
  const auto now = [](const char* key, const char* value, const char* kind = "text") {
    return under_new_names(key, value, kind).value_or(KeyAndValue());
  };
  EXPECT_EQ(now("optim.lr", "0.01"), KeyAndValue("optim.lr", "0.01"));
  EXPECT_EQ(now("model.attention.window", "64"),
            KeyAndValue("model.attention.sliding_window", "64"));
  EXPECT_EQ(now("model.attention.normaliser", "off_by_one"),
            KeyAndValue("model.attention.softmax_denominator", "softmax1"));
  EXPECT_EQ(now("data.kind", "recall"), KeyAndValue("data.kind", "mqar"));
  EXPECT_EQ(now("model.match", "parameters"), KeyAndValue("model.match_params", "true"));
  EXPECT_EQ(now("model.match", "none"), KeyAndValue("model.match_params", "false"));
  EXPECT_EQ(now("data.keys", "8", "mqar"), KeyAndValue("data.mqar.keys", "8"));
  EXPECT_EQ(now("data.keys", "8", "needles"), KeyAndValue("data.needles.cities", "8"));
  EXPECT_EQ(under_new_names("data.keys", "8", "text"), std::nullopt);
}

TEST_F(FormerNames, leave_rules_about_the_new_key_unsaid) {
  EXPECT_EQ(error("data: {kind: mqar, pairs: 65, seq_len: 8}\n"),
            "a.yaml:1:20: error: unknown key 'data.pairs'; it is now data.mqar.pairs");
}

}  // namespace
}  // namespace difftape::run
