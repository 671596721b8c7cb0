// The programs of examples/, built against an installed difftape: they do what their README says.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

const fs::path kExamples = DIFFTAPE_TEST_EXAMPLES;

/// The program with the kind `cosine`, in the directory of a project of that kind.
struct OwnAttention : testing::Test {
  OwnAttention() {
    std::string yaml = contents(project / "tiny.yaml");
    yaml.replace(yaml.find("kind: softmax"), 13, "kind: cosine");
    put(project / "tiny.yaml", yaml);
  }
  Outcome own(const Words& arguments) const {
    return project.difftape(arguments, {.program = kExamples / "own_attention"});
  }
  TinyProject project;
};

TEST(TrainingLoop, learns_to_count) {
  const Outcome outcome = test::run({}, {.program = kExamples / "training_loop"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  const auto loss_after = [&](const std::string& step) {
    const auto at = outcome.out.find("step " + step);
    if (at == std::string::npos) return -1.0;
    return std::stod(outcome.out.substr(outcome.out.find("loss ", at) + 5));
  };
  EXPECT_NEAR(loss_after("  0"), std::log(50), 0.1) << outcome.out;
  EXPECT_GT(loss_after("149"), 0) << outcome.out;
  EXPECT_LT(loss_after("149"), 0.5) << outcome.out;
}

/// Runs an example, checks its exit code and returns its output.
std::string printed(const std::string& program, const Words& arguments,
                    const std::string& threads = "1") {
  const Outcome outcome = test::run(
      arguments, {.program = kExamples / program, .environment = {{"OMP_NUM_THREADS", threads}}});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  return outcome.out;
}

/// The numbers of the first line that begins with these words, without what is in brackets.
std::vector<double> row(const std::string& text, const std::string& begin, size_t from = 0) {
  static const std::regex number(R"((\(.*?\)|[-+.\deinf]+))");
  const size_t at = text.find("\n" + begin, from);
  if (at == std::string::npos) return {};
  const size_t first = at + 1 + begin.size();
  const std::string rest = text.substr(first, text.find('\n', first) - first);
  std::vector<double> numbers;
  for (std::sregex_iterator each(rest.begin(), rest.end(), number), end; each != end; ++each) {
    const std::string word = each->str();
    if (word[0] != '(') numbers.push_back(std::strtod(word.c_str(), nullptr));
  }
  return numbers;
}

TEST(Snr, grows_with_the_fraction_of_noise_that_the_maps_share) {
  const std::string out = printed("snr", {"1024", "100"});
  // softmax, lambda 1, the best lambda, its SNR, its gain
  const auto independent = row(out, "0            1    "), shared = row(out, "0.9          1    "),
             equal = row(out, "1            1    ");
  ASSERT_EQ(independent.size(), 5u) << out;
  EXPECT_NEAR(std::log(independent[0]), 4 - 0.5, 0.02) << "the mean of e^n is e^(1 / 2)";
  EXPECT_EQ(shared.at(0), independent[0]) << "the first map knows nothing of the second";
  EXPECT_NEAR(independent[4], 1.2, 0.1);
  EXPECT_NEAR(shared.at(4), 2.8, 0.2);
  EXPECT_NEAR(equal.at(1), 1023, 0.5) << "weights that sum to 0 count the other positions";
  EXPECT_THAT(out, AllOf(HasSubstr("SNR below 1 from noise 2.8"), HasSubstr("above 4")));
  EXPECT_EQ(printed("snr", {"64", "10"}), printed("snr", {"64", "10"}, "3"));
  EXPECT_EQ(test::run({"1"}, {.program = kExamples / "snr"}).exit, 64);
}

TEST(GradientFlow, compares_norms_by_layer_and_group_before_and_after_updates) {
  const TinyProject project;
  const std::string text = project / "text.txt", out = printed("gradient_flow", {text, "2"});
  const size_t after = out.find("\nafter 2 updates");
  ASSERT_NE(after, std::string::npos) << out;
  for (const size_t from : {size_t{0}, after}) {
    for (const std::string group : {"q_proj", "k_proj", "v_proj", "o_proj", "mlp", "norms"}) {
      const auto cells = row(out, fmt::format("    3  {:<16}", group), from);
      ASSERT_EQ(cells.size(), 3u) << group << out;
      for (const double cell : cells) EXPECT_GT(cell, 0) << group;
    }
    EXPECT_EQ(row(out, fmt::format("    -  {:<16}", "head"), from).size(), 3u);
    EXPECT_THAT(out.substr(from), HasSubstr(fmt::format("{:<16}{:>14}  norm ", "subln", "-")));
  }
  EXPECT_NE(row(out, "    0  q_proj"), row(out, "    0  q_proj", after));
  const std::string begin = printed("gradient_flow", {text, "0"});
  EXPECT_EQ(begin, printed("gradient_flow", {text, "0"}, "2"));
  EXPECT_NE(begin, printed("gradient_flow", {text, "0", "7"})) << "another seed";
  EXPECT_EQ(test::run({project / "none"}, {.program = kExamples / "gradient_flow"}).exit, 64);
}

TEST_F(OwnAttention, trains_resumes_and_is_evaluated) {
  const Outcome trained = own({"train", "tiny.yaml", "--out", "run", "--set", "train.steps=6"});
  ASSERT_EQ(trained.exit, 0) << trained.err;
  EXPECT_THAT(contents(project / "run/config.yaml"), HasSubstr("kind: cosine"));
  const auto lines = metrics_lines(project / "run");
  ASSERT_FALSE(lines.empty());
  EXPECT_TRUE(lines.front().contains("train/loss"));
  EXPECT_EQ(own({"train", "run", "--resume", "--set", "train.steps=6"}).exit, 0);
  const Outcome evaluated = own({"eval", "run"});
  EXPECT_EQ(evaluated.exit, 0) << evaluated.err;
}

TEST_F(OwnAttention, generates_text_by_reading_all_tokens_again_for_each_new_one) {
  ASSERT_EQ(own({"train", "tiny.yaml", "--out", "run", "--set", "train.steps=6"}).exit, 0);
  const auto text_after = [&](const std::string& prompt, const std::string& tokens) {
    const Outcome text =
        own({"generate", "run", "--prompt", prompt, "--max-tokens", tokens, "--temperature", "0"});
    EXPECT_EQ(text.exit, 0) << text.err;
    return text.out.substr(0, text.out.size() - 1);
  };
  EXPECT_EQ(text_after(text_after("the ", "3"), "5"), text_after("the ", "8"));
}

TEST_F(OwnAttention, is_planned_beside_the_other_kinds) {
  const Outcome plan = own({"plan", "tiny.yaml", "--kinds", "softmax,cosine"});
  ASSERT_EQ(plan.exit, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("cosine *"), HasSubstr("log_temperature")));
  EXPECT_THAT(own({"config", "schema"}).out, HasSubstr("\"cosine\""));
}

TEST_F(OwnAttention, is_an_arm_of_a_sweep_with_claims_and_of_a_report) {
  for (const char* file : {"cosine.yaml", "cosine_claims.yaml"}) {
    fs::copy_file(fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "examples" / file, project / file);
  }
  Words sweep{"sweep", "cosine.yaml", "--jobs", "1", "--out", "sweep"};
  for (const std::string set : {"train.steps=2", "train.eval_batches=1", "model.num_layers=1",
                                "data.batch_size=2", "data.path=text.txt"}) {
    sweep.insert(sweep.end(), {"--set", set});
  }
  const Outcome swept = own(sweep);
  ASSERT_EQ(swept.exit, 0) << swept.err;
  EXPECT_THAT(swept.out, HasSubstr("Cosine attention has a lower loss than softmax"));
  EXPECT_TRUE(fs::exists(project / "sweep/verdicts.csv"));
  const std::string index = contents(project / "sweep/runs.csv");
  EXPECT_THAT(index, AllOf(HasSubstr("cosine"), HasSubstr("finished"), Not(HasSubstr("failed"))));
  const Outcome report =
      own({"report", "sweep", "--claims", "cosine_claims.yaml", "--out", "report"});
  EXPECT_EQ(report.exit, 0) << report.err;
  EXPECT_THAT(contents(project / "report/report.html"), HasSubstr("cosine"));
}

TEST_F(OwnAttention, passes_the_gradient_check) {
  const Outcome checked = own({"gradcheck", "--filter", "cosine/.*(T3|tied)"});
  EXPECT_EQ(checked.exit, 0) << checked.out << checked.err;
  EXPECT_THAT(checked.out,
              AllOf(HasSubstr("layer/cosine"), HasSubstr("model/cosine"), HasSubstr(" 0 failed")));
}

TEST_F(OwnAttention, refuses_fields_that_its_rule_does_not_have) {
  for (const std::string set : {"attn_logit_softcap=30", "qk_clip_threshold=100",
                                "softmax_denominator=sink", "lambda=sigmoid"}) {
    const Outcome outcome = own({"config", "show", "tiny.yaml", "--set", "model.attention." + set});
    EXPECT_EQ(outcome.exit, 78) << set;
    EXPECT_THAT(outcome.err, HasSubstr("leave ")) << set;
  }
  EXPECT_THAT(test::error(64, own({"export", "tiny.yaml", "--format", "hf", "--out", "hf"})),
              HasSubstr("without a context rule of its own"));
  const Outcome windowed =
      own({"config", "show", "tiny.yaml", "--set", "model.attention.sliding_window=4"});
  EXPECT_EQ(windowed.exit, 0) << windowed.err;
}

TEST_F(OwnAttention, is_unknown_to_the_program_without_it) {
  EXPECT_THAT(test::error(78, project.difftape({"train", "tiny.yaml"})),
              HasSubstr("'cosine' is not one of diff_v1, diff_v2"));
}

}  // namespace
}  // namespace difftape::app
