// Tests the axes of a sweep: learning rates, grids, zips, and the selection of arms.
#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

class SweepAxes : public ConfigFiles {
 protected:
  static std::vector<std::string> names(const study::SweepConfig& sweep) {
    std::vector<std::string> all;
    for (const study::SweepRun& run : sweep.runs) all.push_back(run.config().run.name);
    return all;
  }
  /// Returns the error for a sweep with one arm `a` and this line.
  std::string error_of(const std::string& line, const std::vector<std::string>& overrides = {}) {
    return sweep_error("sweep:\n  arms: {a: }\n  " + line + "\n", overrides);
  }
};

TEST_F(SweepAxes, rates_come_before_arms_so_that_a_part_of_a_sweep_is_balanced) {
  const study::SweepConfig s =
      sweep("sweep: {seeds: [1, 2], lr: [3e-3, 1.5e-2], arms: {b: , a: }}\n");
  EXPECT_EQ(names(s),
            (std::vector<std::string>{"b-lr3e-03-seed1", "a-lr3e-03-seed1", "b-lr1.5e-02-seed1",
                                      "a-lr1.5e-02-seed1", "b-lr3e-03-seed2", "a-lr3e-03-seed2",
                                      "b-lr1.5e-02-seed2", "a-lr1.5e-02-seed2"}));
  const Config& last = s.runs.back().config();
  EXPECT_EQ(last.optim.lr, 1.5e-2);
  EXPECT_EQ(last.run.seed, 2u);
  EXPECT_EQ(last.run.arm, "a") << "learning rates and seeds are not arms";
  EXPECT_EQ(last.run.out, "runs/s/a-lr1.5e-02-seed2");
  EXPECT_EQ(s.swept, std::vector<std::string>{"optim.lr"});
}

TEST_F(SweepAxes, wortsman_stands_for_seven_rates) {
  const study::SweepConfig s = sweep("optim.min_lr: 1e-5\nsweep: {lr: wortsman, arms: {a: }}\n");
  std::vector<double> lrs;
  for (const study::SweepRun& run : s.runs) lrs.push_back(run.config().optim.lr);
  EXPECT_EQ(lrs, (std::vector<double>{3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 3e-1}));
  EXPECT_EQ(s.runs[0].config().run.name, "a-lr3e-04");
}

TEST_F(SweepAxes, each_arm_may_have_its_own_rate_by_size_times_factors) {
  write("best/lr.csv",
        "arm,model.d_model,parameters,lr_star,low,high,loss,seeds,reason\n"
        "a,32,1,0.0123,,,1.5,1 2,\nb,32,1,0.004,0.003,0.005,1.5,1,\nb,64,1,0.00833,,,1.5,1,\n"
        "c,32,1,,,,,1,the lowest rung is the last\na-num_layers2,32,1,0.02,,,1.5,1 2,\n");
  const auto own = [&](const std::string& more, const std::string& arms) {
    return sweep("model: {d_model: 32, num_heads: 2, d_ff: 64}\nsweep:\n  lr: {own: best/lr.csv" +
                 more + "}\n  arms: " + arms + "\n");
  };
  const study::SweepConfig s = own(", times: [1, 4]", "{a: , b: {model.d_model: 64}}");
  EXPECT_EQ(names(s), (std::vector<std::string>{"a-lr1.23e-02", "b-lr8.33e-03", "a-lr4.92e-02",
                                                "b-lr3.332e-02"}));
  EXPECT_NEAR(s.runs[3].config().optim.lr / (4 * 0.00833), 1, 1e-9) << "claims look for this value";
  const study::SweepConfig one = own("", "{a: , b: }");
  EXPECT_EQ(names(one), (std::vector<std::string>{"a", "b"})) << "one factor is not in the names";
  EXPECT_EQ(one.runs[0].config().optim.lr, 0.0123);
  EXPECT_EQ(one.swept, std::vector<std::string>{"optim.lr"});
  const study::SweepConfig grid = own("", "{a: }\n  grid: {model.num_layers: [1, 2]}");
  std::vector<std::string> rates;
  for (const study::SweepRun& run : grid.runs)
    rates.push_back(fmt::format("{} {}", run.config().run.arm, run.config().optim.lr));
  EXPECT_EQ(rates, (std::vector<std::string>{"a-num_layers1 0.0123", "a-num_layers2 0.02"}))
      << "the rate of run.arm, else of the arm";
  EXPECT_EQ(sweep_error("model: {d_model: 32, num_heads: 2, d_ff: 64}\nsweep:\n"
                        "  seeds: [1, 2]\n  lr: {own: best/lr.csv}\n  arms: {b: , c: , d: }\n"),
            "s.yaml:4:13: error: sweep.lr: best/lr.csv: arm c at model.d_model 32 has no learning "
            "rate of its own: the lowest rung is the last\n"
            "s.yaml:4:13: error: sweep.lr: best/lr.csv: has no learning rate of arm d at "
            "model.d_model 32; run its ladder and rewrite the file with difftape report");
}

TEST_F(SweepAxes, own_rates_are_read_strictly) {
  EXPECT_THAT(error_of("lr: {own: none.csv}"), HasSubstr("sweep.lr: cannot read none.csv"));
  EXPECT_THAT(error_of("lr: {times: [1, 4]}"),
              HasSubstr("sweep.lr: expected {own: FILE, times: FACTORS}; name the file"));
  EXPECT_THAT(
      error_of("lr: {own: l.csv, tims: [1]}"),
      HasSubstr("sweep.lr: unknown key 'tims'; did you mean 'times'?; the keys are own and times"));
  const auto with = [&](const std::string& lines, const std::string& times = "[1]") {
    write("l.csv", "arm,model.d_model,parameters,lr_star,low,high,loss,seeds,reason\n" + lines);
    return error_of("lr: {own: l.csv, times: " + times + "}");
  };
  EXPECT_THAT(with("a,128\n"), HasSubstr("sweep.lr: l.csv:2: has 2 fields"));
  EXPECT_THAT(with("a,128,1,0.1,,,1,1,\n", "[0]"), HasSubstr("optim.lr"));
  EXPECT_THAT(with("a,128,1,0.1,,,1,1,\n", "[2, 2]"), HasSubstr("is given twice"));
}

TEST_F(SweepAxes, a_rate_below_min_lr_is_an_error_at_the_rate) {
  EXPECT_EQ(sweep_error("optim.min_lr: 1e-3\nsweep: {lr: [1e-4, 1e-2], arms: {a: }}\n"),
            "s.yaml:2:14: error: optim.lr: min_lr 0.001 is above the peak lr 0.0001; lower "
            "optim.min_lr or raise optim.lr");
}

TEST_F(SweepAxes, a_grid_is_every_combination_the_last_key_fastest_and_makes_arms) {
  const study::SweepConfig s = sweep(
      "sweep:\n  baseline: b\n  arms: {a: , b: }\n"
      "  grid: {model.d_ff: [64, 128], optim.betas: [[0.9, 0.95], [0.8, 0.9]]}\n");
  EXPECT_EQ(names(s),
            (std::vector<std::string>{"a-d_ff64-betas0.9,0.95", "a-d_ff64-betas0.8,0.9",
                                      "a-d_ff128-betas0.9,0.95", "a-d_ff128-betas0.8,0.9",
                                      "b-d_ff64-betas0.9,0.95", "b-d_ff64-betas0.8,0.9",
                                      "b-d_ff128-betas0.9,0.95", "b-d_ff128-betas0.8,0.9"}));
  EXPECT_EQ(s.runs[3].config().model.d_ff, 128);
  EXPECT_EQ(s.runs[3].config().optim.betas[0], 0.8);
  EXPECT_EQ(s.runs[3].config().run.arm, s.runs[3].config().run.name);
  EXPECT_EQ(s.baseline, "b-d_ff64-betas0.9,0.95") << "the first run of the arm that was named";
}

TEST_F(SweepAxes, sections_of_a_grid_may_be_nested_and_its_values_win_over_those_of_bases) {
  write("v.yaml", "model.d_ff: 8\n");
  const study::SweepConfig s =
      sweep("sweep:\n  arms: {a: {base: v.yaml}}\n  grid: {model: {d_ff: [64, 128]}}\n");
  EXPECT_EQ(s.runs[0].config().model.d_ff, 64);
  EXPECT_EQ(s.runs[1].config().model.d_ff, 128);
}

TEST_F(SweepAxes, a_zip_takes_the_first_values_together_then_the_second) {
  const study::SweepConfig s =
      sweep("sweep:\n  arms: {a: }\n  zip: {data.batch_size: [8, 4], optim.lr: [2e-2, 1e-2]}\n");
  EXPECT_EQ(names(s), (std::vector<std::string>{"a-lr2e-02-batch_size8", "a-lr1e-02-batch_size4"}));
  EXPECT_EQ(s.runs[1].config().data.batch_size, 4);
  EXPECT_EQ(s.runs[1].config().optim.lr, 1e-2);
  EXPECT_EQ(s.runs[1].config().run.arm, "a-batch_size4");
}

TEST_F(SweepAxes, keys_with_one_value_are_not_part_of_the_names) {
  const study::SweepConfig s = sweep("sweep: {seeds: [7], lr: [1e-2], grid: {model.d_ff: [64]}}\n");
  EXPECT_EQ(names(s), std::vector<std::string>{"s"}) << "without arms there is one, the sweep";
  EXPECT_EQ(s.runs[0].config().model.d_ff, 64);
  EXPECT_EQ(s.swept, (std::vector<std::string>{"optim.lr", "model.d_ff"}));
}

TEST_F(SweepAxes, values_that_are_paths_cannot_leave_the_folder) {
  const study::SweepConfig s =
      sweep("sweep: {arms: {a: }, grid: {data.path: [../x y.txt, b/c.txt]}}\n");
  EXPECT_EQ(names(s), (std::vector<std::string>{"a-path.._x_y.txt", "a-pathb_c.txt"}));
  EXPECT_EQ(s.runs[1].config().data.path,
            std::vector<std::string>{(fs::current_path() / "b/c.txt").string()});
}

TEST_F(SweepAxes, sweep_only_selects_arms_and_the_command_line_overrides_it) {
  const std::string text = "sweep: {only: [b], seeds: [1, 2], arms: {a: , b: , c: }}\n";
  const auto selected = [](const study::SweepConfig& s) {
    std::string all;
    for (const study::SweepRun& run : s.runs) all += run.selected ? run.base_arm : "-";
    return all;
  };
  EXPECT_EQ(selected(sweep(text)), "-b--b-");
  EXPECT_EQ(selected(study::load_sweep("s.yaml", {}, "", {"c", "a"})), "a-ca-c");
  sweep("sweep: {seeds: [1], arms: {a: , 'a,b': , b: }}\n");
  EXPECT_EQ(selected(study::load_sweep("s.yaml", {}, "", {"a", "b"})), "-a,b-");
  EXPECT_EQ(selected(study::load_sweep("s.yaml", {}, "", {"b", "a"})), "a-b");
  sweep(text);
  EXPECT_EQ(message(system::Exit::usage, [] { study::load_sweep("s.yaml", {}, "", {"d"}); }),
            "--arms: 'd' is not an arm of this sweep (a, b, c); did you mean 'a'?");
  EXPECT_EQ(sweep_error("sweep: {only: [softmx], arms: {softmax: }}\n"),
            "s.yaml:1:16: error: sweep.only: 'softmx' is not an arm of this sweep (softmax); did "
            "you mean 'softmax'?");
  EXPECT_EQ(error_of("only: []"),
            "s.yaml:3:9: error: sweep.only: the list is empty; list the arms to train");
}

TEST_F(SweepAxes, keys_that_are_unknown_or_cannot_be_swept_are_errors) {
  EXPECT_EQ(error_of("grid: {model.d_f: [1], run.seed: [1, 2], base: [x], sweep.lr: [1]}"),
            "s.yaml:3:44: error: sweep.grid: base cannot be swept; use arms\n"
            "s.yaml:3:10: error: unknown key 'model.d_f'; did you mean 'model.d_ff'?\n"
            "s.yaml:3:26: error: sweep.grid: run.seed cannot be swept here; use sweep.seeds\n"
            "s.yaml:3:55: error: sweep.grid: sweep.lr cannot be swept here; remove it");
  EXPECT_EQ(error_of("gird: {model.d_ff: [1]}"),
            "s.yaml:3:3: error: unknown section 'sweep.gird'; did you mean 'sweep.grid'?");
}

TEST_F(SweepAxes, missing_empty_and_repeating_lists_are_errors) {
  EXPECT_EQ(
      error_of("grid: {model.d_ff: 64, train.steps: [], optim.eps: [1e-8, 0.00000001]}"),
      "s.yaml:3:22: error: sweep.grid: model.d_ff needs a list of values, got '64'\n"
      "s.yaml:3:39: error: sweep.grid: train.steps needs a list of values, got an empty list\n"
      "s.yaml:3:61: error: sweep: optim.eps 1e-08 is given twice; remove one");
  EXPECT_EQ(error_of("lr: []"),
            "s.yaml:3:7: error: sweep.lr: optim.lr needs a list of values, got an empty list");
  EXPECT_EQ(error_of("lr: wortman"),
            "s.yaml:3:7: error: sweep.lr: expected learning rates such as [1.0e-3, 3.0e-3], or "
            "wortsman, got "
            "'wortman'; did you mean 'wortsman'?");
  EXPECT_EQ(error_of("grid: [model.d_ff]"),
            "s.yaml:3:9: error: sweep.grid: expected keys and their values, such as {model.d_ff: "
            "[64, 128]}, got a list");
}

TEST_F(SweepAxes, lists_of_a_zip_have_equal_lengths) {
  EXPECT_EQ(error_of("zip: {model.d_ff: [64, 128], train.steps: [60, 70, 80]}"),
            "s.yaml:3:45: error: sweep.zip: train.steps has 3 values, model.d_ff has 2; need lists "
            "of equal length");
  EXPECT_EQ(
      error_of("zip: {model.d_ff: [64, 64], train.steps: [60, 60]}"),
      "s.yaml:3:26: error: sweep: model.d_ff 64 with train.steps 60 is given twice; remove one");
}

TEST_F(SweepAxes, values_of_the_wrong_type_and_out_of_range_are_all_reported) {
  EXPECT_EQ(error_of("grid: {model.d_ff: [64, wide, 0]}", {"sweep.lr=[-1]"}),
            "--set sweep.lr=[-1]: error: optim.lr: -1 is out of range; need > 0\n"
            "s.yaml:3:27: error: model.d_ff: expected an integer, got 'wide'\n"
            "s.yaml:3:33: error: model.d_ff: 0 is out of range; need in [1, 1048576]");
}

TEST_F(SweepAxes, a_swept_key_is_set_nowhere_else) {
  EXPECT_EQ(error_of("lr: [1e-2, 2e-2]\n  grid: {optim.lr: [1e-1], model.d_ff: [8]}\n  zip: "
                     "{model.d_ff: [9]}"),
            "s.yaml:4:10: error: sweep.grid: optim.lr is swept twice; leave it in one of sweep.lr, "
            "sweep.grid and sweep.zip\n"
            "s.yaml:5:9: error: sweep.zip: model.d_ff is swept twice; leave it in one of sweep.lr, "
            "sweep.grid and sweep.zip");
  EXPECT_EQ(
      sweep_error("sweep: {lr: [1e-2, 2e-2], arms: {a: {optim.lr: 1}}}\n", {"optim.lr=0.5"}),
      "--set optim.lr=0.5: error: optim.lr: this sweep varies the key, so it cannot be set here; "
      "change sweep.lr, sweep.grid or sweep.zip instead\n"
      "s.yaml:1:38: error: optim.lr: this sweep varies the key, so it cannot be set here; change "
      "sweep.lr, sweep.grid or sweep.zip instead");
}

TEST_F(SweepAxes, rules_between_keys_hold_for_every_combination) {
  EXPECT_EQ(error_of("grid: {model.num_heads: [4, 3], model.d_model: [64, 96]}"),
            "s.yaml:3:51: error: model.d_model: num_heads 3 does not divide d_model 64; change one "
            "of them, or set model.head_dim");
}

TEST_F(SweepAxes, run_names_are_unique_and_their_number_is_limited) {
  EXPECT_EQ(sweep_error("sweep: {seeds: [1, 2], lr: [1e-2, 2e-2], arms: {a: , a-lr1e-02: }}\n"
                        "optim.min_lr: 0\n"),
            "no error");
  EXPECT_EQ(sweep_error("sweep: {grid: {data.path: [a/b, a_b]}, arms: {a: }}\n"),
            "s.yaml:1:47: error: sweep.arms: two runs would be called 'a-patha_b'; rename this "
            "arm");
  EXPECT_THAT(sweep_error("sweep: {arms: {" + std::string(201, 'a') + ": }}\n"),
              HasSubstr("the name of a run would have 201 bytes, but must have at most 200"));
  std::string seeds = "0";
  for (int seed = 1; seed < 200; ++seed) seeds += "," + std::to_string(seed);
  EXPECT_THAT(sweep_error("sweep: {seeds: [" + seeds + "], arms: {a: }, grid: {optim.eps: [" +
                          "1,2,3,4,5,6,7,8], model.d_ff: [1,2,3,4,5,6,7,8]}}\n"),
              HasSubstr("s.yaml:1:1: error: sweep: the number of runs exceeds 10000"));
}

}  // namespace
}  // namespace difftape::run
