#include "train/run/records/progress.h"

#include "tests/support/test.h"

namespace difftape::run {
namespace {

constexpr ConsoleStyle kPiped{.tty = false, .color = false, .width = 80};
constexpr ConsoleStyle kTerminal{.tty = true, .color = false, .width = 200};

StepReport report(Index step) {
  return {.step = step,
          .loss = 2.5,
          .grad_norm = 0.523,
          .lr = 1e-3,
          .tokens_per_sec = 41234,
          .peak_fraction = 0.43};
}

/// A clock that tests control.
struct FakeTime {
  double now = 0;
  Progress::Clock clock() {
    return [this] { return now; };
  }
};

TEST(Progress, a_plain_line_has_all_values_of_a_step) {
  const ScratchDir dir;
  std::ostringstream console;
  FakeTime time;
  Progress progress(console, kPiped, dir / "log", 500, 0, time.clock());
  time.now = 2;
  StepReport first = report(1);
  first.val_loss = 2.625;
  first.spikes = 2;
  progress.step(first);
  EXPECT_EQ(console.str(),
            "step   1/500  ETA 16m38s  loss 2.5000  grad_norm 0.5230  lr 1.00e-03  41.2k tok/s  "
            "43% of peak  2 spikes  val 2.6250\n");
}

TEST(Progress, omits_unknown_values) {
  const ScratchDir dir;
  std::ostringstream console;
  StepReport first = report(1);
  first.peak_fraction = std::numeric_limits<double>::quiet_NaN();
  Progress(console, kPiped, dir / "log", 500).step(first);
  EXPECT_THAT(console.str(), Not(HasSubstr("peak")));
  EXPECT_THAT(console.str(), Not(HasSubstr("val")));
  EXPECT_THAT(console.str(), Not(HasSubstr("spike")));
}

TEST(Progress, piped_output_is_about_25_plain_lines_without_escapes_and_equals_the_log) {
  const ScratchDir dir;
  std::ostringstream console;
  Progress progress(console, kPiped, dir / "log", 500);
  for (Index step = 1; step <= 500; ++step) progress.step(report(step));
  progress.note("checkpoint written");
  const std::string text = console.str();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1 + 500 / 20 + 1);
  EXPECT_EQ(text.find_first_of("\r\x1b"), std::string::npos);
  EXPECT_EQ(contents(dir / "log"), text);
}

TEST(Progress, a_validated_step_always_gets_a_line) {
  const ScratchDir dir;
  std::ostringstream console;
  Progress progress(console, kPiped, dir / "log", 500);
  progress.step(report(1));
  StepReport validated = report(13);
  validated.val_loss = 2.25;
  progress.step(validated);
  EXPECT_THAT(console.str(), HasSubstr("step  13/500"));
}

TEST(Progress, a_terminal_line_is_rewritten_at_most_ten_times_per_second) {
  const ScratchDir dir;
  std::ostringstream console;
  FakeTime time;
  Progress progress(console, kTerminal, dir / "log", 500, 0, time.clock());
  for (Index step = 1; step <= 100; ++step) {
    time.now += 0.01;
    progress.step(report(step));
  }
  const std::string text = console.str();
  EXPECT_EQ(text.find('\n'), std::string::npos);
  const auto redraws = std::count(text.begin(), text.end(), '\r');
  EXPECT_GE(redraws, 9);
  EXPECT_LE(redraws, 10);
  EXPECT_THAT(contents(dir / "log"), HasSubstr("step 100/500")) << "the log has the plain lines";
}

TEST(Progress, a_terminal_keeps_validated_lines_and_shows_the_last_validation_loss) {
  const ScratchDir dir;
  std::ostringstream console;
  FakeTime time;
  Progress progress(console, kTerminal, dir / "log", 500, 0, time.clock());
  StepReport validated = report(100);
  validated.val_loss = 2.25;
  progress.step(validated);
  EXPECT_TRUE(console.str().ends_with("\n"));
  time.now = 1;
  console.str("");
  progress.step(report(101));
  EXPECT_THAT(console.str(), HasSubstr("loss 2.5000  val 2.2500  grad_norm"));
}

TEST(Progress, a_note_does_not_overwrite_the_progress_line) {
  const ScratchDir dir;
  std::ostringstream console;
  {
    Progress progress(console, kTerminal, dir / "log", 500);
    progress.step(report(1));
    progress.note("checkpoint written");
    EXPECT_TRUE(console.str().ends_with("\ncheckpoint written\n"));
    progress.step(report(500));
  }
  EXPECT_TRUE(console.str().ends_with("\n")) << "the prompt of the shell starts on a new line";
}

TEST(Progress, a_line_never_exceeds_the_terminal) {
  const ScratchDir dir;
  std::ostringstream console;
  Progress(console, {.tty = true, .color = false, .width = 40}, dir / "log", 500).step(report(1));
  EXPECT_THAT(console.str(), HasSubstr("loss 2.5000"));
  EXPECT_THAT(console.str(), Not(HasSubstr("grad_norm")));
}

TEST(Progress, uses_colors_only_on_request) {
  const ScratchDir dir;
  std::ostringstream plain, color;
  Progress(plain, kTerminal, dir / "log", 500).step(report(1));
  Progress(color, {.tty = true, .color = true, .width = 200}, dir / "log", 500).step(report(1));
  EXPECT_THAT(plain.str(), Not(HasSubstr("\x1b[2m")));
  EXPECT_THAT(color.str(), HasSubstr("\x1b[2mloss\x1b[0m 2.5000"));
  EXPECT_THAT(contents(dir / "log"), Not(HasSubstr("\x1b")));
}

TEST(Progress, the_eta_after_a_resume_uses_only_new_steps) {
  const ScratchDir dir;
  std::ostringstream console;
  FakeTime time;
  Progress progress(console, kPiped, dir / "log", 500, 400, time.clock());
  time.now = 3;
  progress.step(report(401));
  EXPECT_THAT(console.str(), HasSubstr("step 401/500  ETA 4m57s"));
}

TEST(Progress, a_full_disk_is_an_output_error) {
  std::ostringstream console;
  Progress progress(console, kPiped, "/dev/full", 500);
  EXPECT_THAT([&] { progress.note("hello"); },
              ThrowsMessage<OutputError>("cannot write /dev/full: No space left on device"));
}

TEST(ConsoleStyle, is_plain_for_a_file) {
  const ScratchDir dir;
  std::FILE* file = std::fopen((dir / "f").c_str(), "w");
  const ConsoleStyle style = console_style(fileno(file));
  std::fclose(file);
  EXPECT_FALSE(style.tty);
  EXPECT_FALSE(style.color);
}

TEST(PlainInterval, is_round_and_gives_at_most_25_lines) {
  EXPECT_EQ(plain_interval(10), 1);
  EXPECT_EQ(plain_interval(25), 1);
  EXPECT_EQ(plain_interval(26), 2);
  EXPECT_EQ(plain_interval(500), 20);
  EXPECT_EQ(plain_interval(100000), 5000);
}

}  // namespace
}  // namespace difftape::run
