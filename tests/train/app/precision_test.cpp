// difftape-f64: the commands of one model in double precision, and gradcheck, which hands over to
// it.

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

TEST(DoublePrecision, train_agrees_with_single_precision_in_the_first_loss) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    ASSERT_EQ(project.train("f32"), system::Exit::ok);
    test::output(project.difftape({"train", "tiny.yaml", "--out", "f64"},
                                  {.program = DIFFTAPE_TEST_PROGRAM_F64}));
    const auto single = metrics_lines(project / "f32"), exact = metrics_lines(project / "f64");
    ASSERT_EQ(exact.size(), single.size());
    for (const char* metric : {"train/loss", "optim/grad_norm"}) {
      const double a = single[0][metric], b = exact[0][metric];
      EXPECT_NEAR(a, b, 1e-5 * b) << kind << " " << metric;
      EXPECT_NE(a, b) << "both programs are the same";
    }
    const double a = single.back()["val/loss"], b = exact.back()["val/loss"];
    EXPECT_NEAR(a, b, 1e-3 * b) << kind << ": after 12 steps";
    EXPECT_EQ(run::Checkpoint(run::find_checkpoint(project / "f64")).meta().precision, "f64");
  }
}

TEST(Gradcheck, runs_in_double_precision_and_prints_one_row_per_op_and_variant) {
  const Outcome outcome =
      test::run({"gradcheck", "--filter", "^(softmax|linear|layer/.*/gqa/.*/plain/d[23]/T[13])$"});
  EXPECT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_EQ(outcome.err, "");
  EXPECT_TRUE(
      outcome.out.starts_with("op, layer or model            cases   elements     zero  "
                              "worst error  seconds  verdict\n"))
      << outcome.out;
  const std::string numbers = " +[0-9]+ +[0-9]+ +[0-9.]+e-1[0-9] +[0-9.]+  ok\n";
  EXPECT_TRUE(std::regex_search(outcome.out, std::regex("\nlinear +1" + numbers))) << outcome.out;
  for (const std::string& kind : attention_kinds()) {
    EXPECT_TRUE(std::regex_search(outcome.out, std::regex("\nlayer/" + kind + " +12" + numbers)))
        << outcome.out;
  }
  std::smatch last;
  ASSERT_TRUE(std::regex_search(
      outcome.out, last,
      std::regex(
          "\n([0-9]+) cases, [0-9]+ elements, worst relative error ([0-9.e-]+), tolerance 1e-10, "
          "0 failed, [0-9.]+ s\n$")));
  EXPECT_GE(std::stoi(last[1]), 2 + 12 * 19);
  EXPECT_LT(std::stod(last[2]), 1e-10);
  EXPECT_THAT(outcome.out, Not(HasSubstr("\nrms_norm"))) << "the filter chooses";
}

TEST(Gradcheck, prints_the_same_except_times_for_any_number_of_threads) {
  const auto table = [](const std::string& threads) {
    const std::string outcome =
        test::output(test::run({"gradcheck", "--filter", "layer/(sink|diff_v1)/.*/T2$"},
                               {.environment = {{"OMP_NUM_THREADS", threads}}}));
    return std::regex_replace(outcome, std::regex(" +[0-9.]+  ok|[0-9.]+ s\n"), "");
  };
  EXPECT_EQ(table("1"), table("3"));
}

TEST(Gradcheck, takes_numbers_of_threads_for_nested_levels_and_an_unknown_gemm_backend) {
  const test::Words attention{"gradcheck", "--filter", "^attention(/v1|/v2)?$"};
  test::output(test::run(attention, {.environment = {{"OMP_NUM_THREADS", "2,1"}}}));
  const Outcome typo =
      test::run(attention, {.environment = {{"OMP_NUM_THREADS", "2"}, {"DIFFTAPE_GEMM", "typo"}}});
  EXPECT_THAT(typo.exit, testing::Gt(0)) << "no signal";
  EXPECT_THAT(typo.out + typo.err, HasSubstr("GEMM backend 'typo' is not available here"));
}

TEST(Gradcheck, a_filter_that_matches_nothing_or_is_invalid_is_a_usage_error) {
  const Outcome nothing = test::run({"gradcheck", "--filter", "sofmax"});
  EXPECT_EQ(nothing.exit, 64);
  EXPECT_EQ(nothing.err,
            "difftape: --filter: no case matches 'sofmax'; run gradcheck without --filter to list "
            "the groups\n");
  EXPECT_EQ(nothing.out, "");
  EXPECT_THAT(test::error(64, test::run({"gradcheck", "--filter", "("})),
              HasSubstr("difftape: --filter: '(' is not a valid regular expression: "));
}

TEST(Gradcheck, without_the_program_in_double_precision_names_it) {
  const ScratchDir dir;
  fs::copy_file(DIFFTAPE_TEST_PROGRAM, dir / "difftape");
  EXPECT_EQ(test::error(66, test::run({"gradcheck"}, {.program = dir / "difftape"})),
            "difftape: " + (dir / "difftape-f64").string() +
                ": No such file or directory; this program checks gradients in double precision "
                "and must be in the folder of difftape\n");
}

}  // namespace
}  // namespace difftape::app
