#include "layers/attention/kinds.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Kinds, with_unknown_names_are_errors_that_list_the_known_ones) {
  EXPECT_THAT([] { AttentionKind("diff_v3"); },
              ThrowsMessage<ConfigError>(
                  HasSubstr("model.attention.kind: 'diff_v3' is not one of diff_v1, diff_v2")));
  EXPECT_FALSE(from_string<AttentionKind>("diff_v3"));
  EXPECT_EQ(from_string<AttentionKind>("diff_v2"), AttentionKind("diff_v2"));
}

TEST(Kinds, are_in_alphabetical_order_with_their_sources_and_differ_in_their_fields) {
  const std::vector<std::string> kinds = attention_kinds();
  EXPECT_TRUE(std::is_sorted(kinds.begin(), kinds.end()));
  for (const std::string& kind : kinds) {
    EXPECT_NE(AttentionKind(kind).entry().source, "");
    for (const std::string& other : kinds) {
      EXPECT_EQ(AttentionKind(kind).fields() == AttentionKind(other).fields(), kind == other);
    }
  }
}

TEST(Kinds, are_registered_under_a_word_that_is_free_and_with_a_source) {
  const auto expect_refused = [](const char* name, const char* source, const char* why) {
    EXPECT_THAT([&] { register_attention({.name = name, .source = source}); },
                ThrowsMessage<ConfigError>(HasSubstr(why)));
  };
  expect_refused("softmax", "me",
                 "register_attention: the kind 'softmax' exists; choose another name");
  expect_refused("My kind", "me", "lower-case letters");
  expect_refused("", "me", "lower-case letters");
  expect_refused("mine", "", "needs a source");
  EXPECT_FALSE(from_string<AttentionKind>("mine"));
}

TEST(Fields, have_names) {
  EXPECT_EQ(names<Gate>(), (std::vector<std::string>{"none", "elementwise", "head"}));
  EXPECT_EQ(to_string(LambdaKind::one), "none");
  EXPECT_EQ(from_string<Gate>("head"), Gate::head);
  EXPECT_FALSE(from_string<Gate>("both"));
}

TEST(Fields, of_equal_layers_are_equal) {
  AttentionConfig explicit_words{.kind = "diff_v2", .lambda = LambdaKind::sigmoid};
  explicit_words.lambda_init_value = 0.5;  // of no use without a constant lambda_init
  EXPECT_EQ(fields_of(explicit_words), fields_of({.kind = "diff_v2"}));
  EXPECT_NE(fields_of({.kind = "diff_v2", .qk_norm = true}), fields_of({.kind = "diff_v2"}));
  const AttentionConfig raw{.kind = "diff_v2", .lambda = LambdaKind::raw, .sliding_window = 7};
  EXPECT_EQ(fields_of(plain_kind("diff_v2", raw)),
            fields_of({.kind = "diff_v2", .sliding_window = 7}));
}

}  // namespace
}  // namespace difftape
