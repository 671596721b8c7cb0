#include "core/tensor.h"

#include "core/name_scope.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Shape, rejects_more_elements_than_an_index_can_count) {
  const Index many = Index{1} << 31;
  EXPECT_THAT(
      [&] {
        Shape({many, many, 2});
      },
      ThrowsMessage<ShapeError>(HasSubstr("more elements than memory can have")));
  EXPECT_THROW(Shape({many, 2}).with(1, many), ShapeError);
  EXPECT_EQ(Shape({many, 0, many, many}).size(), 0);
}

TEST(Shape, counts_elements_and_rows_and_prints_as_a_tuple) {
  const Shape shape{2, 3, 4};
  EXPECT_EQ(shape.size(), 24);
  EXPECT_EQ(shape.rows(), 6);
  EXPECT_EQ(shape[-1], 4);
  EXPECT_EQ(shape.with(1, 7), (Shape{2, 7, 4}));
  EXPECT_EQ(shape.str(), "(2, 3, 4)");
  EXPECT_EQ(Shape{}.size(), 1);
}

TEST(Shape, refuses_negative_extents_and_too_many_axes) {
  EXPECT_THROW((Shape{2, -1}), ShapeError);
  EXPECT_THROW((Shape{1, 1, 1, 1, 1, 1}), ShapeError);
}

TEST(Tensor, memory_is_aligned_to_64_bytes) {
  for (Index n : {1, 3, 17, 1000}) {
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Tensor::empty({n}).data()) % 64, 0u);
  }
}

TEST(Tensor, copies_share_memory_and_clones_do_not) {
  Tensor a = Tensor::full({4}, 1);
  Tensor shared = a;
  const Tensor cloned = a.clone();
  shared.data()[2] = 5;
  EXPECT_EQ(a.data()[2], 5);
  EXPECT_EQ(cloned.data()[2], 1);
  EXPECT_FALSE(a.unique());
  EXPECT_TRUE(cloned.unique());
}

TEST(Tensor, reshape_keeps_the_elements_and_rejects_another_size) {
  const Tensor a = Tensor::from({2, 3}, std::vector<real>{1, 2, 3, 4, 5, 6});
  EXPECT_EQ(a.reshaped({3, 2}).row(1)[0], 3);
  EXPECT_EQ(message_of<ShapeError>([&] {
              a.reshaped({4, 2});
            }),
            "reshape: (2, 3) has 6 elements, (4, 2) has 8; need equal numbers");
}

TEST(Tensor, slice_shares_the_memory_of_its_elements) {
  Tensor a = Tensor::from({2, 3}, std::vector<real>{1, 2, 3, 4, 5, 6});
  Tensor middle = a.slice(2, 3);
  EXPECT_EQ(middle.shape(), Shape{3});
  EXPECT_THAT(middle.values(), ElementsAre(3, 4, 5));
  middle.fill(0);
  EXPECT_THAT(a.values(), ElementsAre(1, 2, 0, 0, 0, 6));
  EXPECT_EQ(message_of<ShapeError>([&] { a.slice(4, 3); }),
            "slice: (2, 3) has 6 elements; need at least 4 + 3");
}

TEST(Tensor, all_finite_finds_one_bad_element_anywhere) {
  Tensor a = Tensor::zeros({100000});
  EXPECT_TRUE(a.all_finite());
  for (const real bad :
       {std::numeric_limits<real>::quiet_NaN(), -std::numeric_limits<real>::infinity()}) {
    a.data()[99999] = bad;
    EXPECT_FALSE(a.all_finite());
  }
}

TEST(Error, ends_with_the_innermost_open_scope) {
  const NameScope outer("model.layers.2");
  const auto fails = [] {
    const NameScope inner("model.layers.2.self_attn.q_proj");
    require_shape(false, "matmul", "inner sizes differ: a is {}", Shape{8, 64}.str());
  };
  EXPECT_EQ(message_of<ShapeError>(fails),
            "matmul: inner sizes differ: a is (8, 64)\nin model.layers.2.self_attn.q_proj");
  EXPECT_EQ(NameScope::current(), "model.layers.2");
}

}  // namespace
}  // namespace difftape
