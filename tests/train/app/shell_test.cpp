// Completions, as bash reads them.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::TinyProject;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

TEST(Completion, of_bash_offers_commands_their_options_and_files) {
  const TinyProject project;
  const Outcome printed = project.difftape({"completion", "bash"});
  ASSERT_EQ(printed.exit, 0) << printed.err;
  const auto offered = [&](const std::string& words, int at) {
    test::put(project / "script", printed.out + "COMP_WORDS=(" + words +
                                      ")\nCOMP_CWORD=" + std::to_string(at) +
                                      "\n_difftape\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
    return project.difftape({(project / "script").string()}, {.program = "/usr/bin/bash"});
  };
  EXPECT_EQ(offered("difftape tr", 1).out, "train\n");
  EXPECT_EQ(offered("difftape train --res", 2).out, "--resume\n");
  EXPECT_EQ(offered("difftape train --set a=1 --pro", 4).out, "--profile\n");
  EXPECT_EQ(offered("difftape config sch", 2).out, "schema\n");
  EXPECT_EQ(offered("difftape train con", 2).out, "\n") << "files are what bash falls back to";
  EXPECT_THAT(offered("difftape ''", 1).out, AllOf(HasSubstr("sweep\n"), Not(HasSubstr("worker"))));
  EXPECT_EQ(offered("difftape tr", 1).err, "");
  EXPECT_EQ(offered("difftape init diff_v", 2).out, "diff_v1\ndiff_v2\n");
  EXPECT_EQ(offered("difftape init --o", 2).out, "--out\n");
  EXPECT_EQ(offered("difftape init --out ''", 3).out, "\n");
  EXPECT_EQ(offered("difftape export runs/mine --format ''", 4).out, "safetensors\nhf\n");
  EXPECT_EQ(offered("difftape train a.yaml --set optim.wa", 4).out, "optim.warmup_steps=\n");
  EXPECT_EQ(offered("difftape config show --set optim.wa", 4).out, "optim.warmup_steps=\n");
}

}  // namespace
}  // namespace difftape::app
