// One task owns one sequence and one group of output heads that share keys or values. Chunks of
// keys, then of values, stay in the L1 cache while every query head of the group reads them; a
// differential head whose maps share their values reads these once, for A1 - lambda A2.
#include "core/attention/cache.h"

#include <algorithm>
#include <limits>

#include "core/attention/blocks.h"
#include "core/attention/rows.h"
#include "core/error.h"
#include "core/parallel.h"
#include "core/simd.h"
#include "core/softcap.h"

namespace difftape {

namespace {

using namespace attention;

constexpr Index kChunk = 128;  ///< tokens whose keys, or values, are read for all heads at once
constexpr Index kChains = 4;   ///< sums that run side by side, so that none waits for itself

}  // namespace

KvCache::KvCache(const HeadMapping& mapping, Index batch, Index capacity, Index head_dim,
                 Index value_dim)
    : batch_(batch),
      capacity_(capacity),
      key_heads_(mapping.key_heads),
      value_heads_(mapping.value_heads),
      head_dim_(head_dim),
      value_dim_(value_dim),
      panels_(ceil_div(capacity, kSimdWidth)),
      value_stride_(round_up_to_width(value_dim)),
      keys_(Tensor::zeros({batch, key_heads_, panels_, head_dim * kSimdWidth})),
      values_(Tensor::zeros({batch, value_heads_, capacity, value_stride_})) {}

Index KvCache::bytes_read() const {
  const Index keys = key_heads_ * head_dim_, values = value_heads_ * value_dim_;
  return batch_ * length_ * (keys + values) * static_cast<Index>(sizeof(real));
}

Index KvCache::keys_of(Index b, Index head) const {
  return (b * key_heads_ + head) * panels_ * head_dim_ * kSimdWidth;
}

Index KvCache::values_of(Index b, Index head) const {
  return (b * value_heads_ + head) * capacity_ * value_stride_;
}

void KvCache::append(const Tensor& k, const Tensor& v) {
  const Index n = k.shape().rank() == 4 ? k.shape()[1] : 0;
  require_shape(k.shape() == Shape{batch_, n, key_heads_, head_dim_} &&
                    v.shape() == Shape{batch_, n, value_heads_, value_dim_},
                "kv_cache", "keys are {}, values {}; need ({}, n, {}, {}) and ({}, n, {}, {})",
                k.shape().str(), v.shape().str(), batch_, key_heads_, head_dim_, batch_,
                value_heads_, value_dim_);
  require_shape(length_ + n <= capacity_, "kv_cache",
                "{} tokens and {} more do not fit; there is room for {}", length_, n, capacity_);
  parallel_for(batch_ * n, [&](Index token) {
    const Index b = token / n, position = length_ + token % n;
    for (Index head = 0; head < key_heads_; ++head) {
      real* panel = keys_.data() + keys_of(b, head) +
                    position / kSimdWidth * head_dim_ * kSimdWidth + position % kSimdWidth;
      const real* key = k.data() + (token * key_heads_ + head) * head_dim_;
      for (Index d = 0; d < head_dim_; ++d) panel[d * kSimdWidth] = key[d];
    }
    for (Index head = 0; head < value_heads_; ++head) {
      std::copy_n(v.data() + (token * value_heads_ + head) * value_dim_, value_dim_,
                  values_.data() + values_of(b, head) + position * value_stride_);
    }
  });
  length_ += n;
}

namespace {

/// One query and the keys that it sees.
struct Query {
  Index b, token;     ///< of the n new ones
  Index first, end;   ///< keys [first, end)
  Index first_panel;  ///< scores begin with its first key
  Index width() const { return round_up_to_width(end - first_panel * kSimdWidth); }
};

/// Everything that the tasks of one call read and write.
struct Call {
  const HeadMapping& mapping;
  const AttentionInputs& in;
  const KvCache& cache;
  Index tokens;  ///< n
  Tensor& out;

  /// How many maps of values an output head sums: one, A1 - lambda A2, if its maps share these.
  size_t sums_of(const OutputHead& head) const {
    return mapping.maps == 1 || head.value[0] == head.value[1] ? 1 : 2;
  }
};

Query make_query(const Call& call, Index b, Index token) {
  const Index position = call.cache.length() - call.tokens + token;
  const Visibility& visible = call.in.visible;
  Index first = 0;
  if (visible.sliding_window > 0) first = std::max<Index>(0, position + 1 - visible.sliding_window);
  if (visible.document_offsets) {
    const auto at = static_cast<size_t>(b * call.tokens + token);
    first = std::max<Index>(first, (*visible.document_offsets)[at]);
  }
  return {b, token, first, position + 1, first / kSimdWidth};
}

/// One map of a token: its query, the head of its keys, its scores.
struct Map {
  const real* query;
  Index key_head;
  real* scores;
};

/// Scores from number `first` on (count * kSimdWidth) = scale q k^T for `count` panels, of maps
/// with the same keys, which are loaded once.
template <size_t kMaps>
void score_panels(const Map* maps, const real* panels, Index first, Index count, Index head_dim,
                  real scale) {
  for (Index p = 0; p < count; ++p) {
    const real* panel = panels + p * head_dim * kSimdWidth;
    Simd sums[kMaps][kChains]{};
    Index d = 0;
    for (; d + kChains <= head_dim; d += kChains) {
      for (Index chain = 0; chain < kChains; ++chain) {
        const Simd keys = load(panel + (d + chain) * kSimdWidth);
        for (size_t map = 0; map < kMaps; ++map)
          sums[map][chain] = fma(keys, maps[map].query[d + chain], sums[map][chain]);
      }
    }
    for (; d < head_dim; ++d) {
      const Simd keys = load(panel + d * kSimdWidth);
      for (size_t map = 0; map < kMaps; ++map)
        sums[map][0] = fma(keys, maps[map].query[d], sums[map][0]);
    }
    for (size_t map = 0; map < kMaps; ++map) {
      const Simd* sum = sums[map];
      store(((sum[0] + sum[1]) + (sum[2] + sum[3])) * scale,
            maps[map].scores + first + p * kSimdWidth);
    }
  }
}

/// to (value_stride) += weights (count) times rows of values.
void add_values(const real* weights, const real* values, Index count, Index stride, real* to) {
  for (Index e = 0; e < stride; e += kSimdWidth) {
    Simd sums[kChains]{};
    Index j = 0;
    for (; j + kChains <= count; j += kChains) {
      for (Index chain = 0; chain < kChains; ++chain)
        sums[chain] = fma(load(values + (j + chain) * stride + e), weights[j + chain], sums[chain]);
    }
    for (; j < count; ++j) sums[0] = fma(load(values + j * stride + e), weights[j], sums[0]);
    store(load(to + e) + ((sums[0] + sums[1]) + (sums[2] + sums[3])), to + e);
  }
}

/// What a task keeps of each map of each output head of its group.
struct Scratch {
  real* rows;     ///< scores, then weights of the values
  Index stride;   ///< of rows
  real* outputs;  ///< (heads of the group, value_stride)
  real* row(size_t i, Index maps, size_t map) const {
    return rows + (static_cast<Index>(i) * maps + static_cast<Index>(map)) * stride;
  }
};

void score(const Call& call, const Query& at, const std::vector<Index>& group,
           const Scratch& scratch) {
  const HeadMapping& mapping = call.mapping;
  std::vector<Map> maps;
  for (size_t i = 0; i < group.size(); ++i) {
    const OutputHead& output = mapping.outputs[static_cast<size_t>(group[i])];
    for (size_t map = 0; map < static_cast<size_t>(mapping.maps); ++map) {
      maps.push_back({head_of(call.in.q, at.b, output.query[map]).row(at.token), output.key[map],
                      scratch.row(i, mapping.maps, map)});
    }
  }
  const Index panels = at.width() / kSimdWidth, head_dim = call.cache.head_dim();
  const real scale = static_cast<real>(call.in.scale);
  constexpr Index kPanels = kChunk / kSimdWidth;
  for (Index p = 0; p < panels; p += kPanels) {
    const Index count = std::min(kPanels, panels - p);
    for (size_t i = 0; i < maps.size();) {
      const Index head = maps[i].key_head;
      const real* keys =
          call.cache.key_panels(at.b, head) + (at.first_panel + p) * head_dim * kSimdWidth;
      const bool two = i + 1 < maps.size() && maps[i + 1].key_head == head;
      const auto score_maps = two ? score_panels<2> : score_panels<1>;
      score_maps(&maps[i], keys, p * kSimdWidth, count, head_dim, scale);
      i += two ? 2 : 1;
    }
  }
}

/// Scores of one map := numerators of its softmax.
SoftmaxStats softmax_row(const Call& call, const Query& at, Index query_head, real* scores) {
  if (call.in.logit_softcap > 0)
    softcap(scores, at.width(), static_cast<real>(call.in.logit_softcap));
  constexpr real kHidden = -std::numeric_limits<real>::infinity();
  const Index begin = at.first_panel * kSimdWidth;
  std::fill_n(scores, at.first - begin, kHidden);
  std::fill(scores + (at.end - begin), scores + at.width(), kHidden);
  return softmax_numerators(scores, at.width(), sink_of(call.in, query_head));
}

/// Rows of both maps := the weights of their values: A1 - lambda A2 in the first if these are
/// shared, else A1 and -lambda A2.
void weigh(const Call& call, const Query& at, Index head, real* first, real* second) {
  const OutputHead& output = call.mapping.outputs[static_cast<size_t>(head)];
  const SoftmaxStats stats1 = softmax_row(call, at, output.query[0], first);
  if (call.mapping.maps == 1) {
    normalise(first, at.width(), stats1, 1);
    return;
  }
  const SoftmaxStats stats2 = softmax_row(call, at, output.query[1], second);
  const real lambda = lambda_at(call.in, at.b, at.token, head);
  if (call.sums_of(output) == 1) {
    subtract_maps(first, second, at.width(), stats1, stats2, lambda);
  } else {
    normalise(first, at.width(), stats1, 1);
    normalise(second, at.width(), stats2, -lambda);
  }
}

void sum_values(const Call& call, const Query& at, const std::vector<Index>& group,
                const Scratch& scratch) {
  const HeadMapping& mapping = call.mapping;
  const Index stride = call.cache.value_stride(), begin = at.first_panel * kSimdWidth;
  std::fill_n(scratch.outputs, static_cast<Index>(group.size()) * stride, real{0});
  for (Index j = begin; j < at.end; j += kChunk) {
    for (size_t i = 0; i < group.size(); ++i) {
      const OutputHead& output = mapping.outputs[static_cast<size_t>(group[i])];
      for (size_t map = 0; map < call.sums_of(output); ++map) {
        add_values(scratch.row(i, mapping.maps, map) + (j - begin),
                   call.cache.values(at.b, output.value[map]) + j * stride,
                   std::min(kChunk, at.end - j), stride,
                   scratch.outputs + static_cast<Index>(i) * stride);
      }
    }
  }
}

void attend(const Call& call, const Query& at, const std::vector<Index>& group,
            const Scratch& scratch) {
  score(call, at, group, scratch);
  const Index maps = call.mapping.maps, value_dim = call.cache.value_dim();
  for (size_t i = 0; i < group.size(); ++i) {
    real* first = scratch.row(i, maps, 0);
    weigh(call, at, group[i], first, maps == 2 ? scratch.row(i, maps, 1) : nullptr);
  }
  sum_values(call, at, group, scratch);
  for (size_t i = 0; i < group.size(); ++i) {
    std::copy_n(scratch.outputs + static_cast<Index>(i) * call.cache.value_stride(), value_dim,
                head_data(call.out, at.b, group[i], at.token));
  }
}

}  // namespace

Tensor attention_cached(const HeadMapping& mapping, const AttentionInputs& in,
                        const KvCache& cache) {
  const Shape& q = in.q.shape();
  const Index n = q.rank() == 4 ? q[1] : 0;
  require_shape(
      q == Shape{cache.batch(), n, mapping.query_heads, cache.head_dim()} && n <= cache.length(),
      "attention_cached", "q is {}; need ({}, n, {}, {}) with n of the {} tokens kept", q.str(),
      cache.batch(), mapping.query_heads, cache.head_dim(), cache.length());
  const Index heads = static_cast<Index>(mapping.outputs.size());
  Tensor out = Tensor::empty({cache.batch(), n, heads, cache.value_dim()});
  const Call call{mapping, in, cache, n, out};
  const auto groups = mapping.groups();
  size_t largest = 0;
  for (const auto& group : groups) largest = std::max(largest, group.size());
  const Index stride = round_up_to_width(cache.length()) + kSimdWidth;
  const Index rows = static_cast<Index>(largest) * mapping.maps * stride;
  const Index size = rows + static_cast<Index>(largest) * cache.value_stride();
  const Index tasks = cache.batch() * static_cast<Index>(groups.size());
  Tensor scratch = Tensor::empty({num_threads(), size});
  parallel_for(tasks, [&](Index task) {
    const auto& group = groups[static_cast<size_t>(task) % groups.size()];
    const Index b = task / static_cast<Index>(groups.size());
    real* memory = scratch.row(thread_index());
    for (Index token = 0; token < n; ++token)
      attend(call, make_query(call, b, token), group, {memory, stride, memory + rows});
  });
  return out;
}

}  // namespace difftape
