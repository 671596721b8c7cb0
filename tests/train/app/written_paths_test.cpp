// Files are written below the run directory only, never to paths named by a configuration value or
// a foreign run directory.

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

/// Returns the files below a folder with their contents.
std::map<std::string, std::string> everything_below(const fs::path& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    found[entry.path().string()] = entry.is_regular_file() ? contents(entry.path()) : "";
  return found;
}

struct WrittenPaths : testing::Test {
  /// Runs difftape two folders below the watched one, which also contains HOME and TMPDIR.
  Outcome difftape(const std::vector<std::string>& arguments) {
    return test::run(arguments, {.directory = project / "a/b",
                                 .environment = {{"OMP_NUM_THREADS", "1"},
                                                 {"HOME", (project / "a").string()},
                                                 {"TMPDIR", (project / "a").string()}}});
  }

  /// Returns the files created or changed outside of a/b/`allowed` since the last call.
  std::vector<std::string> changed(const std::string& allowed) {
    std::vector<std::string> paths;
    auto now = everything_below(project.path());
    const std::string inside = (project / "a/b").string() + "/" + allowed;
    for (const auto& [path, text] : now) {
      const auto then = before_.find(path);
      if ((then == before_.end() || then->second != text) &&
          !(path + "/").starts_with(inside + "/"))
        paths.push_back(path);
    }
    before_ = std::move(now);
    return paths;
  }

  void SetUp() override {
    fs::create_directories(project / "a/b");
    changed("");
  }

  TinyProject project;
  const std::string config = (project / "tiny.yaml").string();

 private:
  std::map<std::string, std::string> before_;
};

TEST_F(WrittenPaths, are_below_the_run_directory_for_any_strings_in_a_configuration) {
  const std::vector<std::string> texts{"../../evil", (project / "evil").string(), "~/evil"};
  int trained = 0, refused = 0;
  for (const nlohmann::ordered_json& key :
       system::parse_json(difftape({"config", "keys", "--json"}).out)) {
    const auto name = key["key"].get<std::string>();
    if (key["type"] != "string" || name == "run.out" || name.starts_with("sweep.")) continue;
    SCOPED_TRACE(name);
    for (const std::string& text : texts) {
      const std::string out = "run" + std::to_string(trained);
      const Outcome outcome = difftape({"train", config, "--set", "log.tensorboard=true", "--set",
                                        name + "=" + text, "--out", out});
      EXPECT_THAT(outcome.exit, testing::AnyOf(0, 66, 78)) << outcome.err;
      EXPECT_THAT(changed(outcome.exit == 0 ? out : "nothing"), IsEmpty());
      (outcome.exit == 0 ? trained : refused) += 1;
    }
  }
  EXPECT_GE(trained, 4) << "run.arm, run.claims";
  EXPECT_GE(refused, 3) << "run.name";
}

TEST_F(WrittenPaths, of_a_sweep_are_below_its_directory) {
  for (const std::string text :
       {"name: ../evil", "arms: {../evil: {}}", "arms: {'..': {}}",
        "arms: {a: {run.name: ../evil}}", "arms: {a: {run.out: /tmp/x}}"}) {
    put(project / "sweep.yaml", "base: tiny.yaml\nsweep: {seeds: [1], " + text + "}\n");
    changed("");
    const Outcome outcome = difftape({"sweep", (project / "sweep.yaml").string(), "--out", "runs"});
    EXPECT_EQ(outcome.exit, 78) << text << "\n" << outcome.err;
    EXPECT_THAT(changed("nothing"), IsEmpty()) << text;
  }
}

TEST_F(WrittenPaths, never_follow_paths_named_in_a_foreign_run_directory) {
  project.config.run.out = (project / "evil").string();
  project.save();
  ASSERT_EQ(difftape({"train", config, "--out", "run"}).exit, 0);
  ASSERT_THAT(contents(project / "a/b/run/config.yaml"), HasSubstr("evil"));
  changed("run");
  for (const Words& words : std::vector<Words>{{"eval", "run"},
                                               {"verify", "run"},
                                               {"generate", "run", "--prompt", "the"},
                                               {"runs", "run"},
                                               {"config", "show", "run"},
                                               {"plan", "run"},
                                               {"report", "run", "--out", "made"}}) {
    const Outcome outcome = difftape(words);
    EXPECT_THAT(outcome.exit, testing::AnyOf(0, 1)) << words[0] << outcome.err;
    EXPECT_THAT(changed("made"), IsEmpty()) << words[0];
  }
}

TEST_F(WrittenPaths, of_a_resumed_run_never_follow_its_symbolic_links) {
  ASSERT_EQ(
      difftape({"train", config, "--set", "train.checkpoint_interval=4", "--out", "run"}).exit, 0);
  const fs::path run = project / "a/b/run";
  put(project / "mine", "precious");
  for (const char* name : {"metrics.jsonl", "stdout.log", "lock", "status.json.tmp"}) {
    SCOPED_TRACE(name);
    fs::copy(run, project / "a/b/other", fs::copy_options::recursive);
    fs::remove(project / "a/b/other/checkpoints/step-00000012.h5");
    fs::remove(project / "a/b/other" / name);
    fs::create_symlink(project / "mine", project / "a/b/other" / name);
    changed("");
    const Outcome outcome = difftape(
        {"train", config, "--set", "train.checkpoint_interval=4", "--out", "other", "--resume"});
    const bool removed = std::string(name) == "status.json.tmp";  // with the partly written file
    const bool is_read = std::string(name) == "metrics.jsonl";  // and has no line of the last step
    EXPECT_EQ(outcome.exit, removed ? 0 : is_read ? 65 : 74) << outcome.err;
    EXPECT_THAT(changed("other"), IsEmpty());
    EXPECT_EQ(contents(project / "mine"), "precious");
    fs::remove_all(project / "a/b/other");
  }
}

}  // namespace
}  // namespace difftape::app
