#include "train/run/records/run_files.h"

#include "tests/support/test.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

TEST(RunDirectory, is_created_with_its_parents_and_may_exist_if_empty) {
  const ScratchDir dir;
  create_run_dir(dir / "runs/a");
  EXPECT_TRUE(fs::is_directory(dir / "runs/a"));
  EXPECT_NO_THROW(create_run_dir(dir / "runs/a"));
}

TEST(RunDirectory, may_hold_the_files_of_a_start_that_was_killed) {
  const ScratchDir dir;
  const fs::path run = dir / "run";
  fs::create_directories(run);
  put(run / "config.yaml", "");
  EXPECT_FALSE(may_begin_in(run)) << "the file of a user";
  for (const char* name : {"lock", "config.yaml.tmp", "env.json", "metrics.jsonl", "stdout.log"}) {
    put(run / name, "");
    EXPECT_TRUE(may_begin_in(run)) << name;
  }
  EXPECT_NO_THROW(create_run_dir(run));
  EXPECT_EQ(free_run_dir(run), dir / "run-2") << "a process may be starting there";
  put(run / "metrics.jsonl", "{\"step\":1}\n");
  EXPECT_THROW(create_run_dir(run), OutputError);
  put(run / "metrics.jsonl", "");
  put(run / "notes.txt", "mine");
  EXPECT_THROW(create_run_dir(run), OutputError);
}

TEST(RunDirectory, loses_only_its_temporary_files) {
  const ScratchDir dir;
  fs::create_directories(dir / "checkpoints/kept.tmp");
  for (const char* name : {"status.json.tmp", "metrics.jsonl", "checkpoints/step-00000001.h5.tmp",
                           "checkpoints/step-00000001.h5"})
    put(dir / name, "x");
  remove_temporary_files(dir.path());
  EXPECT_FALSE(fs::exists(dir / "status.json.tmp"));
  EXPECT_FALSE(fs::exists(dir / "checkpoints/step-00000001.h5.tmp"));
  for (const char* name : {"metrics.jsonl", "checkpoints/step-00000001.h5", "checkpoints/kept.tmp"})
    EXPECT_TRUE(fs::exists(dir / name)) << name;
  EXPECT_NO_THROW(remove_temporary_files(dir / "nowhere"));
}

TEST(RunStatus, reads_back_what_was_written) {
  const ScratchDir dir;
  RunStatus written{
      .state = RunState::diverged,
      .step = 120,
      .steps = 500,
      .diverged = Divergence{120, "train/loss", "model.embed_tokens.weight", "exp, forward"},
      .started = "2025-01-31T12:00:00Z",
      .updated = {},
      .exit_code = 86,
      .parameters = 820224,
      .tokens_per_step = 4096};
  write_status(dir.path(), written);
  const RunStatus read = read_status(dir.path());
  EXPECT_EQ(read.state, RunState::diverged);
  EXPECT_EQ(read.step, 120);
  EXPECT_EQ(read.steps, 500);
  ASSERT_TRUE(read.diverged.has_value());
  EXPECT_EQ(read.diverged->step, 120);
  EXPECT_EQ(read.diverged->quantity, "train/loss");
  EXPECT_EQ(read.diverged->parameter, "model.embed_tokens.weight");
  EXPECT_EQ(read.diverged->op, "exp, forward");
  EXPECT_EQ(read.started, "2025-01-31T12:00:00Z");
  EXPECT_EQ(read.updated, written.updated);
  EXPECT_EQ(read.exit_code, 86);
  EXPECT_EQ(read.parameters, 820224);
  EXPECT_EQ(read.tokens_per_step, 4096);
}

TEST(RunStatus, of_a_running_run_has_no_exit_code_and_no_divergence) {
  const ScratchDir dir;
  RunStatus status{.steps = 500};
  write_status(dir.path(), status);
  EXPECT_THAT(status.started, MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(status.started, status.updated);
  const auto json = system::parse_json(contents(dir / "status.json"));
  EXPECT_EQ(json["state"], "running");
  EXPECT_TRUE(json["diverged"].is_null());
  EXPECT_TRUE(json["exit_code"].is_null());
  const RunStatus read = read_status(dir.path());
  EXPECT_FALSE(read.diverged || read.exit_code);
}

TEST(RunStatus, is_replaced_atomically_without_following_links) {
  const ScratchDir dir;
  RunStatus status{.step = 1};
  write_status(dir.path(), status);
  const std::string before = contents(dir / "status.json");
  put(dir / "other", "of somebody");
  fs::create_symlink(dir / "other", dir / "status.json.tmp");
  status.step = 2;
  EXPECT_THAT([&] { write_status(dir.path(), status); },
              ThrowsMessage<OutputError>("cannot write " + (dir / "status.json").string() +
                                         ": it is a symbolic link, which is not followed"));
  EXPECT_EQ(contents(dir / "status.json"), before);
  EXPECT_EQ(contents(dir / "other"), "of somebody");
}

TEST(RunStatus, is_a_data_error_naming_the_file_if_damaged) {
  const ScratchDir dir;
  const std::string place = (dir / "status.json").string() + " is damaged: ";
  put(dir / "status.json", "{\"state\": \"runn");
  EXPECT_THAT([&] { read_status(dir.path()); }, ThrowsMessage<DataError>(HasSubstr(place)));
  put(dir / "status.json", "{\"state\": \"sleeping\"}");
  EXPECT_THAT([&] { read_status(dir.path()); },
              ThrowsMessage<DataError>(
                  place + "state is \"sleeping\", but must be running, stopped, finished, diverged "
                          "or failed; restore the file or repeat the run"));
}

TEST(Environment, records_command_facts_and_machine) {
  const ScratchDir dir;
  const std::vector<std::string> command = {"difftape", "train", "a b.yaml"};
  write_env(dir.path(), command, {{"build", {{"version", "0.1.0"}}}});
  const auto env = read_env(dir.path());
  EXPECT_EQ(env["command"].get<std::vector<std::string>>(), command);
  EXPECT_EQ(env["build"]["version"], "0.1.0");
  EXPECT_EQ(env["machine"]["cpu"], cpu_model());
  EXPECT_GE(env["machine"]["threads"], 1);
  EXPECT_THAT(env["date"].get<std::string>(), MatchesRegex("20..-..-..T..:..:..Z"));
}

TEST(Environment, survives_a_command_line_that_is_not_utf8) {
  const ScratchDir dir;
  write_env(dir.path(), std::vector<std::string>{"caf\xe9"}, {});
  EXPECT_EQ(read_env(dir.path())["command"][0], "caf\xEF\xBF\xBD");
}

TEST(Environment, is_a_data_error_naming_the_file_if_damaged) {
  const ScratchDir dir;
  for (const char* text : {"", "1", "{\"command\": 1}"}) {
    put(dir / "env.json", text);
    EXPECT_THAT([&] { read_env(dir.path()); },
                ThrowsMessage<DataError>(HasSubstr((dir / "env.json").string() + " is damaged: ")));
  }
}

TEST(RunStatus, of_a_killed_run_has_the_last_logged_step) {
  const ScratchDir dir;
  RunStatus status{.step = 4, .steps = 500};
  write_status(dir.path(), status);
  EXPECT_EQ(read_status(dir.path()).step, 4);
  put(dir / "metrics.jsonl",
      "{\"step\":8,\"train/loss\":2.5}\n{\"step\":9,\"train/loss\":2.25}\n{\"st");
  EXPECT_EQ(read_status(dir.path()).state, RunState::killed);
  EXPECT_EQ(read_status(dir.path()).step, 9);
  status.state = RunState::stopped;
  write_status(dir.path(), status);
  EXPECT_EQ(read_status(dir.path()).step, 4);
}

}  // namespace
}  // namespace difftape::run
