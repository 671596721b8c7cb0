#include "train/study/sweep/sweep_config.h"

#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

using SweepFile = ConfigFiles;

TEST_F(SweepFile, arms_run_in_the_order_of_the_file_on_the_shared_values) {
  write("tiny.yaml", "train.steps: 500\nmodel.d_ff: 64\n");
  write("variants/v1.yaml", "base: ../tiny.yaml\nrun.name: v1\nmodel.attention.kind: diff_v1\n");
  const study::SweepConfig s = sweep(
      "base: tiny.yaml\n"
      "train.steps: 200\n"
      "sweep:\n"
      "  name: quick\n"
      "  baseline: softmax\n"
      "  seeds: [7]\n"
      "  arms:\n"
      "    v1: {base: variants/v1.yaml}\n"
      "    softmax:\n"
      "    wide: {model: {d_ff: 128}, optim.lr: 0.1}\n");
  EXPECT_EQ(s.name, "quick");
  EXPECT_EQ(s.baseline, "softmax");
  EXPECT_EQ(s.out, "runs/quick");
  ASSERT_EQ(s.runs.size(), 3u);
  EXPECT_EQ(s.runs[0].base_arm, "v1");
  EXPECT_EQ(s.runs[1].base_arm, "softmax");
  EXPECT_EQ(s.runs[2].base_arm, "wide");
  const Config& v1 = s.runs[0].config();
  EXPECT_EQ(v1.run.name, "v1");
  EXPECT_EQ(v1.run.seed, 7u);
  EXPECT_EQ(v1.run.out, "runs/quick/v1");
  EXPECT_EQ(v1.model.attention.kind, "diff_v1");
  EXPECT_EQ(v1.train.steps, 200) << "the base of the variant must not undo the sweep's value";
  EXPECT_EQ(v1.model.d_ff, 64);
  EXPECT_EQ(s.runs[1].config().model.attention.kind, "softmax");
  EXPECT_EQ(s.runs[2].config().model.d_ff, 128);
  EXPECT_EQ(s.runs[2].config().optim.lr, 0.1);
  EXPECT_EQ(s.runs[2].resolved.origin("run.name").location.origin(), "s.yaml:10");
  EXPECT_EQ(s.runs[2].resolved.origin("run.seed").location.origin(), "s.yaml:6");
}

TEST_F(SweepFile, name_baseline_and_seed_have_defaults) {
  const study::SweepConfig s = sweep("run.seed: 5\nsweep.arms: {b: , a: }\n");
  EXPECT_EQ(s.name, "s");
  EXPECT_EQ(s.baseline, "b");
  EXPECT_EQ(s.runs[0].config().run.seed, 5u);
  EXPECT_EQ(s.runs[0].config().run.seed, 5u);
  EXPECT_EQ(sweep("sweep.arms: {b: , a: }\n").runs[0].config().run.seed, RunConfig().seed);
}

TEST_F(SweepFile, seeds_repeat_all_arms_one_seed_after_another) {
  const study::SweepConfig s = sweep("sweep: {seeds: [3, 1], arms: {b: , a: }}\n");
  std::vector<std::string> names;
  for (const study::SweepRun& run : s.runs) names.push_back(run.config().run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"b-seed3", "a-seed3", "b-seed1", "a-seed1"}));
  EXPECT_EQ(s.runs[1].base_arm, "a");
  EXPECT_EQ(s.runs[3].config().run.seed, 1u);
  EXPECT_EQ(s.runs[3].config().run.out, "runs/s/a-seed1");
}

TEST_F(SweepFile, overrides_apply_to_every_arm_and_to_the_sweep) {
  const study::SweepConfig s = sweep("sweep: {seeds: [1, 2], arms: {b: {train.steps: 90}, a: }}\n",
                                     {"train.steps=80", "sweep.seeds=[4]", "sweep.name=x"});
  ASSERT_EQ(s.runs.size(), 2u);
  EXPECT_EQ(s.runs[0].config().train.steps, 80);
  EXPECT_EQ(s.runs[1].config().train.steps, 80);
  EXPECT_EQ(s.runs[1].config().run.seed, 4u);
  EXPECT_EQ(s.runs[1].config().run.out, "runs/x/a");
}

TEST_F(SweepFile, the_out_folder_can_be_chosen) {
  write("s.yaml", "sweep.arms: {a: }\n");
  const study::SweepConfig s = study::load_sweep("s.yaml", {}, "/tmp/some where: #1");
  EXPECT_EQ(s.out, "/tmp/some where: #1");
  EXPECT_EQ(s.runs[0].config().run.out, "/tmp/some where: #1/a");
}

TEST_F(SweepFile, a_sweep_can_have_a_sweep_as_base) {
  write("quick.yaml", "train.steps: 60\nsweep: {baseline: b, arms: {a: , b: }}\n");
  const study::SweepConfig s = sweep("base: quick.yaml\ntrain.steps: 70\nsweep.seeds: [8]\n");
  EXPECT_EQ(s.baseline, "b");
  ASSERT_EQ(s.runs.size(), 2u);
  EXPECT_EQ(s.runs[1].config().run.seed, 8u);
  EXPECT_EQ(s.runs[1].config().train.steps, 70);
}

TEST_F(SweepFile, a_sweep_needs_arms_with_unique_names) {
  EXPECT_EQ(sweep_error("train.steps: 60\n"),
            "s.yaml:1:1: error: this file has no 'sweep.arms'; list the arms, or train one model "
            "with 'difftape train'");
  EXPECT_EQ(sweep_error("sweep: {arms: {}}\n"),
            "s.yaml:1:15: error: sweep.arms: expected arms such as 'softmax: {...}', got none");
  EXPECT_EQ(sweep_error("sweep: {arms: [a, b]}\n"),
            "s.yaml:1:15: error: sweep.arms: expected arms such as 'softmax: {...}', got a list");
  EXPECT_EQ(sweep_error("sweep: {arms: {a: , b: , a: }}\n"),
            "s.yaml:1:26: error: sweep.arms: duplicate arm 'a'; every arm needs another name");
  EXPECT_EQ(sweep_error("sweep: {arms: {a/b: }}\n"),
            "s.yaml:1:16: error: run.name: 'a/b' is not a valid folder name; need one word without "
            "'/'; set the path with run.out");
}

TEST_F(SweepFile, the_baseline_is_one_of_the_arms) {
  EXPECT_EQ(sweep_error("sweep: {baseline: sofmax, arms: {diff: , softmax: }}\n"),
            "s.yaml:1:19: error: sweep.baseline: 'sofmax' is not an arm of this sweep (diff, "
            "softmax); did you mean 'softmax'?");
}

TEST_F(SweepFile, seeds_are_distinct_integers) {
  EXPECT_EQ(
      sweep_error("sweep: {seeds: [], arms: {a: }}\n"),
      "s.yaml:1:16: error: sweep.seeds: the list is empty; give at least one seed, such as [1]");
  EXPECT_EQ(sweep_error("sweep: {seeds: [1, 2, 1], arms: {a: }}\n"),
            "s.yaml:1:16: error: sweep.seeds: 1 appears twice; remove one");
  EXPECT_EQ(sweep_error("sweep: {seeds: 3, arms: {a: }}\n"),
            "s.yaml:1:16: error: sweep.seeds: expected a list of integers, got '3'");
  EXPECT_EQ(sweep_error("sweep: {seeds: [-3], arms: {a: }}\n"),
            "s.yaml:1:17: error: sweep.seeds: -3 is out of range; need >= 0");
}

TEST_F(SweepFile, the_name_can_be_a_folder) {
  EXPECT_EQ(
      sweep_error("sweep: {name: a/b, arms: {a: }}\n"),
      "s.yaml:1:15: error: sweep.name: 'a/b' is not a valid folder name; use one word without '/'");
}

TEST_F(SweepFile, unknown_keys_of_the_sweep_and_of_its_arms_are_errors) {
  EXPECT_EQ(sweep_error("sweep: {baselin: a, arms: {a: {lr: 1}, b: {optim.lr: fast}}}\n",
                        {"sweep.seed=[1]"}),
            "s.yaml:1:9: error: unknown key 'sweep.baselin'; did you mean 'sweep.baseline'?\n"
            "--set sweep.seed=[1]: error: unknown key 'sweep.seed'; did you mean 'sweep.seeds'?\n"
            "s.yaml:1:32: error: unknown key 'lr'; did you mean 'optim.lr'?\n"
            "s.yaml:1:54: error: optim.lr: expected a number, got 'fast'");
  EXPECT_EQ(sweep_error("sweep: {arms: {a: 3}}\n"),
            "s.yaml:1:19: error: expected keys and values, got '3'");
  EXPECT_EQ(sweep_error("sweep: {arms: {a: {base: gone.yaml}}}\n"),
            "s.yaml:1:26: error: base: gone.yaml: no such file");
}

TEST_F(SweepFile, rules_between_keys_hold_for_every_arm) {
  EXPECT_EQ(sweep_error("model.num_heads: 1\nsweep:\n  arms:\n    a: \n    b: "
                        "{model.attention.kind: diff_v1}\n"),
            "s.yaml:5:9: error: model.attention.kind: diff_v1 pairs the heads of the baseline, but "
            "num_heads is 1; need an even number. num_heads counts the heads of the softmax "
            "baseline for every kind");
}

TEST_F(SweepFile, only_the_sweep_sets_names_folders_and_seeds_of_runs) {
  EXPECT_EQ(
      sweep_error("run: {name: x, out: y}\nsweep: {seeds: [1], arms: {a: {run.seed: 3, "
                  "sweep.seeds: [1]}}}\n",
                  {"run.seed=2"}),
      "s.yaml:1:7: error: run.name: a sweep names its runs after its arms; remove this key\n"
      "s.yaml:1:16: error: run.out: a sweep writes to runs/<sweep.name>; use --out instead\n"
      "--set run.seed=2: error: run.seed: all arms have the same seeds; use sweep.seeds instead\n"
      "s.yaml:2:32: error: run.seed: all arms have the same seeds; use sweep.seeds instead\n"
      "s.yaml:2:45: error: sweep.seeds: an arm cannot contain a sweep; remove this key");
}

TEST_F(SweepFile, arms_with_equal_settings_are_a_warning) {
  write("v2.yaml", "model.attention.kind: diff_v2\n");
  const auto warnings = [this](const std::string& arms) {
    return warnings_of(sweep("base: v2.yaml\nsweep:\n  seeds: [1, 2]\n  arms: " + arms + "\n"));
  };
  EXPECT_THAT(
      warnings(
          "{softmax: {}, raw: {model.attention.lambda: raw}, v2: {model.attention.kind: diff_v2}}"),
      ElementsAre("arms 'softmax' and 'v2' have the same settings; set the keys in which they "
                  "should differ"));
  EXPECT_THAT(warnings("{softmax: {model.attention.kind: softmax}, v2: {}}"), IsEmpty());
  EXPECT_THAT(warnings("{one: {data.path: one.txt}, other: {data.path: other.txt}}"), IsEmpty());
}

TEST_F(SweepFile, a_missing_sweep_file_is_missing_input) {
  EXPECT_EQ(message(system::Exit::missing_input, [] { study::load_sweep("gone.yaml"); }),
            "gone.yaml: no such file");
}

}  // namespace
}  // namespace difftape::run
