#include "core/attention/heads.h"

#include <numeric>

namespace difftape {

namespace {

/// Disjoint sets with path halving (Tarjan & van Leeuwen 1984).
class Sets {
 public:
  explicit Sets(Index count) : parent_(count) { std::iota(parent_.begin(), parent_.end(), 0); }
  Index find(Index i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(Index a, Index b) { parent_[find(b)] = find(a); }

 private:
  std::vector<Index> parent_;
};

}  // namespace

std::vector<std::vector<Index>> HeadMapping::groups() const {
  const Index count = heads_out();
  Sets sets(count + key_heads + value_heads);  // output heads, then key heads, then value heads
  for (Index i = 0; i < count; ++i) {
    for (Index map = 0; map < maps; ++map) {
      sets.join(i, count + outputs[i].key[map]);
      sets.join(i, count + key_heads + outputs[i].value[map]);
    }
  }
  std::vector<std::vector<Index>> by_root(count + key_heads + value_heads);
  for (Index i = 0; i < count; ++i) by_root[sets.find(i)].push_back(i);
  std::erase_if(by_root, [](const auto& group) { return group.empty(); });
  return by_root;
}

HeadMapping HeadMapping::standard(Index heads, Index kv_heads) {
  HeadMapping mapping{1, heads, kv_heads, kv_heads, {}};
  for (Index i = 0; i < heads; ++i) {
    const Index group = i / (heads / kv_heads);
    mapping.outputs.push_back({{i, i}, {group, group}, {group, group}});
  }
  return mapping;
}

HeadMapping HeadMapping::paired(Index heads, Index kv_heads) {
  HeadMapping mapping{2, heads, kv_heads, kv_heads / 2, {}};
  for (Index i = 0; i < heads / 2; ++i) {
    const Index group = i / (heads / kv_heads);
    mapping.outputs.push_back({{2 * i, 2 * i + 1}, {2 * group, 2 * group + 1}, {group, group}});
  }
  return mapping;
}

HeadMapping HeadMapping::doubled(Index heads, Index kv_heads, bool split_half) {
  HeadMapping mapping{2, 2 * heads, kv_heads, kv_heads, {}};
  const Index group_size = 2 * heads / kv_heads;  // query heads per key head
  for (Index i = 0; i < heads; ++i) {
    const Index first = split_half ? i : 2 * i, second = split_half ? i + heads : 2 * i + 1;
    const std::array<Index, 2> kv{first / group_size, second / group_size};
    mapping.outputs.push_back({{first, second}, kv, kv});
  }
  return mapping;
}

}  // namespace difftape
