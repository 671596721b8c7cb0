// Commands that print information: plan, doctor, config, init.
#include "core/gemm_backend.h"
#include "core/platform.h"
#include "tests/train/run/loop/tiny.h"
#include "train/run/config/reader.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

/// Returns the cells of the row that begins with `label`.
std::vector<std::string> row(const std::string& table, const std::string& label) {
  std::istringstream lines(table);
  std::vector<std::string> cells;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(label + " ")) continue;
    std::istringstream words(line.substr(label.size()));
    for (std::string word; words >> word;) cells.push_back(word);
    return cells;
  }
  return {"no row " + label};
}

TEST(Plan, prints_parameters_flops_memory_and_cache_of_every_kind_and_trains_nothing) {
  const TinyProject project("diff_v2");
  const std::string plan = test::output(project.difftape({"plan", "tiny.yaml"}));
  EXPECT_THAT(plan, AllOf(HasSubstr("diff_v1"), HasSubstr("diff_v2 *"), HasSubstr("softmax"),
                          StartsWith("Sequences of 16, batches of 2, f32.\n")));
  std::vector<std::string> counts;
  for (const std::string& kind : attention_kinds()) {
    ModelConfig model = project.config.model;
    model.attention.kind = kind;
    counts.push_back(system::grouped(LanguageModel(model).parameters().count()));
  }
  EXPECT_EQ(row(plan, "parameters"), counts);
  // Per layer 2 x 16 x 16 keys and values of 4 bytes, whatever the kind: V2 adds queries alone.
  EXPECT_EQ(row(plan, "KV cache per token, bytes"), std::vector<std::string>(counts.size(), "256"));
  for (const std::string label :
       {"training MFLOP per token", "memory of a step, MB", "the whole run, PFLOP"})
    EXPECT_EQ(row(plan, label).size(), counts.size()) << label;
  EXPECT_FALSE(fs::exists(project / "runs"));
}

TEST(Plan, takes_kinds_and_explains_omitted_ones) {
  const TinyProject project;
  const std::string two =
      test::output(project.difftape({"plan", "tiny.yaml", "--kinds", "diff_v2,softmax"}));
  EXPECT_EQ(row(two, "parameters").size(), 2u);
  EXPECT_EQ(row(two, "    q_proj"), (std::vector<std::string>{"1,024", "512"}));
  EXPECT_THAT(test::output(project.difftape({"plan", "--set", "model.match_params=true", "--set",
                                             "model.d_ff=4", "tiny.yaml"})),
              HasSubstr("\nleft out diff_v2: model.match_params: diff_v2 has "));
  const std::string unknown =
      test::error(64, project.difftape({"plan", "tiny.yaml", "--kinds", "sofmax"}));
  EXPECT_THAT(unknown, HasSubstr("--kinds: 'sofmax' is not one of diff_v1"));
  EXPECT_THAT(unknown, HasSubstr("; did you mean 'softmax'?\n"));
}

TEST(Doctor, describes_the_machine_and_the_build) {
  const Outcome doctor =
      test::run({"doctor"}, {.environment = {{"OMP_NUM_THREADS", "3"}, {"OMP_THREAD_LIMIT", "1"}}});
  ASSERT_EQ(doctor.exit, 0) << doctor.err;
  for (const std::string label :
       {"compiler", "compiled for", "processor", "instructions", "cores", "threads", "GEMM backend",
        "bfloat16", "code paths", "measured peak", "matrix multiply", "Eigen", "HDF5", "CLI11"})
    EXPECT_THAT(doctor.out, HasSubstr("\n" + label + "  ")) << label;
  EXPECT_THAT(doctor.out, MatchesRegex("difftape +0\\.[0-9.]+ \\(.*, f32, .*\\)\n.*"));
  EXPECT_EQ(row(doctor.out, "threads")[0], "1");
  EXPECT_THAT(doctor.out, HasSubstr(" 1 (OMP_NUM_THREADS, OMP_THREAD_LIMIT)\n"));
  EXPECT_GT(std::stod(row(doctor.out, "measured peak")[0]), 0.5) << "GFLOP/s";
  const auto product = row(doctor.out, "matrix multiply");
  EXPECT_EQ(product[0], "full");
  EXPECT_GT(std::stod(product[1]), 0.1);
  EXPECT_LT(std::stod(product[8]), 1e-6) << "error";
  EXPECT_EQ(test::count(doctor.out, "% of peak"), 1u) << "the peak is not of bf16";
  for (const CodePath& path : code_paths()) {
    const std::string here = path.missing.empty() ? "runs here" : "does not run: " + path.missing;
    EXPECT_THAT(doctor.out, HasSubstr(fmt::format("{:<20}{}\n", path.name, here)));
  }
  EXPECT_EQ(test::count(doctor.out, "AVX512-BF16 pairs   runs here"),
            unsupported_reason(Precision::bf16).empty() ? 1u : 0u);
  const Outcome other = test::run({"doctor"}, {.program = DIFFTAPE_TEST_PROGRAM_F64});
  EXPECT_THAT(other.out, AllOf(HasSubstr(", f64, "), HasSubstr("multiply-add, f64")));
}

TEST(ConfigShow, prints_a_file_that_runs_as_is) {
  TinyProject project("diff_v1");
  const Outcome show = project.difftape({"config", "show", "tiny.yaml", "--set", "run.seed=7"});
  ASSERT_EQ(show.exit, 0) << show.err;
  project.config.run.seed = 7;
  EXPECT_EQ(show.out, run::to_yaml(project.config));
  put(project / "shown.yaml", show.out);
  EXPECT_EQ(project.difftape({"train", "shown.yaml", "--out", "run"}).exit, 0);
  EXPECT_EQ(contents(project / "run/config.yaml"), show.out);
}

TEST(ConfigShow, accepts_the_checkpoints_that_eval_accepts) {
  TinyProject project;
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  for (const char* where : {"run", "run/checkpoints", "run/checkpoints/step-00000012.h5"}) {
    const std::string show =
        test::output(project.difftape({"config", "show", where, "--set", "data.batch_size=1"}));
    run::Config expected = project.config;
    expected.data.batch_size = 1;
    EXPECT_EQ(show, run::to_yaml(expected)) << where;
  }
  EXPECT_EQ(project.difftape({"config", "show", "run/checkpoints", "--origin"}).exit, 64);
  EXPECT_EQ(project.difftape({"config", "show", "."}).exit, 66) << "no checkpoint";
}

TEST(ConfigShow, finds_the_configurations_of_the_repository_from_any_folder) {
  const TinyProject project;
  put(project / "mine.yaml", "base: configs/variants/diff_v1.yaml\n");
  EXPECT_THAT(test::output(project.difftape({"config", "show", "mine.yaml"})),
              HasSubstr("kind: diff_v1\n"));
}

TEST(ConfigKeys, and_schema_know_every_key_of_a_resolved_configuration) {
  const std::string keys = test::output(test::run({"config", "keys"}));
  const auto json = system::parse_json(test::output(test::run({"config", "schema"})));
  const run::FlatConfig flat = flat_config(run::Config{});
  ASSERT_GT(flat.size(), 30u);
  for (const auto& [key, value] : flat) {
    EXPECT_THAT(keys, HasSubstr("\n" + key + " "));
    std::string pointer = "/properties/" + key;
    for (size_t dot; (dot = pointer.find('.')) != std::string::npos;)
      pointer.replace(dot, 1, "/properties/");
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(pointer))) << pointer;
  }
}

TEST(Init, writes_a_default_configuration_that_trains_for_every_kind) {
  const TinyProject project;
  for (const std::string& kind : attention_kinds()) {
    EXPECT_EQ(test::output(project.difftape({"init", kind})),
              "wrote " + kind + ".yaml; edit it, then run: difftape train " + kind + ".yaml\n");
    const run::Config written = run::load_config(project / (kind + ".yaml")).config;
    run::Config expected;
    expected.run.name = kind;
    expected.model.attention.kind = kind;
    EXPECT_EQ(run::to_yaml(written), run::to_yaml(expected));
    test::output(project.difftape({"train", kind + ".yaml", "--set", "train.steps=1", "--set",
                                   "data.batch_size=1", "--set", "train.final_eval_batches=1",
                                   "--set", "data.path=text.txt"}));
  }
}

TEST(Init, explains_each_key_and_shows_the_fields_of_attention_as_comments) {
  const TinyProject project;
  ASSERT_EQ(project.difftape({"init", "--out", "first.yaml"}).exit, 0);
  const std::string text = contents(project / "first.yaml");
  EXPECT_THAT(text, StartsWith("# diff_v2: Ye et al. 2026"));
  EXPECT_THAT(text, HasSubstr("\n#   difftape train first.yaml\n"));
  EXPECT_THAT(text, HasSubstr("\n  # Peak learning rate.\n  lr: 0.001\n"));
  EXPECT_THAT(text, HasSubstr("\n  warmup_steps: 5%\n"));
  EXPECT_THAT(text, HasSubstr("\n    # lambda: preset\n"));
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100u) << line;
}

TEST(Init, overwrites_nothing_and_rejects_unknown_kinds) {
  const TinyProject project;
  EXPECT_EQ(test::error(74, project.difftape({"init", "--out", "tiny.yaml"})),
            "difftape: tiny.yaml already exists and is not overwritten; choose another name with "
            "--out\n");
  const std::string unknown = test::error(64, project.difftape({"init", "dif_v2"}));
  EXPECT_THAT(unknown, HasSubstr("KIND: 'dif_v2' is not one of diff_v1, diff_v2, "));
  EXPECT_THAT(unknown, HasSubstr("; did you mean 'diff_v2'?\n"));
  EXPECT_FALSE(fs::exists(project / "dif_v2.yaml"));
  test::error(74, project.difftape({"init", "--out", "nowhere/a.yaml"}));
}

}  // namespace
}  // namespace difftape::app
