#include "core/attention/selection.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

#include "core/attention/blocks.h"

namespace difftape {

namespace {

using attention::Head;
using attention::head_of;

/// The mean of each block of keys of one head, in double.
class PooledKeys {
 public:
  /// Pools keys [0, blocks * block_size).
  PooledKeys(const Head& keys, Index width, Index block_size, Index blocks)
      : keys_(keys), width_(width), size_(block_size), blocks_(blocks), means_(width * blocks) {
    for (Index j = 0; j < blocks; ++j) {
      const std::vector<double> mean = mean_of(j * size_, size_);
      for (Index d = 0; d < width; ++d) means_[d * blocks + j] = mean[d];
    }
  }

  /// Adds q . mean to the scores of the blocks from key `first` on. Keys before it are hidden.
  void add_scores(std::span<const double> q, Index first, std::span<double> scores) const {
    if (scores.empty()) return;
    const Index oldest = first / size_, hidden = first % size_;
    const std::vector<double> seen = mean_of(first, size_ - hidden);
    for (Index d = 0; d < width_; ++d) {
      scores[0] += q[d] * seen[d];
      const double* means = means_.data() + d * blocks_ + oldest;
      for (size_t i = 1; i < scores.size(); ++i) scores[i] += q[d] * means[i];
    }
  }

 private:
  std::vector<double> mean_of(Index begin, Index count) const {
    std::vector<double> mean(width_);
    for (Index t = begin; t < begin + count; ++t)
      for (Index d = 0; d < width_; ++d) mean[d] += static_cast<double>(keys_.row(t)[d]);
    for (double& x : mean) x /= static_cast<double>(count);
    return mean;
  }

  Head keys_;
  Index width_, size_, blocks_;
  std::vector<double> means_;  ///< (width, blocks), so that blocks are added side by side
};

/// The pooled keys of the key heads of a group.
using Pools = std::map<Index, PooledKeys>;

/// keys_of(head) returns the rows of a key head.
template <class KeysOf>
Pools pools_of(const AttentionInputs& in, std::span<const Index> group, Index blocks,
               KeysOf&& keys_of) {
  Pools pools;
  for (const Index head : group) {
    for (Index map = 0; map < in.mapping.maps; ++map) {
      const Index key = in.mapping.outputs[head].key[map];
      if (pools.contains(key)) continue;
      pools.emplace(key,
                    PooledKeys(keys_of(key), in.q.shape().last(), in.blocks.block_size, blocks));
    }
  }
  return pools;
}

/// The query of in.q that chooses for its block, the first one in it.
struct Chooser {
  Index b, token;
  Index block, first;  ///< its block; the first key that it sees
};

/// Returns the sum of the queries of some maps that read one key head.
std::vector<double> sum_of_queries(const AttentionInputs& in, std::span<const Index> group,
                                   const Chooser& by, Index key, const std::array<bool, 2>& maps) {
  std::vector<double> sum(in.q.shape().last());
  for (const Index head : group) {
    const OutputHead& output = in.mapping.outputs[head];
    for (Index map = 0; map < in.mapping.maps; ++map) {
      if (!maps[map] || output.key[map] != key) continue;
      const real* q = head_of(in.q, by.b, output.query[map]).row(by.token);
      for (size_t d = 0; d < sum.size(); ++d) sum[d] += static_cast<double>(q[d]);
    }
  }
  return sum;
}

/// Returns the candidates with the highest scores in order of score; ties go to the later one.
std::vector<Index> highest(std::span<const double> scores, Index count) {
  std::vector<std::pair<double, Index>> ranked;
  for (Index i = 0; i < std::ssize(scores); ++i) {
    // NaN, in a run that diverged, has no order.
    const bool nan = std::isnan(scores[i]);
    ranked.emplace_back(nan ? -std::numeric_limits<double>::infinity() : scores[i], i);
  }
  count = std::min(count, std::ssize(ranked));
  std::partial_sort(ranked.begin(), ranked.begin() + count, ranked.end(), std::greater<>());
  std::vector<Index> best;
  for (Index i = 0; i < count; ++i) best.push_back(ranked[i].second);
  return best;
}

KeyRuns choose(const AttentionInputs& in, std::span<const Index> group, const Pools& pools,
               const Chooser& by) {
  using Maps = std::array<bool, 2>;
  const Index size = in.blocks.block_size, oldest = by.first / size;
  std::vector<Maps> read(by.block - oldest);  // by which maps, of each earlier block
  const auto choose_for = [&](const Maps& maps) {
    std::vector<double> scores(read.size());
    for (const auto& [key, pooled] : pools)
      pooled.add_scores(sum_of_queries(in, group, by, key, maps), by.first, scores);
    for (const Index j : highest(scores, in.blocks.num_selected - 1))
      for (const size_t map : {0, 1}) read[j][map] |= maps[map];
  };
  if (in.blocks.separately) {
    choose_for({true, false});
    choose_for({false, true});
  } else {
    choose_for({true, true});
  }
  KeyRuns runs;
  for (Index j = 0; j < std::ssize(read); ++j) {
    if (read[j] != Maps{}) append_run(runs, {(oldest + j) * size, size, read[j]});
  }
  return runs;
}

}  // namespace

std::vector<Index> groups_of_heads(const HeadMapping& mapping) {
  std::vector<Index> group_of(mapping.heads_out());
  const auto groups = mapping.groups();
  for (Index group = 0; group < std::ssize(groups); ++group)
    for (const Index head : groups[group]) group_of[head] = group;
  return group_of;
}

KeySelection::KeySelection(const AttentionInputs& in, Index b, std::span<const Index> group)
    : block_size_(in.blocks.block_size) {
  const Index seq = in.q.shape()[1];
  if (block_size_ == 0 || seq == 0) return;
  const Index blocks = ceil_div(seq, block_size_);
  const Pools pools =
      pools_of(in, group, blocks - 1, [&](Index head) { return head_of(in.k, b, head); });
  for (Index block = 0; block < blocks; ++block) {
    const Index t = block * block_size_, first = in.visible.first_visible(t, b * seq + t);
    KeyRuns runs = choose(in, group, pools, {b, t, block, first});
    KeyRuns all;
    append_run(all, {first / block_size_ * block_size_, t - first / block_size_ * block_size_});
    all_.push_back(runs == all);
    runs_.push_back(std::move(runs));
  }
}

bool KeySelection::reads(Index map, Index t, Index s) const {
  if (block_size_ == 0 || t / block_size_ == s / block_size_) return true;
  return std::ranges::any_of(before(t), [&](const KeyRun& run) {
    return run.maps[map] && run.first <= s && s < run.end();
  });
}

KeyRuns select_cached(const AttentionInputs& in, const KvCache& cache, Index b,
                      std::span<const Index> group, Index token, Index position) {
  const Index block = position / in.blocks.block_size, width = cache.head_dim();
  std::map<Index, std::vector<real>> rows;
  const Pools pools = pools_of(in, group, block, [&](Index head) {
    return Head{(rows[head] = cache.rows_of_keys(b, head)).data(), width};
  });
  const Index n = in.q.shape()[1];
  return choose(in, group, pools,
                {b, token, block, in.visible.first_visible(position, b * n + token)});
}

void keep_selection(const AttentionInputs& in, KvCache& cache) {
  if (in.blocks.block_size == 0) return;
  const auto groups = in.mapping.groups();
  const Index count = std::ssize(groups);
  const Index begin = (cache.length() - 1) / in.blocks.block_size * in.blocks.block_size;
  cache.selection.resize(cache.batch() * count);
  parallel_for(std::ssize(cache.selection), [&](Index task) {
    cache.selection[task] =
        select_cached(in, cache, task / count, groups[task % count], begin, begin);
  });
}

}  // namespace difftape
