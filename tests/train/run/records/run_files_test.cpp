#include "train/run/records/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "tests/support/scratch.h"
#include "train/system/json.h"

namespace difftape::run {
namespace {

using test::contents;
using test::put;
using test::ScratchDir;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::ThrowsMessage;
namespace fs = std::filesystem;

TEST(RunDirectory, is_created_with_its_parents_and_may_be_an_empty_one) {
  const ScratchDir dir;
  create_run_dir(dir / "runs/a");
  EXPECT_TRUE(fs::is_directory(dir / "runs/a"));
  EXPECT_NO_THROW(create_run_dir(dir / "runs/a"));
}

TEST(RunDirectory, that_holds_a_run_is_never_overwritten) {
  const ScratchDir dir;
  RunStatus status;
  write_status(dir.path(), status);
  EXPECT_THAT([&] { create_run_dir(dir.path()); },
              ThrowsMessage<OutputError>(
                  dir.path().string() +
                  " exists and holds a run; nothing is overwritten: continue the run with "
                  "--resume, or choose another directory with --out, or --out auto"));
}

TEST(RunDirectory, that_holds_anything_else_or_is_a_file_is_refused) {
  const ScratchDir dir;
  put(dir / "thesis.tex", "");
  const std::string rule =
      " exists and is not an empty directory; nothing is overwritten: choose another directory "
      "with --out, or --out auto";
  EXPECT_THAT([&] { create_run_dir(dir.path()); },
              ThrowsMessage<OutputError>(dir.path().string() + rule));
  EXPECT_THAT([&] { create_run_dir(dir / "thesis.tex"); },
              ThrowsMessage<OutputError>((dir / "thesis.tex").string() + rule));
}

TEST(RunDirectory, is_rid_of_half_written_files_and_of_nothing_else) {
  const ScratchDir dir;
  fs::create_directories(dir / "checkpoints/kept.tmp");
  for (const char* name : {"status.json.tmp", "metrics.jsonl", "checkpoints/step-00000001.h5.tmp",
                           "checkpoints/latest"})
    put(dir / name, "x");
  remove_temporary_files(dir.path());
  EXPECT_FALSE(fs::exists(dir / "status.json.tmp"));
  EXPECT_FALSE(fs::exists(dir / "checkpoints/step-00000001.h5.tmp"));
  for (const char* name : {"metrics.jsonl", "checkpoints/latest", "checkpoints/kept.tmp"})
    EXPECT_TRUE(fs::exists(dir / name)) << name;
  EXPECT_NO_THROW(remove_temporary_files(dir / "nowhere"));
}

TEST(RunDirectory, below_a_file_states_path_and_reason) {
  const ScratchDir dir;
  put(dir / "file", "");
  EXPECT_THAT([&] { create_run_dir(dir / "file/run"); },
              ThrowsMessage<OutputError>("cannot create run directory " +
                                         (dir / "file/run").string() + ": Not a directory"));
}

TEST(RunDirectory, below_a_read_only_parent_states_path_and_reason) {
  const ScratchDir dir;
  fs::permissions(dir.path(), fs::perms::owner_read | fs::perms::owner_exec |
                                  fs::perms::others_read | fs::perms::others_exec);
  constexpr uid_t kNobody = 65534;
  const bool root = geteuid() == 0;  // root writes anywhere
  ASSERT_TRUE(!root || seteuid(kNobody) == 0);
  EXPECT_THAT([&] { create_run_dir(dir / "run"); },
              ThrowsMessage<OutputError>("cannot create run directory " + (dir / "run").string() +
                                         ": Permission denied"));
  ASSERT_TRUE(!root || seteuid(0) == 0);
  fs::permissions(dir.path(), fs::perms::owner_all);
}

TEST(RunDirectory, to_resume_must_hold_a_run) {
  const ScratchDir dir;
  EXPECT_THAT([&] { require_run_dir(dir.path()); },
              ThrowsMessage<MissingInput>(dir.path().string() +
                                          " is not a run directory: it has no status.json; give "
                                          "the directory of a run"));
  put(dir / "status.json", "{}");
  EXPECT_NO_THROW(require_run_dir(dir.path()));
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

TEST(RunStatus, of_a_run_under_way_has_no_exit_code_and_no_divergence) {
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

TEST(RunStatus, is_replaced_in_one_piece_and_not_where_a_link_leads) {
  const ScratchDir dir;
  RunStatus status{.step = 1};
  write_status(dir.path(), status);
  const std::string before = contents(dir / "status.json");
  test::put(dir / "other", "of somebody");
  fs::create_symlink(dir / "other", dir / "status.json.tmp");
  status.step = 2;
  EXPECT_THAT([&] { write_status(dir.path(), status); },
              ThrowsMessage<OutputError>("cannot write " + (dir / "status.json").string() +
                                         ": is a symbolic link, which is not followed"));
  EXPECT_EQ(contents(dir / "status.json"), before);
  EXPECT_EQ(contents(dir / "other"), "of somebody");
}

TEST(RunStatus, that_is_damaged_is_a_data_error_naming_the_file) {
  const ScratchDir dir;
  const std::string place = (dir / "status.json").string() + " is damaged: ";
  put(dir / "status.json", "{\"state\": \"runn");
  EXPECT_THAT([&] { read_status(dir.path()); }, ThrowsMessage<DataError>(HasSubstr(place)));
  put(dir / "status.json", "{\"state\": \"sleeping\"}");
  EXPECT_THAT([&] { read_status(dir.path()); },
              ThrowsMessage<DataError>(place + "unknown state \"sleeping\""));
}

TEST(Environment, records_command_facts_machine_and_config) {
  const ScratchDir dir;
  const std::vector<std::string> command = {"difftape", "train", "a b.yaml"};
  write_env(dir.path(), command, {{"build", {{"version", "0.1.0"}}}},
            {{"run.name", "diff_v2"}, {"model.d_model", "128"}});
  const auto env = read_env(dir.path());
  EXPECT_EQ(env["command"].get<std::vector<std::string>>(), command);
  EXPECT_EQ(env["build"]["version"], "0.1.0");
  EXPECT_EQ(env["machine"]["cpu"], cpu_model());
  EXPECT_GE(env["machine"]["threads"], 1);
  EXPECT_THAT(env["date"].get<std::string>(), MatchesRegex("20..-..-..T..:..:..Z"));
  EXPECT_EQ(env["config"].dump(), "{\"run.name\":\"diff_v2\",\"model.d_model\":\"128\"}")
      << "config keys stay in order";
}

TEST(Environment, has_the_values_of_json_and_reads_them_back_as_the_yaml_they_were) {
  const ScratchDir dir;
  const FlatConfig config{{"run.seed", "18446744073709551615"},
                          {"optim.lr", "1.0e-05"},
                          {"optim.betas", "[0.9, 0.999]"},
                          {"train.keep_best", "true"},
                          {"train.steps", "12"},
                          {"optim.max_grad_norm", "1"},
                          {"sweep.steps", "[1, 3]"},
                          {"model.attention.kind", "diff_v2"},
                          {"run.name", "\"123\""},
                          {"run.arm", "\"\""},
                          {"data.path", "[a.txt, \"7\", \"a, b\"]"},
                          {"data.val_path", "[]"},
                          {"run.out", "\"\\\"quoted\\\"\""},
                          {"log.sample_prompt", "\"\\n\""}};
  write_env(dir.path(), {}, {}, config);
  const auto written = system::parse_json(test::contents(dir / "env.json"))["config"];
  EXPECT_EQ(
      written.dump(),
      R"({"run.seed":18446744073709551615,"optim.lr":1e-05,"optim.betas":[0.9,0.999],)"
      R"("train.keep_best":true,"train.steps":12,"optim.max_grad_norm":1,"sweep.steps":[1,3],)"
      R"("model.attention.kind":"diff_v2","run.name":"123","run.arm":"",)"
      R"("data.path":["a.txt","7","a, b"],"data.val_path":[],"run.out":"\"quoted\"",)"
      R"("log.sample_prompt":"\n"})");
  const auto read = read_env(dir.path())["config"];
  for (const auto& [key, text] : config) EXPECT_EQ(read[key], text) << key;
  ASSERT_EQ(read.size(), config.size());
}

TEST(Environment, of_a_configuration_of_yaml_as_it_once_was_reads_the_same) {
  const ScratchDir dir;
  const FlatConfig config{{"optim.lr", "1.0e-05"},
                          {"run.seed", "1"},
                          {"run.name", "\"7\""},
                          {"run.arm", "\"\""},
                          {"data.path", "[a.txt, \"7\"]"}};
  put(dir / "env.json", R"({"command": [], "config": {"optim.lr": "1.0e-05", "run.seed": 1,)"
                        R"("run.name": "\"7\"", "run.arm": "", "data.path": "[a.txt, \"7\"]"}})");
  const auto require = [&] {
    const auto read = read_env(dir.path());
    for (const auto& [key, text] : config) EXPECT_EQ(read["config"][key], text) << key;
    EXPECT_FALSE(read.contains("format_version"));
  };
  require();
  FlatConfig longer = config;
  longer.emplace_back("train.steps", "3");
  rewrite_env(dir.path(), longer, {{"step", 2}});
  EXPECT_THAT(contents(dir / "env.json"), HasSubstr(R"("run.name": "7",)"));
  require();
}

TEST(Environment, of_a_later_format_is_refused) {
  const ScratchDir dir;
  put(dir / "env.json", R"({"format_version": 3, "command": [], "config": {}})");
  EXPECT_THAT([&] { read_env(dir.path()); },
              ThrowsMessage<DataError>((dir / "env.json").string() +
                                       " is damaged: it is of format 3, this program reads up "
                                       "to 2"));
}

TEST(Environment, survives_a_command_line_that_is_not_utf8) {
  const ScratchDir dir;
  write_env(dir.path(), std::vector<std::string>{"caf\xe9"}, {}, {});
  EXPECT_EQ(read_env(dir.path())["command"][0], "caf\xEF\xBF\xBD");
}

TEST(Environment, that_is_damaged_is_a_data_error_naming_the_file) {
  const ScratchDir dir;
  for (const char* config : {"1", "{\"a\": null}", "{\"a\": {}}", "{\"a\": [[{}]]}"}) {
    put(dir / "env.json", fmt::format("{{\"command\": [], \"config\": {}}}", config));
    EXPECT_THAT([&] { read_env(dir.path()); },
                ThrowsMessage<DataError>(HasSubstr((dir / "env.json").string() + " is damaged: ")));
  }
}

}  // namespace
}  // namespace difftape::run
