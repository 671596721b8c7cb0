// The configurations that torch_gpt.py can train.
#include "bench/candidates.h"

#include "core/gemm_backend.h"
#include "tests/support/test.h"
#include "tests/support/threads.h"

namespace difftape::bench {
namespace {

/// Why PyTorch is left out of the steps of a shipped configuration with these overrides.
std::vector<std::string> left_out(const std::vector<std::string>& overrides) {
  Selection selection;
  selection.names = {"torch"};
  selection.python = "python3";
  const std::string config = DIFFTAPE_TEST_SOURCE_DIR "/configs/bench/d384.yaml";
  const Entries entries = training_entries({config, overrides, ""}, selection);
  EXPECT_EQ(entries.candidates.empty(), !entries.left_out.empty());
  return entries.left_out;
}

TEST(TorchCandidate, takes_sizes_its_kinds_and_numbers_that_cost_no_time) {
  EXPECT_THAT(left_out({}), IsEmpty());
  EXPECT_THAT(left_out({"model.d_model=128", "model.head_dim=32", "model.num_kv_heads=2",
                        "model.tie_word_embeddings=true", "model.rope_theta=500000.0"}),
              IsEmpty());
  EXPECT_THAT(left_out({"optim.lr=0.1", "optim.schedule=wsd", "optim.weight_decay=0",
                        "optim.independent_weight_decay=false", "train.steps=60",
                        "log.diagnostics_interval=0", "run.seed=2"}),
              IsEmpty());
  EXPECT_THAT(left_out({"model.attention.kind=diff_v2", "model.match_params=true"}), IsEmpty());
  EXPECT_THAT(left_out({"model.attention.kind=diff_v1", "model.attention.subln=true"}), IsEmpty())
      << "a field that says what the kind has anyway";
}

TEST(TorchCandidate, is_left_out_with_the_first_unsupported_key) {
  for (const std::string with :
       {"model.rope=false", "model.embedding_norm=true", "model.z_loss_weight=0.5",
        "model.final_logit_softcap=30", "model.attention.kind=gated", "model.attention.gate=head",
        "model.attention.qk_norm=true", "model.attention.attn_logit_softcap=50",
        "model.attention.qk_clip_threshold=100", "model.attention.sliding_window=64",
        "model.init.preset=torch", "data.type=mqar", "data.eos_token_id=10", "optim.name=muon",
        "train.gradient_accumulation_steps=2", "train.activation_checkpointing=blocks"}) {
    std::string reason = with;
    reason.replace(with.find('='), 1, ": ");
    EXPECT_THAT(left_out({with}), ElementsAre("PyTorch: its script has no " + reason));
  }
}

TEST(TorchCandidate, in_bfloat16_needs_a_processor_with_its_units) {
  Selection selection;
  selection.names = {"torch-bf16"};
  selection.python = "python3";
  const auto entries =
      training_entries({DIFFTAPE_TEST_SOURCE_DIR "/configs/bench/d384.yaml", {}, ""}, selection);
  const std::string why = unsupported_reason(Precision::bf16);
  EXPECT_EQ(entries.candidates.empty(), !why.empty());
  EXPECT_THAT(entries.left_out, why.empty()
                                    ? std::vector<std::string>{}
                                    : std::vector<std::string>{"PyTorch bf16 eager: " + why});
}

TEST(SeveralProcesses, are_started_by_mpirun_and_share_the_threads) {
  const test::Threads four(4);
  Selection selection;
  selection.names = {"ours"};
  selection.processes = 2;
  const auto entries =
      training_entries({DIFFTAPE_TEST_SOURCE_DIR "/configs/bench/d384.yaml", {}, ""}, selection);
  ASSERT_EQ(entries.candidates.size(), 2u);
  const Candidate& two = entries.candidates.back();
  EXPECT_EQ(two.name, "difftape f32, 2 x 2 threads");
  EXPECT_EQ(two.processes, 2);
  EXPECT_EQ(fmt::format("{}", fmt::join(two.command, " ")),
            "env OMP_NUM_THREADS=2 mpirun --allow-run-as-root -n 2 --map-by slot:PE=2 " +
                fmt::format("{}", fmt::join(entries.candidates.front().command, " ")));
}

}  // namespace
}  // namespace difftape::bench
