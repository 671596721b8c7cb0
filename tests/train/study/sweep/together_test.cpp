// A sweep by processes that mpirun started.
#include "train/study/sweep/together.h"

#include <gmock/gmock.h>

#include "tests/train/run/loop/mpirun.h"
#include "train/run/records/run_files.h"

namespace difftape::study {
namespace {

using test::contents;
using test::Outcome;
using testing::HasSubstr;

class SweepTogether : public test::Mpirun {
 protected:
  void sweep(Index steps) {
    project.config.train.checkpoint_interval = 50;
    project.config.train.eval_interval = 0;
    project.config.log.param_grad_norms_interval = 0;
    project.config.log.diagnostics_interval = 0;
    project.save();
    test::put(project / "s.yaml", fmt::format("base: tiny.yaml\n"
                                              "train: {{steps: {}}}\n"
                                              "sweep:\n"
                                              "  name: s\n"
                                              "  seeds: [1, 2, 3]\n"
                                              "  arms:\n"
                                              "    softmax: {{model.attention.kind: softmax}}\n"
                                              "    diff_v2: {{model.attention.kind: diff_v2}}\n",
                                              steps));
  }
  void expect_the_bits_of_one_process() {
    // A checkpoint knows where its run is.
    std::filesystem::rename(project / "out", project / "together");
    const Outcome alone = project.difftape({"sweep", "s.yaml", "--out", "out", "--jobs", "1"});
    EXPECT_EQ(alone.exit, 0) << alone.err;
    for (const char* arm : {"softmax", "diff_v2"}) {
      for (int seed = 1; seed <= 3; ++seed) {
        const std::string run = fmt::format("{}-seed{}", arm, seed);
        expect_the_same_bits("out/" + run, "together/" + run);
      }
    }
  }
};

TEST_F(SweepTogether, trains_every_run_once_and_compares_them) {
  sweep(6);
  const Outcome outcome = together(3, {"sweep", "s.yaml", "--out", "out", "--launcher", "mpi"});
  ASSERT_EQ(outcome.exit, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("6 runs are left to 3 processes"));
  std::size_t started = 0;
  for (std::size_t at = 0; (at = outcome.out.find(": started", at)) != std::string::npos; ++at)
    ++started;
  EXPECT_EQ(started, 6U) << outcome.out;
  EXPECT_TRUE(std::filesystem::exists(project / "out/report.html"));
  EXPECT_THAT(contents(project / "out/summary.txt"), HasSubstr("diff_v2"));
  const Outcome again = together(2, {"sweep", "s.yaml", "--out", "out", "--launcher", "mpi"});
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("0 runs are left to 2 processes"));
  expect_the_bits_of_one_process();
}

TEST_F(SweepTogether, goes_on_where_one_that_was_killed_ended_all) {
  sweep(150);
  // The second of them kills itself once a run of its own has a checkpoint.
  const Outcome killed =
      each({program_with("sweep s.yaml --out out --launcher mpi"),
            fmt::format("(for i in $(seq 600); do ls out/*/checkpoints/latest >/dev/null 2>&1 && "
                        "break; sleep 0.05; done; kill -KILL $$) & {}",
                        program_with("sweep s.yaml --out out --launcher mpi"))});
  EXPECT_NE(killed.exit, 0);
  const Outcome goes_on = together(2, {"sweep", "s.yaml", "--out", "out", "--launcher", "mpi"});
  ASSERT_EQ(goes_on.exit, 0) << goes_on.out << goes_on.err;
  EXPECT_THAT(goes_on.out, HasSubstr("continues at step"));
  expect_the_bits_of_one_process();
}

TEST_F(SweepTogether, says_which_run_failed_and_trains_the_others) {
  sweep(6);
  std::filesystem::create_directories(project / "out/softmax-seed2");
  test::put(project / "out/softmax-seed2/checkpoints", "in the way of a folder");
  const Outcome outcome = together(2, {"sweep", "s.yaml", "--out", "out", "--launcher", "mpi"});
  EXPECT_NE(outcome.exit, 0);
  EXPECT_THAT(outcome.out + outcome.err, HasSubstr("softmax-seed2"));
}

TEST_F(SweepTogether, is_asked_for_and_is_for_training_alone) {
  sweep(6);
  const Outcome unasked = together(2, {"sweep", "s.yaml", "--out", "out"});
  EXPECT_EQ(unasked.exit, 64);
  EXPECT_THAT(unasked.err, HasSubstr("--launcher mpi shares these between them"));
  EXPECT_FALSE(std::filesystem::exists(project / "out"));
  const Outcome compares =
      together(2, {"sweep", "s.yaml", "--out", "out", "--launcher", "mpi", "--compare"});
  EXPECT_EQ(compares.exit, 64);
  const Outcome unknown = project.difftape({"sweep", "s.yaml", "--launcher", "ssh"});
  EXPECT_EQ(unknown.exit, 64);
  EXPECT_EQ(unknown.err, "difftape: --launcher ssh: the only launcher known is mpi\n");
}

}  // namespace
}  // namespace difftape::study
