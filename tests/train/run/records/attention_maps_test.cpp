#include "train/run/records/attention_maps.h"

#include "tests/support/test.h"

namespace difftape::run {
namespace {

TEST(AttentionMaps, of_any_number_of_layers_read_back_in_single_precision) {
  const ScratchDir dir;
  AttentionMaps maps{50, {}};
  for (int layer = 0; layer < 11; ++layer)
    maps.layers.push_back(Tensor::full({2, 3, 4, 4}, real(layer) / 8));
  write_attention_maps(dir / "maps.h5", maps);
  const AttentionMaps found = read_attention_maps(dir / "maps.h5");
  EXPECT_EQ(found.step, 50);
  ASSERT_EQ(found.layers.size(), 11u);
  for (size_t layer = 0; layer < 11; ++layer) {
    EXPECT_EQ(found.layers[layer].shape(), (Shape{2, 3, 4, 4}));
    EXPECT_EQ(found.layers[layer].data()[95], real(layer) / 8);
  }
}

TEST(AttentionMaps, in_a_missing_directory_are_an_output_error) {
  const ScratchDir dir;
  const auto path = dir / "gone" / "maps.h5";
  EXPECT_THAT(
      [&] { write_attention_maps(path, {}); },
      ThrowsMessage<OutputError>("cannot write " + path.string() + ": No such file or directory"));
}

}  // namespace
}  // namespace difftape::run
