// Commands that print what they know: plan, doctor, config.
#include "tests/train/run/loop/tiny.h"
#include "train/run/config/reader.h"
#include "train/system/json.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

using test::Outcome;
using test::TinyProject;
using testing::AllOf;
using testing::HasSubstr;

/// The cells of the row that begins with `label`.
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
  const Outcome plan = project.difftape({"plan", "tiny.yaml"});
  ASSERT_EQ(plan.exit, 0) << plan.err;
  EXPECT_THAT(plan.out, AllOf(HasSubstr("diff_v1"), HasSubstr("diff_v2 *"), HasSubstr("softmax"),
                              testing::StartsWith("Sequences of 16, batches of 2, f32.\n")));
  std::vector<std::string> counts;
  for (const std::string& kind : attention_kinds()) {
    ModelConfig model = project.config.model;
    model.attention.kind = kind;
    counts.push_back(system::grouped(LanguageModel(model).parameters().count()));
  }
  EXPECT_EQ(row(plan.out, "parameters"), counts);
  // Per layer 2 x 16 x 16 keys and values of 4 bytes, whatever the kind: V2 adds queries alone.
  EXPECT_EQ(row(plan.out, "KV cache per token, bytes"),
            std::vector<std::string>(counts.size(), "256"));
  for (const std::string label :
       {"training MFLOP per token", "memory of a step, MB", "the whole run, PFLOP"}) {
    EXPECT_EQ(row(plan.out, label).size(), counts.size()) << label;
  }
  EXPECT_FALSE(std::filesystem::exists(project / "runs"));
}

TEST(Plan, follows_set_and_leaves_out_kinds_that_the_heads_do_not_allow) {
  const TinyProject project;
  const Outcome plan = project.difftape({"plan", "tiny.yaml", "--set", "model.num_heads=1"});
  ASSERT_EQ(plan.exit, 0) << plan.err;
  EXPECT_EQ(row(plan.out, "parameters").size(), attention_kinds().size() - 1);
  EXPECT_THAT(plan.out,
              HasSubstr("\nleft out diff_v1: diff_v1 pairs the heads of the baseline, but "
                        "num_heads is 1;"));
  EXPECT_THAT(plan.out, HasSubstr("softmax *"));
}

TEST(Plan, takes_kinds_and_says_why_one_is_left_out) {
  const TinyProject project;
  const Outcome two = project.difftape({"plan", "tiny.yaml", "--kinds", "diff_v2,softmax"});
  ASSERT_EQ(two.exit, 0) << two.err;
  EXPECT_EQ(row(two.out, "parameters").size(), 2u);
  EXPECT_EQ(row(two.out, "    q_proj"), (std::vector<std::string>{"1,024", "512"}));
  const Outcome tight = project.difftape(
      {"plan", "--set", "model.match_params=true", "--set", "model.d_ff=4", "tiny.yaml"});
  ASSERT_EQ(tight.exit, 0) << tight.err;
  EXPECT_THAT(tight.out, HasSubstr("\nleft out diff_v2: model.match_params: diff_v2 has "));
  const Outcome unknown = project.difftape({"plan", "tiny.yaml", "--kinds", "sofmax"});
  EXPECT_EQ(unknown.exit, 64);
  EXPECT_THAT(unknown.err, HasSubstr("--kinds: 'sofmax' is not one of diff_v1"));
  EXPECT_THAT(unknown.err, HasSubstr("; did you mean 'softmax'?\n"));
}

TEST(Doctor, says_what_the_machine_and_the_build_can_do) {
  const Outcome doctor = test::run({"doctor"}, {.environment = {{"OMP_NUM_THREADS", "1"}}});
  ASSERT_EQ(doctor.exit, 0) << doctor.err;
  for (const std::string label :
       {"compiler", "compiled for", "processor", "instructions", "cores", "threads", "GEMM backend",
        "bfloat16", "measured peak", "matrix product", "Eigen", "HDF5", "CLI11"}) {
    EXPECT_THAT(doctor.out, HasSubstr("\n" + label + "  ")) << label;
  }
  EXPECT_THAT(doctor.out, testing::MatchesRegex("difftape +0\\.[0-9.]+ \\(.*, f32, .*\\)\n.*"));
  EXPECT_EQ(row(doctor.out, "threads")[0], "1");
  EXPECT_GT(std::stod(row(doctor.out, "measured peak")[0]), 0.5) << "GFLOP/s";
  const auto product = row(doctor.out, "matrix product");
  EXPECT_EQ(product[0], "full");
  EXPECT_GT(std::stod(product[1]), 0.1);
  EXPECT_LT(std::stod(product[8]), 1e-6) << "error";
  const Outcome other = test::run({"doctor"}, {.program = DIFFTAPE_TEST_PROGRAM_F64});
  EXPECT_THAT(other.out, AllOf(HasSubstr(", f64, "), HasSubstr("multiply-add, f64")));
}

TEST(ConfigShow, prints_a_file_that_runs_as_is) {
  TinyProject project("diff_v1");
  const Outcome show = project.difftape({"config", "show", "tiny.yaml", "--set", "run.seed=7"});
  ASSERT_EQ(show.exit, 0) << show.err;
  project.config.run.seed = 7;
  EXPECT_EQ(show.out, run::to_yaml(project.config));
  test::put(project / "shown.yaml", show.out);
  EXPECT_EQ(project.difftape({"train", "shown.yaml", "--out", "run"}).exit, 0);
  EXPECT_EQ(test::contents(project / "run/config.yaml"), show.out);
}

TEST(ConfigShow, takes_what_eval_takes_for_a_checkpoint) {
  TinyProject project;
  project.config.train.keep_best = true;
  project.save();
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  for (const char* where : {"run", "run/checkpoints", "run/checkpoints/latest",
                            "run/checkpoints/best", "run/checkpoints/step-00000012.h5"}) {
    const Outcome show = project.difftape({"config", "show", where, "--set", "data.batch_size=1"});
    EXPECT_EQ(show.exit, 0) << show.err;
    run::Config expected = project.config;
    expected.data.batch_size = 1;
    EXPECT_EQ(show.out, run::to_yaml(expected)) << where;
  }
  EXPECT_EQ(project.difftape({"config", "show", "run/checkpoints", "--origin"}).exit, 64);
  EXPECT_EQ(project.difftape({"config", "show", "."}).exit, 66) << "no checkpoint";
}

TEST(ConfigKeys, and_schema_know_every_key_of_a_resolved_configuration) {
  const Outcome keys = test::run({"config", "keys"}), schema = test::run({"config", "schema"});
  ASSERT_EQ(keys.exit, 0);
  ASSERT_EQ(schema.exit, 0);
  const auto json = system::parse_json(schema.out);
  const run::FlatConfig flat = flat_config(run::Config{});
  ASSERT_GT(flat.size(), 30u);
  for (const auto& [key, value] : flat) {
    EXPECT_THAT(keys.out, HasSubstr("\n" + key + " "));
    std::string pointer = "/properties/" + key;
    for (size_t dot; (dot = pointer.find('.')) != std::string::npos;) {
      pointer.replace(dot, 1, "/properties/");
    }
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(pointer))) << pointer;
  }
}

}  // namespace
}  // namespace difftape::app
