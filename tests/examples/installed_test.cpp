// The result of `cmake --install`, used from another folder.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

TEST(Installed, brings_license_and_readme_and_no_sources) {
  const fs::path prefix = fs::path(DIFFTAPE_TEST_PROGRAM).parent_path().parent_path();
  for (const char* file : {"bin/difftape", "bin/difftape-f64", "share/doc/difftape/copyright",
                           "share/doc/difftape/README.md", "share/difftape/configs/README.md",
                           "include/difftape/autograd/ops.h"}) {
    EXPECT_TRUE(fs::is_regular_file(prefix / file)) << file;
  }
  for (const auto& entry : fs::recursive_directory_iterator(prefix)) {
    EXPECT_NE(entry.path().extension(), ".cpp") << entry.path();
  }
}

TEST(Installed, links_of_the_pages_lead_to_installed_files) {
  static const std::regex link(R"(\]\(([^)#\s:]+)(#[^)]+)?\))");
  const fs::path prefix = fs::path(DIFFTAPE_TEST_PROGRAM).parent_path().parent_path();
  int links = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix / "share/doc/difftape")) {
    // CONTRIBUTING.md is about the source tree.
    if (entry.path().extension() != ".md" || entry.path().stem() == "CONTRIBUTING") continue;
    const std::string text = contents(entry.path());
    for (std::sregex_iterator each(text.begin(), text.end(), link), end; each != end; ++each) {
      EXPECT_TRUE(fs::exists(entry.path().parent_path() / (*each)[1].str()))
          << entry.path() << ": " << each->str();
      ++links;
    }
  }
  EXPECT_GE(links, 60);
}

TEST(Installed, headers_include_each_other_below_difftape_only) {
  const fs::path prefix = fs::path(DIFFTAPE_TEST_PROGRAM).parent_path().parent_path();
  int headers = 0;
  for (const auto& entry : fs::recursive_directory_iterator(prefix / "include")) {
    if (entry.path().extension() != ".h") continue;
    std::istringstream text(contents(entry.path()));
    for (std::string line; std::getline(text, line);) {
      if (!line.starts_with("#include \"")) continue;
      const std::string name = line.substr(10, line.rfind('"') - 10);
      EXPECT_TRUE(fs::is_regular_file(prefix / "include/difftape" / name))
          << entry.path() << ": " << line;
    }
    ++headers;
  }
  EXPECT_GE(headers, 35);
}

TEST(Installed, program_finds_the_configurations_that_came_with_it) {
  const TinyProject project;
  const Outcome shown = project.difftape({"config", "show", "configs/variants/diff_v2.yaml"});
  EXPECT_EQ(shown.exit, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("diff_v2"));
  put(project / "mine.yaml", "base: configs/base/text_0.2m.yaml\nrun: {name: mine}\n");
  const Outcome mine = project.difftape({"config", "show", "mine.yaml", "--origin"});
  EXPECT_EQ(mine.exit, 0) << mine.err;
  EXPECT_THAT(mine.out, HasSubstr("share/difftape/configs/base/text_0.2m.yaml"));
  EXPECT_THAT(
      test::error(66, project.difftape({"config", "show", "configs/variants/diff_v3.yaml"})),
      HasSubstr("configs/variants/diff_v3.yaml: no such file; did you mean "
                "'configs/variants/diff_v1.yaml'?"));
  put(project / "mine.yaml", "base: configs/variants/diff_v3.yaml\n");
  EXPECT_THAT(test::error(78, project.difftape({"config", "show", "mine.yaml"})),
              HasSubstr("did you mean 'configs/variants/diff_v1.yaml'?"));
}

TEST(Installed, a_file_of_the_user_comes_before_an_installed_one_of_the_same_name) {
  const TinyProject project;
  fs::create_directories(project / "configs/base");
  put(project / "configs/base/text_0.2m.yaml", "model: {d_model: 48}\n");
  const Outcome shown = project.difftape({"config", "show", "configs/base/text_0.2m.yaml"});
  EXPECT_THAT(shown.out, HasSubstr("d_model: 48\n")) << shown.err;
}

TEST(Installed, program_runs_gradcheck_in_the_double_precision_program_beside_it) {
  const Outcome outcome = test::run({"gradcheck", "--filter", "^sigmoid"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr(" 0 failed"));
}

}  // namespace
}  // namespace difftape::app
