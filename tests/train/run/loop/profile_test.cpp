// Tests the files of train --profile, the profiled steps, and that training is unaffected.
#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/run_writer.h"

namespace difftape::run {
namespace {

using Json = nlohmann::ordered_json;

Outcome profile(const TinyProject& project, const std::string& out,
                const std::vector<std::string>& more = {}) {
  return project.difftape(joined({"train", "tiny.yaml", "--profile", "--out", out}, more));
}

/// Returns the complete events of a trace.
std::vector<Json> events(const fs::path& run) {
  std::vector<Json> all;
  const Json trace = Json::parse(contents(run / "trace.json"));
  for (const Json& event : trace.at("traceEvents"))
    if (event.at("ph") == "X") all.push_back(event);
  return all;
}

std::vector<std::string> steps(const fs::path& run) {
  std::vector<std::string> all;
  for (const Json& event : events(run))
    if (event.at("cat") == "step") all.push_back(event.at("args").at("step"));
  return all;
}

/// Converts microseconds of the trace to the measured nanoseconds.
std::int64_t nanoseconds(const Json& microseconds) {
  return std::llround(microseconds.get<double>() * 1e3);
}

/// Returns the numbers in the line of profile.txt that begins with `name`.
std::vector<double> numbers_of(const std::string& text, const std::string& name) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string word;
    if (!(words >> word) || word != name) continue;
    std::vector<double> numbers;
    while (words >> word) numbers.push_back(word == "-" ? 0 : std::stod(word));
    return numbers;
  }
  return {};
}

TEST(TrainProfile, writes_a_trace_whose_events_nest) {
  TinyProject project("diff_v2");
  project.config.train.checkpoint_interval = 4;
  project.save();
  ASSERT_EQ(profile(project, "run").exit, 0);
  const std::vector<Json> all = events(project / "run");
  ASSERT_GT(all.size(), 500u);
  std::vector<std::int64_t> ends;  // ends of the open events
  std::map<std::string, int> categories, phases;
  for (const Json& event : all) {
    const std::int64_t begin = nanoseconds(event.at("ts"));
    const std::int64_t end = begin + nanoseconds(event.at("dur"));
    EXPECT_LE(begin, end);
    while (!ends.empty() && ends.back() <= begin) ends.pop_back();
    EXPECT_TRUE(ends.empty() || end <= ends.back()) << event.dump();
    EXPECT_EQ(ends.empty(), event.at("cat") == "step") << event.dump();
    ends.push_back(end);
    EXPECT_EQ(event.at("pid"), 1);
    EXPECT_EQ(event.at("tid"), 1);
    ++categories[event.at("cat")];
    if (event.at("cat") == "phase") ++phases[event.at("name")];
  }
  EXPECT_EQ(categories["step"], 10);
  EXPECT_EQ(categories["pass"], 40) << "a step has two leaves";
  EXPECT_GT(categories["forward"], categories["backward"]) << "validation has no backward";
  EXPECT_GT(categories["backward"], 200);
  EXPECT_EQ(phases["optimizer"], 10);
  EXPECT_EQ(phases["log"], 10);
  EXPECT_EQ(phases["validate"], 3) << "steps 5, 10 and 12";
  EXPECT_EQ(phases["checkpoint"], 3) << "steps 4, 8 and 12";
  EXPECT_GE(phases["data"], 20);
}

TEST(TrainProfile, names_the_layer_of_an_op_in_both_directions) {
  TinyProject project;
  project.config.train.final_eval_batches = project.config.train.eval_batches;
  project.save();
  ASSERT_EQ(profile(project, "run").exit, 0);
  std::map<std::string, int> found;
  for (const Json& event : events(project / "run")) {
    if (event.at("args").value("layer", "") == "model.layers.1.self_attn.q_proj") {
      EXPECT_EQ(event.at("name"), "linear");
      ++found[event.at("cat")];
    }
  }
  EXPECT_EQ(found["backward"], 20) << "a step has two leaves";
  EXPECT_EQ(found["forward"], 20 + 3 * project.config.train.eval_batches + 1)
      << "training, validation, and diagnostics at the last step";
}

TEST(TrainProfile, prints_and_writes_a_table_whose_rows_sum_to_the_step) {
  TinyProject project;
  const std::string outcome = test::output(profile(project, "run"));
  const std::string text = contents(project / "run/profile.txt");
  EXPECT_THAT(outcome, HasSubstr(text));
  EXPECT_THAT(text, HasSubstr("profile of 10 steps: "));
  double ms = 0, percent = 0;
  int rows = 0;
  std::istringstream lines(text.substr(text.find("%\n") + 2));
  for (std::string line, name; std::getline(lines, line); ++rows) {
    std::istringstream(line) >> name;
    const std::vector<double> numbers = numbers_of(text, name);
    ASSERT_GE(numbers.size(), 2u) << line;
    if (name == "step") continue;
    EXPECT_GE(numbers[numbers.size() - 2], 0) << line;
    ms += numbers[numbers.size() - 2];
    percent += numbers.back();
  }
  EXPECT_GT(rows, 10);
  const std::vector<double> step = numbers_of(text, "step");
  ASSERT_EQ(step.size(), 2u);
  EXPECT_NEAR(ms, step[0], 0.0006 * rows) << text;
  EXPECT_NEAR(percent, 100, 0.06 * rows) << text;
  const std::vector<double> linear = numbers_of(text, "linear");
  ASSERT_EQ(linear.size(), 6u) << text;
  EXPECT_EQ(linear[0], linear[2]) << "as many values as pullbacks";
  EXPECT_EQ(linear[0], 24) << "two layers of six, for two leaves";
}

TEST(TrainProfile, changes_no_bit_of_the_training) {
  TinyProject project("diff_v1");
  ASSERT_EQ(profile(project, "on").exit, 0);
  ASSERT_EQ(project.difftape({"train", "tiny.yaml", "--out", "off"}).exit, 0);
  test::expect_the_same_run(project / "on", project / "off");
  EXPECT_TRUE(fs::exists(project / "on/trace.json"));
  EXPECT_FALSE(fs::exists(project / "off/trace.json"));
  EXPECT_FALSE(fs::exists(project / "off/profile.txt"));
}

TEST(TrainProfile, covers_steps_3_to_12_if_they_exist) {
  TinyProject project;
  project.config.optim.warmup_steps = 0;
  const auto steps_of_a_run_of = [&](Index count) {
    const std::string out = std::to_string(count);
    project.config.train.steps = count;
    project.save();
    EXPECT_EQ(profile(project, out).exit, 0);
    return steps(project / out);
  };
  EXPECT_THAT(steps_of_a_run_of(1), ElementsAre("1"));
  EXPECT_THAT(steps_of_a_run_of(2), ElementsAre("2"));
  EXPECT_THAT(steps_of_a_run_of(4), ElementsAre("3", "4"));
  const std::vector<std::string> many = steps_of_a_run_of(15);
  ASSERT_EQ(many.size(), 10u);
  EXPECT_EQ(many.front(), "3");
  EXPECT_EQ(many.back(), "12");
}

TEST(TrainProfile, of_a_resumed_run_replaces_the_earlier_profile) {
  TinyProject project;
  project.config.train.checkpoint_interval = 8;
  project.save();
  ASSERT_EQ(profile(project, "run").exit, 0);
  EXPECT_EQ(steps(project / "run").front(), "3");
  fs::remove(project / "run/checkpoints/step-00000012.h5");
  const std::string resumed = test::output(profile(project, "run", {"--resume"}));
  EXPECT_THAT(steps(project / "run"), ElementsAre("11", "12"));
  EXPECT_THAT(resumed, HasSubstr("profile of 2 steps: "));
}

TEST(TrainProfile, of_a_run_that_diverges_before_step_3_does_not_exist) {
  TinyProject project;
  project.config = test::explosive(project.config);
  project.save();
  const Outcome outcome = profile(project, "run");
  ASSERT_EQ(outcome.exit, 86) << outcome.err;
  ASSERT_EQ(metrics_lines(project / "run").size(), 2u);
  EXPECT_THAT(outcome.out, Not(HasSubstr("profile of")));
  EXPECT_FALSE(fs::exists(project / "run/trace.json"));
}

TEST(ProfiledSteps, end_at_the_last_profiled_step_or_the_end_of_the_run) {
  ProfiledSteps steps(true, 100, 500);
  int taken = 0;
  for (Index number = 101; number <= 115; ++number) {
    steps.run(number, [&] { return ++taken; });
    EXPECT_EQ(steps.done_at(number, false), number == 112) << number;
    EXPECT_EQ(steps.done_at(number, true), number >= 103 && number <= 112) << number;
  }
  EXPECT_EQ(taken, 15);
  EXPECT_EQ(steps.events().size(), 10u);
  ProfiledSteps none(false, 0, 500);
  for (Index number = 1; number <= 20; ++number) {
    none.run(number, [] { return 0; });
    EXPECT_FALSE(none.done_at(number, true));
  }
  EXPECT_TRUE(none.events().empty());
}

}  // namespace
}  // namespace difftape::run
