// What people write who got differential attention wrong, and the error that says what to write
// instead. The mathematics of each is in tests/layers/common_pitfalls_test.cpp.
#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

using testing::HasSubstr;
using CommonPitfalls = ConfigFiles;

TEST_F(CommonPitfalls, an_odd_or_halved_head_count_is_told_what_num_heads_means) {
  EXPECT_THAT(error("model: {d_model: 96, num_heads: 3, attention: {kind: diff_v1}}\n"),
              HasSubstr("num_heads is always the baseline's head count: its pairs follow from it"));
  EXPECT_THAT(error("model: {num_diff_heads: 2}\n"),
              HasSubstr("unknown key 'model.num_diff_heads'"));
}

TEST_F(CommonPitfalls,
       pairing_where_there_are_no_choices_is_an_error_that_names_the_kind_with_them) {
  EXPECT_EQ(error("model: {attention: {kind: diff_v1, pairing: split_half}}\n"),
            "a.yaml:1:36: error: model.attention.pairing: the pairs of diff_v1 are heads 2i and "
            "2i+1 of queries and keys; another choice would only rename them. Write kind: diff_v2, "
            "where pairing decides which key head each map reads, or leave it out");
  EXPECT_THAT(
      error("model: {attention: {pairing: split_half}}\n"),
      HasSubstr("softmax has one softmax map a head, so there is nothing to subtract; write "
                "kind: diff_v2"));
}

TEST_F(CommonPitfalls, halves_of_one_group_are_an_error_because_they_change_only_names) {
  EXPECT_THAT(error("model: {num_kv_heads: 1, attention: {kind: diff_v2, pairing: split_half}}\n"),
              HasSubstr("with one key head all query heads are of one group"));
}

TEST_F(CommonPitfalls, a_kind_without_what_makes_it_is_told_that_it_is_softmax) {
  EXPECT_THAT(error("model: {attention: {kind: gated, gate: none}}\n"),
              HasSubstr("without what makes it gated, this is softmax; write kind: softmax"));
}

TEST_F(CommonPitfalls, v1_with_one_key_head_is_an_error_because_its_maps_need_two) {
  EXPECT_THAT(
      error("model: {num_kv_heads: 1, attention: {kind: diff_v1}}\n"),
      HasSubstr("diff_v1 pairs the key and value heads of the baseline, but num_kv_heads is "
                "1; need an even number"));
}

TEST_F(CommonPitfalls, lambda_of_one_map_and_its_init_without_the_exponential_are_errors) {
  EXPECT_THAT(error("model: {attention: {lambda: sigmoid}}\n"),
              HasSubstr("write kind: diff_v1 or diff_v2, or leave out lambda"));
  EXPECT_THAT(error("model: {attention: {kind: diff_v2, lambda_init: constant}}\n"),
              HasSubstr("lambda_init is the constant in V1's exponential lambda, and this variant "
                        "has none; write lambda: exponential"));
}

TEST_F(CommonPitfalls, a_value_of_lambda_init_without_constant_is_an_error) {
  EXPECT_THAT(error("model: {attention: {kind: diff_v1, lambda_init_value: 0.5}}\n"),
              HasSubstr("the value is used with lambda_init: constant only; write that too"));
  EXPECT_EQ(config("model: {attention: {kind: diff_v1, lambda_init: constant, lambda_init_value: "
                   "0.5}}\n")
                .model.attention.lambda_init_value,
            0.5);
}

TEST_F(CommonPitfalls, the_norm_is_asked_for_by_the_name_of_the_reference_code) {
  EXPECT_EQ(config("model: {attention: {kind: diff_v1, subln: false}}\n").model.attention.subln,
            false);
  EXPECT_THAT(error("model: {attention: {kind: diff_v1, subnl: false}}\n"),
              HasSubstr("did you mean 'model.attention.subln'?"));
}

}  // namespace
}  // namespace difftape::run
