// Rules between keys. Each error is reported at the key that was given last.
#include "train/run/config/reader.h"

#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

using ConfigRules = ConfigFiles;
using CommonPitfalls = ConfigFiles;

TEST_F(ConfigRules, num_heads_divides_d_model_unless_head_dim_is_given) {
  EXPECT_EQ(error("model: {num_heads: 7}\n"),
            "a.yaml:1:9: error: model.num_heads: num_heads 7 does not divide d_model 128; change "
            "one of them, or set model.head_dim");
  EXPECT_EQ(error("model: {num_heads: 8}\n", {"model.d_model=100"}),
            "--set model.d_model=100: error: model.d_model: num_heads 8 does not divide d_model "
            "100; change one of them, or set model.head_dim");
  EXPECT_EQ(config("model: {num_heads: 7, head_dim: 16}\n").model.head_dim, 16);
}

TEST_F(ConfigRules, head_dim_is_even) {
  EXPECT_EQ(error("model.head_dim: 33\n"),
            "a.yaml:1:1: error: model.head_dim: head_dim is 33; need an even number, because RoPE "
            "rotates pairs of features; or set model.rope: false");
  EXPECT_EQ(error("model: {d_model: 60, num_heads: 4}\n"),
            "a.yaml:1:22: error: model.num_heads: head_dim is 15 (d_model / num_heads); need an "
            "even number, because RoPE rotates pairs of features; or set model.rope: false");
  EXPECT_EQ(config("model: {head_dim: 33, rope: false}\n").model.head_dim, 33);
}

TEST_F(ConfigRules, num_kv_heads_divides_num_heads) {
  EXPECT_EQ(error("model.num_kv_heads: 3\n"),
            "a.yaml:1:1: error: model.num_kv_heads: num_kv_heads 3 does not divide num_heads 4 "
            "into groups of equal size; change one of them");
  EXPECT_EQ(error("model.num_kv_heads: 8\n"),
            "a.yaml:1:1: error: model.num_kv_heads: num_kv_heads 8 does not divide num_heads 4 "
            "into groups of equal size; change one of them");
  EXPECT_EQ(config("model.num_kv_heads: 1\n").model.num_kv_heads, 1);
}

TEST_F(ConfigRules, diff_v1_needs_heads_in_pairs) {
  EXPECT_EQ(error("model: {num_heads: 1, attention: {kind: diff_v1}}\n"),
            "a.yaml:1:35: error: model.attention.kind: diff_v1 pairs the heads of the baseline, "
            "but num_heads is 1; need an even number. num_heads counts the heads of the softmax "
            "baseline for every kind");
  EXPECT_EQ(error("model: {attention: {kind: diff_v1}, num_kv_heads: 1}\n"),
            "a.yaml:1:37: error: model.num_kv_heads: diff_v1 pairs the key and value heads of the "
            "baseline, but num_kv_heads is 1; need an even number");
  EXPECT_EQ(config("model: {num_heads: 1, attention: {kind: diff_v2}}\n").model.num_heads, 1);
}

TEST_F(ConfigRules, the_run_name_is_one_path_component) {
  for (const std::string name : {"a/b", "..", ".", "", "a\\tb"}) {
    EXPECT_THAT(error("run.name: \"" + name + "\"\n"),
                MatchesRegex("a.yaml:1:1: error: run.name: '.*' is not a valid folder "
                             "name; need one word without '/'; set the path with run.out"))
        << name;
  }
  EXPECT_EQ(config("run.name: ..a b\n").run.name, "..a b");
}

TEST_F(ConfigRules, independent_weight_decay_is_below_one) {
  EXPECT_EQ(error("optim: {independent_weight_decay: true, weight_decay: 1}\n"),
            "a.yaml:1:41: error: optim.weight_decay: weight_decay 1 is the fraction of each weight "
            "that one step removes, since it is independent of the learning rate; need less than "
            "1, such as 1e-4");
  EXPECT_EQ(
      config("optim: {independent_weight_decay: false, weight_decay: 1}\n").optim.weight_decay, 1);
  EXPECT_TRUE(config("optim.independent_weight_decay: true\n").optim.independent_weight_decay);
}

TEST_F(ConfigRules, sequences_fit_the_model) {
  EXPECT_EQ(error("model.max_seq_len: 256\ndata.seq_len: 512\n"),
            "a.yaml:2:1: error: data.seq_len: seq_len 512 is longer than model.max_seq_len 256; "
            "lower data.seq_len or raise model.max_seq_len");
  EXPECT_EQ(config("data.seq_len: 256\n").data.seq_len, 256);
}

TEST_F(ConfigRules, all_impossible_sizes_of_a_task_are_reported_where_they_were_given) {
  EXPECT_EQ(
      error("data: {type: mqar, mqar.pairs: 65}\nmodel.vocab_size: 127\n"),
      "a.yaml:1:20: error: data.mqar.pairs: 65 pairs and their queries take 260 tokens, but "
      "seq_len is 256; lower data.mqar.pairs or raise data.seq_len\na.yaml:1:20: error: "
      "data.mqar.pairs: 65 pairs need as many different keys, but there are 64; raise "
      "data.mqar.keys\na.yaml:1:20: error: data.mqar.pairs: 65 pairs need as many different "
      "values, but there are 64; raise data.mqar.values\na.yaml:2:1: error: model.vocab_size: "
      "vocab_size is 127, but data.type 'mqar' with these sizes needs at least 128; raise it");
  EXPECT_EQ(error("data.type: tokens\n"),
            "a.yaml:1:1: error: data.type: data.type tokens needs token files; set data.path to "
            ".bin files of nanoGPT or llm.c, or to .h5 files");
  EXPECT_EQ(config("data: {mqar.pairs: 1000}\n").data.type, DataKind::text)
      << "keys of other types are not checked";
}

TEST_F(ConfigRules, a_soft_cap_is_not_too_small) {
  EXPECT_EQ(
      error("model: {final_logit_softcap: 1.0e-50, attention.attn_logit_softcap: 0.0001}\n"),
      "a.yaml:1:9: error: model.final_logit_softcap: 1e-50 is too small; need 0 (no cap) or at "
      "least 0.001\n"
      "a.yaml:1:39: error: model.attention.attn_logit_softcap: 0.0001 is too small; need 0 (no "
      "cap) or at least 0.001");
  EXPECT_EQ(config("model: {final_logit_softcap: 30}\n").model.final_logit_softcap, 30);
}

TEST_F(ConfigRules, selected_blocks_must_exist_and_fit) {
  const auto rejected = [&](const std::string& keys, int column, const std::string& message) {
    EXPECT_EQ(error("model.attention: {" + keys + "}\n"),
              fmt::format("a.yaml:1:{}: error: model.attention.{}", column, message));
  };
  rejected("num_selected_blocks: 2, block_size: 20", 43,
           "block_size: block_size is 20, but must be a multiple of 16; write 32");
  rejected("block_size: 64", 19,
           "block_size: with block_size 64 a query reads a number of blocks; write "
           "num_selected_blocks: 1 (its own) or more, or block_size: 0 for dense attention");
  const std::string dense =
      "dense attention has no blocks to select; write block_size, such as 64, or leave out "
      "num_selected_blocks and block_selection";
  rejected("num_selected_blocks: 2", 19, "num_selected_blocks: " + dense);
  rejected("block_selection: separately", 19, "block_selection: " + dense);
  rejected("block_size: 64, num_selected_blocks: 2, block_selection: separately", 59,
           "block_selection: with one softmax map per head there is no second map to select blocks "
           "for; write block_selection: averaged, or kind: diff_v1 or diff_v2");
  rejected(
      "num_selected_blocks: 1, block_size: 320", 43,
      "block_size: block_size 320 is longer than data.seq_len 256; lower block_size, or set it "
      "to 0 for dense attention");
  rejected(
      "block_size: 48, num_selected_blocks: 7", 35,
      "num_selected_blocks: num_selected_blocks is 7, but data.seq_len 256 has 6 blocks of 48; "
      "lower it, or set block_size: 0 for dense attention");
  EXPECT_EQ(config("model.attention: {block_size: 48, num_selected_blocks: 6}\n")
                .model.attention.block_size,
            48);
}

TEST_F(ConfigRules, a_window_beyond_the_sequence_is_a_warning) {
  EXPECT_THAT(warnings_of(config("model.attention.sliding_window: 256\n")), IsEmpty());
  EXPECT_THAT(
      warnings_of(config("model.attention.sliding_window: 4096\n")),
      ElementsAre(
          "model.attention.sliding_window is 4096, longer than data.seq_len 256, so training "
          "hides no token; write a shorter window, or 0"));
}

TEST_F(ConfigRules, weight_decay_in_the_meaning_of_pytorch_is_a_warning) {
  EXPECT_THAT(warnings_of(config("optim.weight_decay: 0.01\n")), IsEmpty());
  EXPECT_THAT(warnings_of(config("optim: {weight_decay: 0.1, independent_weight_decay: false}\n")),
              IsEmpty());
  EXPECT_THAT(
      warnings_of(config("optim.weight_decay: 0.1\n")),
      ElementsAre("optim.weight_decay is 0.1, so each step at the peak learning rate removes 10 % "
                  "of every weight; write about 1e-4, or optim.independent_weight_decay: false, "
                  "with which a step removes lr times 0.1, as in PyTorch"));
}

TEST_F(ConfigRules, a_router_that_cannot_learn_is_a_warning) {
  const std::string moe = "model.moe: {num_experts: 4, moe_intermediate_size: 8, ";
  EXPECT_THAT(warnings_of(config(moe + "num_experts_per_tok: 2}\n")), IsEmpty());
  EXPECT_THAT(
      warnings_of(config(moe + "num_experts_per_tok: 1}\n")),
      ElementsAre(HasSubstr("so the router does not learn from the loss; write 2 or more")));
}

TEST_F(ConfigRules, qk_clip_is_rejected_with_keys_that_change_the_logits) {
  EXPECT_EQ(error("model.attention: {qk_clip_threshold: 100, qk_norm: true}\n"),
            "a.yaml:1:43: error: model.attention.qk_norm: qk_norm undoes the scaling of query and "
            "key weights by QK-clip, and bounds the logits itself; leave out one of them");
  EXPECT_EQ(error("model.attention: {qk_clip_threshold: 100, attn_logit_softcap: 50}\n"),
            "a.yaml:1:43: error: model.attention.attn_logit_softcap: QK-clip needs unbounded "
            "logits, and attn_logit_softcap bounds them; leave out one of them");
  EXPECT_EQ(error("model.attention: {qk_clip_threshold: 100, kind: sink}\n"),
            "a.yaml:1:43: error: model.attention.kind: QK-clip cannot separate the largest logit "
            "of a row from the learned sink; write softmax_denominator: softmax or softmax1, or "
            "leave out qk_clip_threshold");
  EXPECT_EQ(error("model.attention.qk_clip_threshold: -1\n"),
            "a.yaml:1:36: error: model.attention.qk_clip_threshold: -1 is out of range; need >= 0");
  EXPECT_EQ(config("model.attention: {qk_clip_threshold: 100, kind: softmax1}\n")
                .model.attention.qk_clip_threshold,
            100);
}

TEST_F(ConfigRules, a_cross_decoder_needs_a_self_decoder_with_a_window) {
  EXPECT_EQ(error("model: {yoco_self_layers: 4, num_layers: 4, attention: {sliding_window: 9}}\n"),
            "a.yaml:1:30: error: model.num_layers: 4 layers of the self-decoder leave none of "
            "num_layers 4 to the cross-decoder; write model.yoco_self_layers below num_layers, "
            "such as half of it, or 0 for an ordinary decoder");
  EXPECT_EQ(error("model: {yoco_self_layers: 2, attention: {sliding_window: 9, block_size: 16, "
                  "num_selected_blocks: 2}}\n"),
            "a.yaml:1:61: error: model.attention.block_size: a prompt runs the cross-decoder for "
            "its last token only, but the first token of a block selects its blocks; write "
            "model.attention.block_size: 0 or model.yoco_self_layers: 0");
  EXPECT_EQ(error("model.yoco_self_layers: 2\n"),
            "a.yaml:1:1: error: model.yoco_self_layers: the self-decoder needs a window; write "
            "model.attention.sliding_window, such as an eighth of data.seq_len, or "
            "model.yoco_self_layers: 0");
  EXPECT_EQ(error("model: {yoco_self_layers: 2, attention: {sliding_window: 65}}\n"
                  "data.seq_len: 64\n"),
            "a.yaml:2:1: error: data.seq_len: the self-decoder's window of 65 tokens is longer "
            "than data.seq_len 64; write a shorter window, such as 8, or raise data.seq_len");
  EXPECT_EQ(error("model.yoco_self_layers: -1\n"),
            "a.yaml:1:25: error: model.yoco_self_layers: -1 is out of range; need in [0, 1023]");
  EXPECT_EQ(config("model: {yoco_self_layers: 2, attention: {sliding_window: 64}}\n"
                   "data.seq_len: 64\n")
                .model.yoco_self_layers,
            2);
}

TEST_F(ConfigRules, rope_scaling_needs_a_factor_above_one_and_a_rule_that_uses_the_keys) {
  EXPECT_EQ(error("model.rope_scaling: {rope_type: yarn, factor: 0.5}\n"),
            "a.yaml:1:47: error: model.rope_scaling.factor: 0.5 is out of range; need >= 1");
  EXPECT_EQ(error("model.rope_scaling.rope_type: yarn\n"),
            "a.yaml:1:1: error: model.rope_scaling.rope_type: a factor of 1 scales nothing; write "
            "the ratio of the new to the trained sequence length, such as 4");
  EXPECT_EQ(
      error("model.rope_scaling: {factor: 4, attention_factor: 2}\n"),
      "a.yaml:1:22: error: model.rope_scaling.factor: has no effect with rope_type none; write "
      "model.rope_scaling.rope_type: linear, ntk or yarn, or leave it out\na.yaml:1:33: error: "
      "model.rope_scaling.attention_factor: has no effect with rope_type none; leave it out");
  EXPECT_EQ(error("model: {rope_scaling: {rope_type: ntk, factor: 4, original_seq_len: 64}}\n"),
            "a.yaml:1:51: error: model.rope_scaling.original_seq_len: is only used with "
            "model.rope_scaling.rope_type: yarn; leave it out");
  EXPECT_EQ(error("model: {rope: false, rope_scaling: {rope_type: ntk, factor: 4}}\n"),
            "a.yaml:1:37: error: model.rope_scaling.rope_type: model.rope is false, so there are "
            "no frequencies to scale; leave it out, or write model.rope: true");
  const ModelConfig model =
      config("model: {max_seq_len: 1000, rope_scaling: {rope_type: yarn, factor: 4}}\n").model;
  EXPECT_EQ(rope_rule(model).scaling.original_seq_len, 250);
}

TEST_F(ConfigRules, a_validation_of_needles_covers_every_setting_at_every_depth) {
  EXPECT_EQ(error("data: {type: needles, batch_size: 4}\ntrain.eval_batches: 4\n"),
            "a.yaml:2:1: error: train.eval_batches: one validation reads 16 sequences, but needles "
            "needs at least 20, one at each depth for each of 4 settings; raise train.eval_batches "
            "or data.batch_size");
  EXPECT_EQ(config("data: {type: needles, batch_size: 5}\ntrain.eval_batches: 4\n").data.type,
            DataKind::needles);
}

TEST_F(ConfigRules, the_learning_rate_falls_from_its_peak) {
  EXPECT_EQ(error("optim.min_lr: 1.0e-4\noptim.lr: 1.0e-5\n"),
            "a.yaml:2:1: error: optim.lr: min_lr 0.0001 is above the peak lr 1e-05; lower "
            "optim.min_lr or raise optim.lr");
  EXPECT_EQ(config("optim: {lr: 0.1, min_lr: 0.1}\n").optim.min_lr, 0.1);
}

TEST_F(ConfigRules, warm_up_ends_within_the_run) {
  EXPECT_EQ(error("optim.warmup_steps: 50\ntrain.steps: 49\n"),
            "a.yaml:2:1: error: train.steps: warm-up takes 50 steps, but the run has 49; lower "
            "optim.warmup_steps, for example to 10%, or raise train.steps");
  EXPECT_EQ(config("optim.warmup_steps: 50\ntrain.steps: 50\n").train.steps, 50);
}

TEST_F(ConfigRules, a_rule_is_skipped_if_one_of_its_keys_cannot_be_read) {
  EXPECT_EQ(error("model: {num_heads: 7, d_model: x}\n"),
            "a.yaml:1:32: error: model.d_model: expected an integer, got 'x'");
  EXPECT_EQ(error("model: {num_heads: 7, d_modl: 70}\n"),
            "a.yaml:1:23: error: unknown key 'model.d_modl'; did you mean 'model.d_model'?");
  EXPECT_EQ(error("base: gone.yaml\nmodel: {num_heads: 7}\n"),
            "a.yaml:1:7: error: base: gone.yaml: no such file");
}

TEST_F(CommonPitfalls, a_halved_head_count_is_not_a_key) {
  EXPECT_THAT(error("model: {num_diff_heads: 2}\n"),
              HasSubstr("unknown key 'model.num_diff_heads'"));
}

TEST_F(CommonPitfalls, pairing_in_a_kind_without_choices_is_an_error_that_names_diff_v2) {
  EXPECT_EQ(error("model: {attention: {kind: diff_v1, pairing: split_half}}\n"),
            "a.yaml:1:36: error: model.attention.pairing: diff_v1 pairs query heads 2i and 2i+1 "
            "with key heads 2i and 2i+1; another pairing only renames them. Write kind: diff_v2, "
            "where pairing selects the key head of each map, or leave it out");
  EXPECT_THAT(
      error("model: {attention: {pairing: split_half}}\n"),
      HasSubstr("softmax has one softmax map per head, so there is nothing to subtract; write "
                "kind: diff_v2"));
}

TEST_F(CommonPitfalls, split_half_with_one_group_is_an_error_because_it_only_renames_heads) {
  EXPECT_THAT(error("model: {num_kv_heads: 1, attention: {kind: diff_v2, pairing: split_half}}\n"),
              HasSubstr("with one key head, all query heads are in one group"));
}

TEST_F(CommonPitfalls, a_kind_without_its_gate_or_sink_is_reported_to_equal_softmax) {
  EXPECT_THAT(error("model: {attention: {kind: gated, gate: none}}\n"),
              HasSubstr("without its gate or sink, gated equals softmax; write kind: softmax"));
}

TEST_F(CommonPitfalls, lambda_with_one_map_and_lambda_init_without_the_exponential_are_errors) {
  EXPECT_THAT(error("model: {attention: {lambda: sigmoid}}\n"),
              HasSubstr("write kind: diff_v1 or diff_v2, or leave out lambda"));
  EXPECT_THAT(error("model: {attention: {kind: diff_v2, lambda_init: constant}}\n"),
              HasSubstr("lambda_init is the constant term of V1's exponential lambda, which this "
                        "variant does not use; write lambda: exponential"));
}

TEST_F(CommonPitfalls, lambda_init_value_without_constant_is_an_error) {
  EXPECT_THAT(
      error("model: {attention: {kind: diff_v1, lambda_init_value: 0.5}}\n"),
      HasSubstr("lambda_init_value is only used with lambda_init: constant; write that too"));
  EXPECT_EQ(config("model: {attention: {kind: diff_v1, lambda_init: constant, lambda_init_value: "
                   "0.5}}\n")
                .model.attention.lambda_init_value,
            0.5);
}

TEST_F(CommonPitfalls, the_norm_has_the_name_of_the_reference_code) {
  EXPECT_EQ(config("model: {attention: {kind: diff_v1, subln: false}}\n").model.attention.subln,
            false);
  EXPECT_THAT(error("model: {attention: {kind: diff_v1, subnl: false}}\n"),
              HasSubstr("did you mean 'model.attention.subln'?"));
}

}  // namespace
}  // namespace difftape::run
