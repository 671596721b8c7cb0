// Tests the event files of log.tensorboard, and that they do not affect training.
#include <csignal>

#include "tests/train/run/loop/tiny.h"
#include "tests/train/run/records/event_file.h"
#include "train/run/records/run_files.h"

namespace difftape::run {
namespace {

using test::Event;

/// Returns the step events of a run in order, without events that a later start voids.
std::vector<Event> left(const fs::path& run) {
  std::vector<Event> kept;
  for (const auto& file : test::event_files(run)) {
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
    EXPECT_GT(logged.size(), 4u);
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

TEST_F(Tensorboard, has_every_logged_metric) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  expect_the_metrics(left(project / "run"), project / "run");
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
  EXPECT_THAT(names, ElementsAre(StartsWith("events.out.tfevents.")));
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
  const auto before = left(project / "run");
  ASSERT_GT(before.back().step, checkpoint) << "there are steps to repeat";
  test::output(project.difftape({"train", "tiny.yaml", "--out", "run", "--resume"}));
  EXPECT_EQ(test::events_in(test::event_files(project / "run").at(1))[1].step, checkpoint + 1);
  expect_the_metrics(left(project / "run"), project / "run");
}

TEST_F(Tensorboard, can_be_enabled_for_a_resumed_run) {
  project.config.log.tensorboard = false;
  project.config.optim.schedule = ScheduleKind::constant;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  project.config.log.tensorboard = true;
  project.config.train.steps = 14;
  ASSERT_EQ(project.train("run", true), system::Exit::ok);
  const auto events = left(project / "run");
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].step, 13);
  EXPECT_EQ(events[1].step, 14);
}

}  // namespace
}  // namespace difftape::run
