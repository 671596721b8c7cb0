// difftape analyze: what a user sees and gets as files.
#include "tests/train/run/loop/tiny.h"
#include "train/app/analyze/snr.h"
#include "train/run/records/h5.h"
#include "train/system/json.h"

namespace difftape::app {
namespace {

namespace fs = std::filesystem;
using test::contents;
using test::Outcome;
using test::put;
using testing::HasSubstr;
using Words = std::vector<std::string>;

class Analyze : public testing::Test {
 protected:
  Outcome analyze(Words arguments) {
    arguments.insert(arguments.begin(), "analyze");
    return project.difftape(arguments);
  }
  std::string error(int exit, const Words& arguments) {
    const Outcome outcome = analyze(arguments);
    EXPECT_EQ(outcome.exit, exit) << outcome.err;
    EXPECT_EQ(outcome.out, "") << "nothing was measured";
    return outcome.err;
  }
  /// The words of the first line that begins with these words.
  Words line(const std::string& text, const Words& first) {
    std::istringstream lines(text);
    for (std::string all; std::getline(lines, all);) {
      std::istringstream stream(all);
      const Words words{std::istream_iterator<std::string>(stream), {}};
      if (words.size() >= first.size() && std::equal(first.begin(), first.end(), words.begin())) {
        return words;
      }
    }
    return {};
  }

  test::TinyProject project;
  const Words flow{"gradient-flow", "tiny.yaml", "--steps", "0,3"};
  const Words snr{"snr",   "--tokens",      "64",  "--trials",  "10", "--noise",
                  "0.5,1", "--correlation", "0,1", "--lambdas", "3"};
  static Words with(Words words, const Words& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
};

TEST_F(Analyze, gradient_flow_prints_ratios_by_layer_and_group_and_writes_them) {
  const Outcome outcome = analyze(with(flow, {"--out", "flow.h5"}));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_THAT(
      outcome.out,
      testing::AllOf(HasSubstr("softmax, seed 1: loss 5."), HasSubstr(" after 3 steps\n"),
                     HasSubstr("diff_v1 / softmax at step"), HasSubstr("diff_v2 / softmax at step"),
                     HasSubstr("Seed: 1, and so no interval.")));
  const run::h5::File file = run::h5::File::open(project / "flow.h5");
  EXPECT_EQ(file.read<std::int64_t>("steps"), (std::vector<std::int64_t>{0, 3}));
  EXPECT_EQ(file.read<std::int64_t>("seeds"), (std::vector<std::int64_t>{1}));
  EXPECT_EQ(file.string_attribute("/", "config_yaml"), run::to_yaml(project.config));
  EXPECT_EQ(file.string_attribute("/", "baseline"), "softmax");
  const auto norm = file.read<double>("norm/diff_v2/1/v_proj"),
             base = file.read<double>("norm/softmax/1/v_proj"),
             ratio = file.read<double>("ratio/diff_v2/1/v_proj");
  EXPECT_EQ(file.shape("norm/diff_v2/1/v_proj"), (Shape{1, 2}));
  EXPECT_GT(base[1], 0);
  EXPECT_EQ(ratio[1], norm[1] / base[1]);
  const Words row = line(outcome.out, {"1", "v_proj"});  // 2 norms, 2 ratios of V1, 2 of V2
  ASSERT_EQ(row.size(), 8u);
  EXPECT_EQ(row[3], fmt::format("{:.2e}", base[1]));
  EXPECT_EQ(row[7], fmt::format("{:.3f}", ratio[1]));
  EXPECT_TRUE(file.exists("norm/diff_v1/0/subln"));
  EXPECT_TRUE(file.exists("norm/diff_v1/outside/embedding"));
  EXPECT_FALSE(file.exists("ratio/diff_v1/0/subln"));
  EXPECT_FALSE(file.exists("ratio/softmax"));
  const Words subln = line(outcome.out, {"0", "subln"});
  EXPECT_THAT(subln, testing::ElementsAre("0", "subln", "-", "-", "norm", testing::_, "norm",
                                          testing::_, "-", "-"));
}

TEST_F(Analyze, gradient_flow_of_several_seeds_gives_means_with_intervals) {
  const Outcome outcome = analyze({"gradient-flow", "tiny.yaml", "--steps", "0", "--seeds", "1,2,3",
                                   "--kinds", "diff_v2", "--out", "flow.h5"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("Seeds: 1, 2, 3; geometric means with 95 % t-intervals"));
  auto logs = run::h5::File::open(project / "flow.h5").read<double>("ratio/diff_v2/0/o_proj");
  ASSERT_EQ(logs.size(), 3u);
  for (double& x : logs) x = std::log(x);
  const double mean = (logs[0] + logs[1] + logs[2]) / 3;
  double squares = 0;
  for (const double x : logs) squares += std::pow(x - mean, 2);
  const double half_width = 4.302653 * std::sqrt(squares / 2 / 3);
  const Words row = line(outcome.out, {"0", "o_proj"});
  ASSERT_EQ(row.size(), 6u);
  EXPECT_EQ(row[4], fmt::format("{:.3f}", std::exp(mean)));
  EXPECT_EQ(row[5], fmt::format("({:.3f}-{:.3f})", std::exp(mean - half_width),
                                std::exp(mean + half_width)));
}

TEST_F(Analyze, gradient_flow_that_diverges_says_so_in_its_exit_code_and_goes_on) {
  const Outcome outcome =
      analyze(with(flow, {"--set", "optim.lr=1e30", "--set", "optim.max_grad_norm=0", "--set",
                          "optim.warmup_steps=0", "--out", "flow.h5"}));
  EXPECT_EQ(outcome.exit, 86);
  EXPECT_THAT(outcome.out, HasSubstr("diff_v2, seed 1: diverged at step 2, train/loss is not"));
  const Words row = line(outcome.out, {"0", "q_proj"});
  ASSERT_EQ(row.size(), 8u);
  EXPECT_NE(row[4], "-");
  EXPECT_EQ(row[5], "-");
  EXPECT_TRUE(std::isnan(
      run::h5::File::open(project / "flow.h5").read<double>("ratio/diff_v2/0/q_proj")[1]));
}

TEST_F(Analyze, gradient_flow_refuses_what_cannot_be_measured) {
  const auto refused = [&](const Words& more) {
    return error(64, with({"gradient-flow", "tiny.yaml"}, more));
  };
  EXPECT_EQ(refused({"--steps", "0,13"}),
            "difftape: --steps: 13 is beyond train.steps 12; raise it with --set\n");
  EXPECT_THAT(refused({"--steps", "3,0"}), HasSubstr("need 0 or more, ascending"));
  EXPECT_EQ(refused({"--seeds", "2,2"}), "difftape: --seeds: need integers from 0, each once\n");
  EXPECT_THAT(refused({"--kinds", "diff_v3"}),
              HasSubstr("--kinds: 'diff_v3' is not one of diff_v1"));
  EXPECT_EQ(refused({"--kinds", "softmax"}),
            "difftape: --kinds: name kinds other than softmax, which they are compared with\n");
  EXPECT_EQ(refused({"--kinds", "diff_v1,diff_v1"}), "difftape: --kinds: diff_v1 is named twice\n");
  EXPECT_THAT(error(78, with(flow, {"--set", "model.num_heads=1"})),
              HasSubstr("diff_v1 pairs the heads of the baseline, but num_heads is 1;"));
  EXPECT_EQ(error(66, {"gradient-flow", "nowhere.yaml"}), "difftape: nowhere.yaml: no such file\n");
}

TEST_F(Analyze, snr_says_what_it_measured_and_writes_every_lambda) {
  const Outcome outcome = analyze(with(snr, {"--out", "snr.csv"}));
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, testing::AllOf(HasSubstr("Needle in noise: a row of 64 attention"),
                                          HasSubstr("Geometric means of 10\ntrials (seed 1)"),
                                          HasSubstr("SNR below 1 from noise"),
                                          HasSubstr("largest gain"), HasSubstr("above 1")));
  const std::string csv = contents(project / "snr.csv");
  EXPECT_TRUE(csv.starts_with(std::string(kSnrHeader) + "\n0,0.5,0,"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 1 + 2 * 2 * 3);
  // Maps of equal noise, fully subtracted: as many times as there are other positions.
  const Words row = line(outcome.out, {"1", "0.5"});
  ASSERT_GE(row.size(), 5u);
  EXPECT_EQ(row[4], "63.00");
}

TEST_F(Analyze, snr_gives_hdf5_the_same_numbers) {
  ASSERT_EQ(analyze(with(snr, {"--out", "snr.csv"})).exit, 0);
  ASSERT_EQ(analyze(with(snr, {"--out", "snr.h5"})).exit, 0);
  const run::h5::File file = run::h5::File::open(project / "snr.h5");
  EXPECT_EQ(file.read<double>("noise"), (std::vector<double>{0.5, 1}));
  EXPECT_EQ(file.read<double>("lambda"), (std::vector<double>{0, 0.5, 1}));
  EXPECT_EQ(file.read<double>("correlation"), (std::vector<double>{0, 1}));
  EXPECT_EQ(file.shape("snr/value"), (Shape{2, 2, 3}));
  EXPECT_EQ(file.shape("crossover/softmax"), (Shape{2}));
  const auto request = system::parse_json(file.string_attribute("/", "request"));
  EXPECT_EQ(request.at("tokens"), 64);
  EXPECT_EQ(request.at("trials"), 10);
  std::istringstream lines(contents(project / "snr.csv"));
  std::string text;
  std::getline(lines, text);
  const auto value = file.read<double>("snr/value"), high = file.read<double>("gain/high");
  for (size_t i = 0; i < value.size(); ++i) {
    ASSERT_TRUE(std::getline(lines, text));
    std::vector<double> cells;
    std::istringstream words(text);
    for (std::string word; std::getline(words, word, ',');) cells.push_back(std::stod(word));
    ASSERT_EQ(cells.size(), 9u);
    EXPECT_EQ(cells[3], value[i]);
    EXPECT_EQ(cells[8], high[i]);
  }
}

TEST_F(Analyze, snr_refuses_what_cannot_be_measured) {
  const auto refused = [&](const std::string& option, const std::string& value) {
    return error(64, {"snr", option + "=" + value});
  };
  EXPECT_EQ(refused("--tokens", "1"),
            "difftape: --tokens is 1; need 2 to 1048576: the needle and others\n");
  EXPECT_EQ(refused("--noise", "1,1"),
            "difftape: --noise lists standard deviations of scores; need 0 to 100, ascending\n");
  EXPECT_THAT(refused("--noise", "nan"), HasSubstr("--noise lists standard deviations"));
  EXPECT_THAT(refused("--noise", "loud"), HasSubstr("Could not convert: --noise = loud"));
  EXPECT_EQ(refused("--correlation", "1.5"),
            "difftape: --correlation lists what the noise of the two maps shares; need 0 to 1\n");
  EXPECT_THAT(refused("--signal", "inf"), HasSubstr("--signal and --second-signal are scores"));
  EXPECT_THAT(refused("--lambdas", "1"), HasSubstr("--lambdas is 1; need 2 to 1001"));
  EXPECT_THAT(refused("--trials", "1"), HasSubstr("--trials is 1; need 2 to 100000"));
  EXPECT_THAT(refused("--seed", "-1"), HasSubstr("--seed is -1; need an integer"));
  EXPECT_THAT(refused("--threshold", "0"), HasSubstr("--threshold is 0; need a ratio above 0"));
  EXPECT_THAT(error(64, {"snr", "--trials", ""}), HasSubstr("need a value, not an empty text"));
  EXPECT_EQ(refused("--out", "snr.txt"), "difftape: --out: snr.txt is neither .csv nor .h5\n");
}

TEST_F(Analyze, outputs_replace_their_own_kind_and_nothing_else) {
  const std::string rule = "; nothing else is replaced: choose another name with --out\n";
  put(project / "mine.csv", "a,b\n1,2\n");
  EXPECT_EQ(error(74, with(snr, {"--out", "mine.csv"})),
            "difftape: mine.csv exists and is no output of analyze snr" + rule);
  EXPECT_EQ(contents(project / "mine.csv"), "a,b\n1,2\n");
  ASSERT_EQ(analyze(with(snr, {"--out", "snr.h5"})).exit, 0);
  const std::string before = contents(project / "snr.h5");
  EXPECT_EQ(error(74, with(flow, {"--out", "snr.h5"})),
            "difftape: snr.h5 exists and is no output of analyze gradient-flow" + rule);
  EXPECT_EQ(contents(project / "snr.h5"), before);
  for (const std::string name : {"snr.h5", "snr.csv", "snr.csv"}) {
    EXPECT_EQ(analyze(with(snr, {"--out", name, "--seed", "2"})).exit, 0) << name;
  }
  EXPECT_NE(contents(project / "snr.h5"), before);
  EXPECT_EQ(error(74, with(flow, {"--out", "gone/flow.h5"})),
            "difftape: cannot write gone/flow.h5: gone is no directory\n");
  EXPECT_EQ(error(64, with(flow, {"--out", "tiny.yaml"})),
            "difftape: --out: tiny.yaml does not end in .h5\n");
}

}  // namespace
}  // namespace difftape::app
