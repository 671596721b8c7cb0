// The wiring of heads.
#include "core/attention/heads.h"

#include "core/error.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(HeadMapping, grouped_queries_share_a_key_head_with_their_neighbors) {
  const HeadMapping mapping = HeadMapping::standard(6, 2);
  ASSERT_EQ(mapping.outputs.size(), 6u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(mapping.outputs[i].query[0], static_cast<Index>(i));
    EXPECT_EQ(mapping.outputs[i].key[0], i < 3 ? 0 : 1);
    EXPECT_EQ(mapping.outputs[i].value[0], i < 3 ? 0 : 1);
  }
}

TEST(HeadMapping, v1_pairs_neighbors_and_keeps_key_pairs_apart_under_grouping) {
  const HeadMapping mapping = HeadMapping::paired(8, 4);
  EXPECT_EQ(mapping.outputs.size(), 4u);
  EXPECT_EQ(mapping.value_heads, 2);
  EXPECT_THAT(mapping.outputs[1].query, ElementsAre(2, 3));
  EXPECT_THAT(mapping.outputs[1].key, ElementsAre(0, 1));
  EXPECT_THAT(mapping.outputs[2].key, ElementsAre(2, 3));
  EXPECT_THAT(mapping.outputs[3].value, ElementsAre(1, 1));
}

TEST(HeadMapping, v2_pairs_neighbors_of_one_group) {
  const HeadMapping mapping = HeadMapping::doubled(4, 2);
  EXPECT_EQ(mapping.query_heads, 8);
  EXPECT_EQ(mapping.outputs.size(), 4u);
  for (size_t i = 0; i < 4; ++i) {
    const Index head = static_cast<Index>(i);
    EXPECT_THAT(mapping.outputs[i].query, ElementsAre(2 * head, 2 * head + 1));
    EXPECT_THAT(mapping.outputs[i].key, ElementsAre(head / 2, head / 2));
  }
  EXPECT_EQ(mapping.groups().size(), 2u);
}

TEST(HeadMapping, heads_that_share_a_key_or_a_value_are_in_one_group) {
  HeadMapping mapping{1, 4, 3, 3, {}};
  mapping.outputs = {{{0, 0}, {0, 0}, {0, 0}},
                     {{1, 1}, {0, 0}, {1, 1}},   // the key of head 0
                     {{2, 2}, {1, 1}, {1, 1}},   // the value of head 1
                     {{3, 3}, {2, 2}, {2, 2}}};  // nothing
  EXPECT_THAT(mapping.groups(),
              testing::UnorderedElementsAre(ElementsAre(0, 1, 2), ElementsAre(3)));
}

TEST(HeadMapping, rejects_numbers_that_do_not_divide) {
  EXPECT_THROW(HeadMapping::standard(4, 3), ShapeError);
  EXPECT_THROW(HeadMapping::standard(4, 0), ShapeError);
  EXPECT_THROW(HeadMapping::doubled(3, 2), ShapeError);
  EXPECT_THROW(HeadMapping::paired(3, 3), ShapeError);
  EXPECT_THAT([] { HeadMapping::paired(6, 3); },
              ThrowsMessage<ShapeError>("attention: 6 heads and 3 key and value heads are to be "
                                        "paired; need even numbers"));
}

TEST(HeadMapping, rejects_heads_that_do_not_exist_and_queries_of_two_owners) {
  HeadMapping mapping = HeadMapping::standard(2, 1);
  mapping.require_valid();
  mapping.outputs[1].key[0] = 1;
  EXPECT_THAT([&] { mapping.require_valid(); },
              ThrowsMessage<ShapeError>(
                  "attention: map 0 of output head 1 reads query head 1 of 2, key head 1 of 1, "
                  "value head 0 of 1; need heads that exist"));
  mapping.outputs[1] = mapping.outputs[0];
  EXPECT_THAT([&] { mapping.require_valid(); },
              ThrowsMessage<ShapeError>("attention: query head 0 is read twice; need one map for "
                                        "each query head"));
}

}  // namespace
}  // namespace difftape
