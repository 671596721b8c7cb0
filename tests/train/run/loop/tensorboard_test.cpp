// Tests the event files of log.tensorboard, and that they do not affect training.
#include <csignal>

#include "tests/train/run/loop/tiny.h"
#include "tests/train/run/records/event_file.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

using test::Event;

const std::string kFirst = "events.out.tfevents.000001.difftape";
const std::string kSecond = "events.out.tfevents.000002.difftape";

/// Returns the step events of files in order, without events that a later start voids.
std::vector<Event> left(const std::vector<fs::path>& files) {
  std::vector<Event> kept;
  for (const auto& file : files) {
    for (const Event& event : test::events_in(file)) {
      if (event.start) std::erase_if(kept, [&](const Event& e) { return e.step >= event.step; });
      if (!event.numbers.empty()) kept.push_back(event);
    }
  }
  return kept;
}

/// Expects the events to hold exactly the numbers of metrics.jsonl, rounded to float.
void expect_the_metrics(const std::vector<Event>& events, const fs::path& run) {
  const auto lines = metrics_lines(run);
  ASSERT_EQ(events.size(), lines.size());
  ASSERT_FALSE(lines.empty());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_EQ(events[i].step, lines[i].at("step"));
    std::map<std::string, std::string> logged, shown;  // as strings, for which NaN equals NaN
    for (const auto& [name, value] : lines[i].items()) {
      if (name == "step" || value.is_array()) continue;
      logged[name] = fmt::to_string(value.is_string() ? std::stof(value.get<std::string>())
                                                      : value.get<float>());
    }
    for (const auto& [name, number] : events[i].numbers) shown[name] = fmt::to_string(number);
    EXPECT_GT(logged.size(), 6u);
    EXPECT_EQ(shown, logged);
  }
}

struct Tensorboard : testing::Test {
  Tensorboard() {
    project.config.log.tensorboard = true;
    project.save();
  }
  TinyProject project{"diff_v2"};
};

TEST_F(Tensorboard, has_every_logged_number_the_config_and_lambda) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto events = test::events_in(project / "run" / kFirst);
  expect_the_metrics(left({project / "run" / kFirst}), project / "run");
  EXPECT_NE(events[2].config.find("    model:\n      d_model: 16\n"), std::string::npos);
  for (const Event& event : {events[3], events.back()}) {  // steps with diagnostics: first and last
    ASSERT_EQ(event.histograms.size(), 2u) << "layers";
    for (int layer = 0; layer < 2; ++layer) {
      const std::string name = fmt::format("attn/lambda/{}", layer);
      const test::Histogram& h = event.histograms.at(name + "/histogram");
      EXPECT_EQ(h.num, 2 * 2 * 16) << "heads, sequences, tokens";
      EXPECT_FLOAT_EQ(static_cast<float>(h.sum / h.num), event.numbers.at(name));
      EXPECT_EQ(static_cast<float>(h.min), event.numbers.at("attn/lambda_min/" + name.substr(12)));
      EXPECT_EQ(static_cast<float>(h.max), event.numbers.at("attn/lambda_max/" + name.substr(12)));
    }
  }
  EXPECT_TRUE(events[4].histograms.empty());
}

TEST_F(Tensorboard, changes_nothing_else) {
  ASSERT_EQ(project.train("with"), system::Exit::ok);
  project.config.log.tensorboard = false;
  ASSERT_EQ(project.train("without"), system::Exit::ok);
  EXPECT_EQ(measured(project / "with"), measured(project / "without"));
  std::set<std::string> names;
  for (const char* run : {"with", "without"}) {
    for (const auto& entry : fs::directory_iterator(project / run)) {
      const std::string name = entry.path().filename();
      if (!names.insert(name).second) names.erase(name);
    }
  }
  EXPECT_EQ(names, std::set{kFirst});
}

TEST_F(Tensorboard, has_no_step_twice_after_a_kill) {
  project.config.train.steps = 60;
  project.config.train.checkpoint_interval = 10;
  project.save();
  {
    Process process({"train", "tiny.yaml", "--out", "run"}, project.here());
    ASSERT_TRUE(process.read_until("step 15/60"));
    process.signal(SIGKILL);
    process.wait();
  }
  const Index checkpoint = Checkpoint(find_checkpoint(project / "run")).meta().step;
  const auto before = left({project / "run" / kFirst});
  ASSERT_GT(before.back().step, checkpoint) << "there are steps to repeat";
  test::output(project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"}));
  EXPECT_EQ(test::events_in(project / "run" / kSecond)[1].step, checkpoint + 1);
  expect_the_metrics(left({project / "run" / kFirst, project / "run" / kSecond}), project / "run");
}

TEST_F(Tensorboard, can_be_enabled_for_a_resumed_run) {
  project.config.log.tensorboard = false;
  project.config.optim.schedule = ScheduleKind::constant;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  project.config.log.tensorboard = true;
  project.config.train.steps = 14;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  const auto events = test::events_in(project / "run" / kFirst);
  ASSERT_EQ(events.size(), 5u);
  EXPECT_EQ(events[3].step, 13);
  EXPECT_EQ(events[4].step, 14);
}

TEST_F(Tensorboard, on_a_full_disk_ends_the_run_with_an_error) {
  project.config.log.diagnostics_interval = project.config.log.param_grad_norms_interval = 0;
  project.save();
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  const auto size = [&](const std::string& file) {
    return contents(project / "whole" / file).size();
  };
  // The configuration takes the first bytes; a few steps fill the rest of the disk.
  const std::uint64_t room = size("config.yaml") + 150;
  ASSERT_GT(room, size("env.json"));
  ASSERT_LT(room, size(kFirst));
  const Outcome failed =
      project.difftape({"train", "tiny.yaml", "--out", "cut"}, {.largest_file = room});
  EXPECT_EQ(failed.exit, 74);
  EXPECT_EQ(failed.err, "difftape: cannot write cut/" + kFirst + ": File too large\n");
  EXPECT_EQ(read_status(project / "cut").state, RunState::failed);
  test::output(project.difftape({"train", "tiny.yaml", "--out", "cut", "--resume"}));
  expect_the_metrics(left({project / "cut" / kFirst, project / "cut" / kSecond}), project / "cut");
}

}  // namespace
}  // namespace difftape::run
