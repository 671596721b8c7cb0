#include "train/run/records/attention_maps.h"

#include <string>

#include "train/run/records/h5.h"

namespace difftape::run {

void write_attention_maps(const std::filesystem::path& path, const AttentionMaps& maps) {
  h5::File file = h5::File::create(path);
  file.set_attribute("/", "step", maps.step);
  for (std::size_t layer = 0; layer < maps.layers.size(); ++layer) {
    const Tensor& map = maps.layers[layer];
    const std::vector<float> values(map.values().begin(), map.values().end());
    file.write<float>(std::to_string(layer), map.shape(), values);
  }
  file.save();
}

AttentionMaps read_attention_maps(const std::filesystem::path& path) {
  const h5::File file = h5::File::open(path);
  AttentionMaps maps{file.int_attribute("/", "step"), {}};
  const std::size_t layers = file.children("/").size();
  for (std::size_t layer = 0; layer < layers; ++layer) {
    Tensor map = Tensor::empty(file.shape(std::to_string(layer)));
    file.read<real>(std::to_string(layer), map.values());
    maps.layers.push_back(std::move(map));
  }
  return maps;
}

}  // namespace difftape::run
