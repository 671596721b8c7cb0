#include "core/attention/heads.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

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

void require_groups(Index heads, Index kv_heads) {
  require_shape(heads > 0 && kv_heads > 0 && heads % kv_heads == 0, "attention",
                "{} heads read {} key and value heads; need a number that divides them", heads,
                kv_heads);
}

}  // namespace

void HeadMapping::require_valid() const {
  require_shape((maps == 1 || maps == 2) && !outputs.empty(), "attention",
                "the mapping has {} maps and {} output heads; need 1 or 2 maps, 1 or more heads",
                maps, heads_out());
  std::vector<bool> read(std::max<Index>(query_heads, 0));
  for (Index i = 0; i < heads_out(); ++i) {
    for (Index map = 0; map < maps; ++map) {
      const Index query = outputs[i].query[map], key = outputs[i].key[map],
                  value = outputs[i].value[map];
      const auto exists = [](Index head, Index count) { return 0 <= head && head < count; };
      require_shape(
          exists(query, query_heads) && exists(key, key_heads) && exists(value, value_heads),
          "attention",
          "map {} of output head {} reads query head {} of {}, key head {} of {}, value head {} of "
          "{}; need heads that exist",
          map, i, query, query_heads, key, key_heads, value, value_heads);
      require_shape(!read[query], "attention",
                    "query head {} is read twice; need one map for each query head", query);
      read[query] = true;
    }
  }
}

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
  require_groups(heads, kv_heads);
  HeadMapping mapping{1, heads, kv_heads, kv_heads, {}};
  for (Index i = 0; i < heads; ++i) {
    const Index group = i / (heads / kv_heads);
    mapping.outputs.push_back({{i, i}, {group, group}, {group, group}});
  }
  return mapping;
}

HeadMapping HeadMapping::paired(Index heads, Index kv_heads) {
  require_groups(heads, kv_heads);
  require_shape(heads % 2 == 0 && kv_heads % 2 == 0, "attention",
                "{} heads and {} key and value heads are to be paired; need even numbers", heads,
                kv_heads);
  HeadMapping mapping{2, heads, kv_heads, kv_heads / 2, {}};
  for (Index i = 0; i < heads / 2; ++i) {
    const Index group = i / (heads / kv_heads);
    mapping.outputs.push_back({{2 * i, 2 * i + 1}, {2 * group, 2 * group + 1}, {group, group}});
  }
  return mapping;
}

HeadMapping HeadMapping::doubled(Index heads, Index kv_heads, bool split_half) {
  require_groups(heads, kv_heads);
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
