// Roles are found in the configurations as a run writes them into its env.json.
#include "train/study/compare/claims/claims.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <map>

#include "tests/train/study/compare/synthetic_study.h"
#include "train/run/config/writer.h"
#include "train/study/sweep/sweep_config.h"

namespace difftape::study {
namespace {

using Config = std::map<std::string, std::string>;

/// A run of each arm of a shipped sweep, whose configuration `change` may change.
std::vector<RunRecord> runs_of(
    const std::string& name, const std::function<void(Config&)>& change = [](Config&) {}) {
  const std::string file = DIFFTAPE_TEST_SOURCE_DIR "/configs/sweeps/" + name;
  std::vector<RunRecord> runs;
  for (const SweepRun& run : load_sweep(file).runs) {
    test::Result result{.arm = run.config().run.arm, .lr = run.config().optim.lr};
    result.seed = static_cast<int>(run.config().run.seed);
    for (const auto& [key, value] : flat_config(run.config())) result.config[key] = value;
    change(result.config);
    runs.push_back(record(result));
  }
  return runs;
}

/// "arm against arm", or why there is no such pair.
std::string pair(const Study& study, ArmRole role, ArmRole against) {
  const ArmPair found = find_pair(study, role, against);
  return found.arm && found.against ? found.arm->name + " against " + found.against->name
                                    : found.reason;
}

TEST(Roles, are_all_found_in_the_shipped_ablations) {
  const std::vector<RunRecord> runs = runs_of("ablations.yaml");
  const Study study = make_study(runs, "v2");
  EXPECT_EQ(pair(study, ArmRole::no_lambda, ArmRole::v2), "v2_no_lambda against v2");
  EXPECT_EQ(pair(study, ArmRole::no_sigmoid, ArmRole::v2), "v2_no_sigmoid against v2");
  EXPECT_EQ(pair(study, ArmRole::cross_group, ArmRole::v2), "v2_cross_group against v2");
  EXPECT_EQ(pair(study, ArmRole::v1_no_subln, ArmRole::v1), "v1_no_norm against v1");
  EXPECT_EQ(pair(study, ArmRole::v2, ArmRole::softmax), "no arm is softmax (kind: softmax)");
}

TEST(Roles, are_all_found_in_the_shipped_stability_sweep) {
  const std::vector<RunRecord> runs = runs_of("stability.yaml");
  const Study study = make_study(runs);
  EXPECT_EQ(pair(study, ArmRole::v1, ArmRole::softmax), "diff_v1 against softmax");
  EXPECT_EQ(pair(study, ArmRole::v2, ArmRole::softmax), "diff_v2 against softmax");
}

/// The arms of V2 and softmax, after a key of V2 was set.
std::string with_key_of_v2(const std::string& key, const std::string& value) {
  const std::vector<RunRecord> runs = runs_of("stability.yaml", [&](Config& config) {
    if (config.at("model.attention.kind") == "diff_v2") config[key] = value;
  });
  return pair(make_study(runs), ArmRole::v2, ArmRole::softmax);
}

TEST(Roles, are_those_of_the_fields_of_attention_and_no_others) {
  EXPECT_EQ(with_key_of_v2("model.attention.gate", "preset"), "diff_v2 against softmax");
  EXPECT_EQ(with_key_of_v2("model.attention.gate", "head"), "no arm is V2 (kind: diff_v2)");
  EXPECT_EQ(with_key_of_v2("model.attention.qk_norm", "true"),
            "diff_v2 and softmax also differ in model.attention.qk_norm");
  EXPECT_EQ(with_key_of_v2("model.attention.sliding_window", "64"),
            "diff_v2 and softmax also differ in model.attention.sliding_window");
}

TEST(Roles, are_not_those_of_arms_with_attention_that_this_program_does_not_know) {
  const std::string unknown =
      "no arm is V2 (kind: diff_v2); this version cannot read the attention of diff_v2";
  EXPECT_EQ(with_key_of_v2("model.attention.gate", "both"), unknown);
  EXPECT_EQ(with_key_of_v2("model.attention.rotation", "none"), unknown);
}

TEST(Roles, are_those_of_runs_whose_keys_had_other_names) {
  const std::vector<RunRecord> runs = runs_of("stability.yaml", [](Config& config) {
    for (const auto& [now, former] :
         {std::pair("softmax_denominator", "normaliser"), std::pair("sliding_window", "window")}) {
      auto node = config.extract(std::string("model.attention.") + now);
      node.key() = std::string("model.attention.") + former;
      config.insert(std::move(node));
    }
  });
  EXPECT_EQ(pair(make_study(runs), ArmRole::v2, ArmRole::softmax), "diff_v2 against softmax");
}

TEST(RunRecord, has_the_values_of_its_configuration_without_the_quotes_of_yaml) {
  RunRecord run;
  run.env = {{"config", {{"a", "\"false\""}, {"b", "\"say \\\"so\\\"\""}, {"c", "1.5"}}}};
  EXPECT_EQ(run.config("a"), "false");
  EXPECT_EQ(run.config("b"), "say \"so\"");
  EXPECT_EQ(run.config("c"), "1.5");
  EXPECT_EQ(run.config("d"), "");
}

}  // namespace
}  // namespace difftape::study
