#include "bench/interleaved.h"

#include <fmt/core.h>

#include "bench/measure.h"
#include "bench/results_table.h"
#include "tests/support/sanitizer.h"
#include "tests/support/test.h"

namespace difftape::bench {
namespace {

constexpr Interleaving kRules{.rounds = 2, .steps = 2, .warmup = 2};

/// A candidate as a shell script: introduces itself, then runs `answer` for every request.
Candidate shell(const std::string& name, const std::string& answer) {
  return {name,
          name,
          {"sh", "-c",
           R"(echo '{"version": "v1", "parameters": 7, "idle_bytes": 1000000}'
              while read word count; do )" +
               answer + "; done"}};
}

/// Answers that two steps took `a` and `b` seconds.
std::string two_steps(double a, double b) {
  return fmt::format(R"(echo '{{"seconds": [{}, {}], "peak_bytes": 2000000}}')", a, b);
}

TEST(Interleaved, candidates_alternate_after_each_has_warmed_up_alone) {
  const ScratchDir scratch;
  const std::string log = (scratch / "log").string();
  const auto logging = [&](const std::string& name) {
    return shell(name, "echo " + name + "$count >> " + log + "; " + two_steps(1, 1));
  };
  const BenchmarkResult result = run_interleaved({logging("a"), logging("b")}, kRules);
  EXPECT_EQ(result.finished.size(), 2u);
  std::ifstream file(log);
  const std::vector<std::string> order{std::istream_iterator<std::string>(file), {}};
  EXPECT_THAT(order, ElementsAre("a2", "b2", "a2", "b2", "a2", "b2"));
}

TEST(Interleaved, every_step_counts_and_a_round_is_its_median) {
  const BenchmarkResult result = run_interleaved({shell("a", two_steps(0.1, 0.3))}, kRules);
  ASSERT_EQ(result.finished.size(), 1u);
  const Result& a = result.finished.front();
  EXPECT_THAT(a.seconds, ElementsAre(0.1, 0.3, 0.1, 0.3));
  EXPECT_THAT(a.round_medians, ElementsAre(testing::DoubleEq(0.2), testing::DoubleEq(0.2)));
  EXPECT_EQ(a.parameters, 7);
  EXPECT_EQ(a.idle_bytes, 1e6);
  EXPECT_EQ(a.peak_bytes, 2e6);
}

TEST(Interleaved, the_table_compares_the_first_with_the_best_of_another_framework) {
  Candidate slow = shell("eager", two_steps(0.5, 0.5)),
            fast = shell("compiled", two_steps(0.2, 0.2));
  slow.framework = fast.framework = "other";
  const BenchmarkResult result =
      run_interleaved({shell("ours", two_steps(0.1, 0.1)), slow, fast}, kRules);
  const std::string text = results_table({{"", 1000, result}}, "T");
  EXPECT_THAT(text, HasSubstr("ours is 2.00 (2.00-2.00) times as fast as compiled\n"));
  EXPECT_THAT(text, Not(HasSubstr("times as fast as eager")));
  EXPECT_THAT(text, testing::ContainsRegex("compiled +7 +200.0 +200.0 +200.0 +200.0 +5,000 +-"
                                           " +2 +1 +0.500 +0.500 +0.500"));
}

TEST(Interleaved, the_bytes_of_several_processes_are_compared_with_the_lower_bound) {
  Candidate four = shell("four", R"(echo '{"seconds": [1, 1], "sent_bytes": 84}')");
  four.processes = 4;
  const BenchmarkResult result = run_interleaved({four}, kRules);
  // 7 parameters: 2 * 3 / 4 * 7 * 4 bytes
  EXPECT_THAT(results_table({{"", 1000, result}}, "T"),
              HasSubstr("four: a process sends at most 0.00 MB per step, 2.000 times the lower "
                        "bound 0.00 MB\n"));
}

TEST(Interleaved, a_candidate_that_dies_is_left_out_with_its_last_line) {
  const Candidate absent{"absent", "", {"sh", "-c", "echo a >&2; echo 'no b' >&2; exit 3"}};
  const Candidate dying = shell("dying", two_steps(1, 1) + "; echo enough >&2; kill -9 $$");
  const Candidate missing{"missing", "", {"/no/such/program"}};
  const BenchmarkResult result =
      run_interleaved({absent, dying, missing, shell("steady", two_steps(1, 1))}, kRules);
  ASSERT_EQ(result.finished.size(), 1u);
  EXPECT_EQ(result.finished.front().candidate.name, "steady");
  EXPECT_THAT(result.left_out,
              ElementsAre("absent: exit code 3: no b",
                          "missing: cannot start /no/such/program: No such file or directory",
                          "dying: killed by signal 9: enough"));
}

TEST(Interleaved, invalid_answers_are_not_measured) {
  const BenchmarkResult result =
      run_interleaved({shell("short", R"(echo '{"seconds": [1]}')"), shell("text", "echo '{oh}'"),
                       shell("typed", R"(echo '{"seconds": "soon"}')")},
                      kRules);
  EXPECT_TRUE(result.finished.empty());
  EXPECT_THAT(result.left_out, ElementsAre("short: 2 steps asked for, 1 answered",
                                           "text: answers '{oh}', which is not JSON",
                                           StartsWith("typed: answers in unexpected")));
}

TEST(Interleaved, the_first_step_ends_with_the_line_that_the_candidate_names) {
  const ScratchDir scratch;
  Candidate candidate{
      "late", "", {"sh", "-c", "echo step x; sleep 0.2; echo step y; exec sleep 60"}};
  candidate.begins = "step ";
  const BenchmarkResult result = time_to_first_step({candidate}, 2, scratch / "run");
  ASSERT_EQ(result.finished.size(), 1u);
  ASSERT_EQ(result.finished.front().seconds.size(), 2u);
  for (const double seconds : result.finished.front().seconds) {
    EXPECT_GT(seconds, 0.2);
    EXPECT_LT(seconds, 30);
  }
}

TEST(Measure, the_peak_of_memory_remains_after_the_memory_is_gone) {
  if (test::kKeepsFreedMemory) GTEST_SKIP() << "the sanitizer keeps what was freed";
  const double before = process_memory().now;
  { const std::vector<char> block(100'000'000, 'x'); }
  const ProcessMemory after = process_memory();
  EXPECT_GT(before, 1e6);
  EXPECT_GT(after.peak, before + 90e6);
  EXPECT_LT(after.now, after.peak - 50e6);
}

}  // namespace
}  // namespace difftape::bench
