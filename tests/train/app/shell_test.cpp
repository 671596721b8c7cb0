// Completions and the manual page, as the shells and groff read them.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::TinyProject;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What a program of the system does with a script.
Outcome interpret(const TinyProject& project, const std::string& program,
                  const std::string& script) {
  test::put(project / "script", script);
  return project.difftape({(project / "script").string()}, {.program = "/usr/bin/" + program});
}

std::string completions(const TinyProject& project, const std::string& shell) {
  const Outcome printed = project.difftape({"completion", shell});
  EXPECT_EQ(printed.exit, 0) << printed.err;
  return printed.out;
}

TEST(Completion, of_bash_offers_commands_their_options_and_files) {
  const TinyProject project;
  const std::string script = completions(project, "bash");
  const auto offered = [&](const std::string& words, int at) {
    return interpret(project, "bash",
                     script + "COMP_WORDS=(" + words + ")\nCOMP_CWORD=" + std::to_string(at) +
                         "\n_difftape\nprintf '%s\\n' \"${COMPREPLY[@]}\"\n");
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

TEST(Completion, of_zsh_describes_what_it_offers) {
  const TinyProject project;
  const std::string script = completions(project, "zsh");
  const auto offered = [&](const std::string& words, int at) {
    return interpret(project, "zsh",
                     "_describe() { print -l $1 ${(P)2}; }\n_files() { print files; }\n"
                     "compadd() { print -l \"after:$2\" ${(P)@[-1]}; }\nf() {\n" +
                         script + "}\nwords=(" + words + ") CURRENT=" + std::to_string(at) +
                         "\nf\n");
  };
  EXPECT_THAT(
      offered("difftape ''", 2).out,
      AllOf(HasSubstr("train:Train one model from a configuration\n"), Not(HasSubstr("worker"))));
  EXPECT_THAT(offered("difftape train --", 3).out, HasSubstr("\n--out:Run directory"));
  EXPECT_EQ(offered("difftape train ''", 3).out, "files\n");
  EXPECT_EQ(offered("difftape train ''", 3).err, "");
  EXPECT_THAT(offered("difftape init ''", 3).out, HasSubstr("\ndiff_v1\ndiff_v2\n"));
  EXPECT_THAT(offered("difftape init --o", 3).out, HasSubstr("option\n--out"));
  EXPECT_THAT(offered("difftape export runs/mine --format ''", 5).out,
              HasSubstr("\nsafetensors\nhf\n"));
  EXPECT_THAT(offered("difftape train a.yaml --set ''", 5).out,
              AllOf(HasSubstr("after:\n"), HasSubstr("\noptim.lr=\n")));
}

TEST(Completion, of_fish_offers_commands_and_options_in_their_places) {
  const TinyProject project;
  const std::string script = completions(project, "fish");
  const auto offered = [&](const std::string& line) {
    return interpret(project, "fish", script + "complete -C '" + line + "'\n");
  };
  EXPECT_THAT(offered("difftape tr").out, HasSubstr("train\tTrain one model"));
  EXPECT_THAT(offered("difftape train --res").out, HasSubstr("--resume\t"));
  EXPECT_THAT(offered("difftape config sch").out, HasSubstr("schema\t"));
  EXPECT_THAT(offered("difftape config sch").out, Not(HasSubstr("train")));
  EXPECT_EQ(offered("difftape tr").err, "");
  EXPECT_EQ(offered("difftape init diff_v").out, "diff_v1\ndiff_v2\n");
  EXPECT_THAT(offered("difftape export runs/mine --format ").out,
              AllOf(HasSubstr("hf\t"), HasSubstr("safetensors\t")));
  EXPECT_THAT(offered("difftape train a.yaml --set optim.wa").out,
              HasSubstr("optim.warmup_steps="));
}

TEST(Manual, is_read_by_groff_without_a_warning_and_names_every_command_and_option) {
  const TinyProject project;
  const Outcome page = project.difftape({"man"});
  ASSERT_EQ(page.exit, 0) << page.err;
  test::put(project / "difftape.1", page.out);
  const Outcome text = project.difftape({"-man", "-ww", "-Tutf8", "-P-cbou", "difftape.1"},
                                        {.program = "/usr/bin/groff"});
  EXPECT_EQ(text.exit, 0);
  EXPECT_EQ(text.err, "");
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("difftape - find out which attention mechanism"),
                    HasSubstr("difftape train CONFIG"), HasSubstr("[--resume[=auto|CKPT]]"),
                    HasSubstr("difftape config show"), HasSubstr("130/143 after"),
                    Not(HasSubstr("difftape worker"))));
}

}  // namespace
}  // namespace difftape::app
