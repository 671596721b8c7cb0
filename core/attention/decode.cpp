// One task owns one sequence and one group of output heads that share keys or values. Chunks of
// keys, then of values, stay in the L1 cache while every query head of the group reads them. If the
// maps of a differential head share their values, it reads the values once, for A1 - lambda A2.
#include "core/attention/decode.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/blocks.h"
#include "core/error.h"
#include "core/simd_functions.h"
#include "core/softcap.h"

namespace difftape {

namespace {

using namespace attention;

constexpr Index kChunk = 128;  ///< tokens whose keys, or values, are read for all heads together
constexpr Index kChains = 4;   ///< independent sums, which hide the latency of a multiply-add

/// One query and the keys that it reads, in whole panels. Scores of all runs follow one another.
struct Query {
  Index b, token;    ///< token counts from the first of the n new ones
  Index first, end;  ///< keys [first, end) are visible
  KeyRuns runs;
  Index width = 0;  ///< scores
};

struct DecodeCall {
  const AttentionInputs& in;
  KvCache& cache;
  Index tokens;  ///< new tokens, n
  Tensor& out;
  const OutputHead& output(Index head) const { return in.mapping.outputs[head]; }
};

/// `selected` holds the chosen keys of its sequence and group; the first query of a block renews
/// it.
Query make_query(const DecodeCall& call, Index b, const std::vector<Index>& group, Index token,
                 KeyRuns* selected) {
  const Index position = call.cache.length() - call.tokens + token;
  const Index first = call.in.visible.first_visible(position, b * call.tokens + token);
  const Index begin = first / kSimdWidth * kSimdWidth, size = call.in.blocks.block_size;
  Query query{b, token, first, position + 1, {}};
  const auto add = [&](Index from, Index end, const std::array<bool, 2>& maps) {
    from = std::max(from, begin);
    append_run(query.runs, {from, std::max<Index>(0, round_up_to_width(end) - from), maps});
  };
  if (size > 0) {
    if (position % size == 0)
      *selected = select_cached(call.in, call.cache, b, group, token, position);
    for (const KeyRun& run : *selected) add(run.first, run.end(), run.maps);
  }
  add(size > 0 ? position / size * size : 0, position + 1, {true, true});
  for (const KeyRun& run : query.runs) query.width += run.count;
  return query;
}

/// One map of one token: its query, the head of its keys, its scores.
struct Map {
  const real* query;
  Index key_head;
  real* scores;
};

/// Computes scale q k^T of `count` panels for maps that share their keys, which are loaded once.
/// Writes count * kSimdWidth scores from index `first` on.
template <Index kMaps>
void score_panels(const Map* maps, const real* panels, Index first, Index count, Index head_dim,
                  real scale) {
  for (Index p = 0; p < count; ++p) {
    const real* panel = panels + p * head_dim * kSimdWidth;
    Simd sums[kMaps][kChains]{};
    Index d = 0;
    for (; d + kChains <= head_dim; d += kChains) {
      for (Index chain = 0; chain < kChains; ++chain) {
        const Simd keys = load(panel + (d + chain) * kSimdWidth);
        for (Index map = 0; map < kMaps; ++map)
          sums[map][chain] = fma(keys, maps[map].query[d + chain], sums[map][chain]);
      }
    }
    for (; d < head_dim; ++d) {
      const Simd keys = load(panel + d * kSimdWidth);
      for (Index map = 0; map < kMaps; ++map)
        sums[map][0] = fma(keys, maps[map].query[d], sums[map][0]);
    }
    for (Index map = 0; map < kMaps; ++map) {
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

/// Memory of one task for the output heads of its group.
struct Scratch {
  real* rows;  ///< (heads, maps, stride): scores, then weights of the values
  Index maps, stride;
  real* outputs;  ///< (heads, value_stride)
  real* row(Index i, Index map) const { return rows + (i * maps + map) * stride; }
};

/// Calls f(first key, keys, index of the first score) for the chunks of all runs.
template <class F>
void for_each_chunk(const Query& at, F&& f) {
  Index score = 0;
  for (const KeyRun& run : at.runs) {
    for (Index i = 0; i < run.count; i += kChunk)
      f(run.first + i, std::min(kChunk, run.count - i), score + i);
    score += run.count;
  }
}

void score(const DecodeCall& call, const Query& at, const std::vector<Index>& group,
           const Scratch& scratch) {
  std::vector<Map> maps;
  for (Index i = 0; i < std::ssize(group); ++i) {
    const OutputHead& output = call.output(group[i]);
    for (Index map = 0; map < scratch.maps; ++map) {
      maps.push_back({head_of(call.in.q, at.b, output.query[map]).row(at.token), output.key[map],
                      scratch.row(i, map)});
    }
  }
  const Index head_dim = call.cache.head_dim();
  const auto scale = static_cast<real>(call.in.scale);
  for_each_chunk(at, [&](Index key, Index count, Index score) {
    for (size_t i = 0; i < maps.size();) {
      const Index head = maps[i].key_head;
      const real* keys = call.cache.key_panels(at.b, head) + key * head_dim;
      const bool two = i + 1 < maps.size() && maps[i + 1].key_head == head;
      const auto score_maps = two ? score_panels<2> : score_panels<1>;
      score_maps(&maps[i], keys, score, count / kSimdWidth, head_dim, scale);
      i += two ? 2 : 1;
    }
  });
}

/// Puts -inf on the scores of one map that its query does not see or the map does not read.
void hide(const Query& at, Index map, real* scores) {
  constexpr real kHidden = -std::numeric_limits<real>::infinity();
  for (const KeyRun& run : at.runs) {
    if (!run.maps[map]) std::fill_n(scores, run.count, kHidden);
    if (run.first < at.first) std::fill_n(scores, at.first - run.first, kHidden);
    if (run.end() > at.end) std::fill(scores + (at.end - run.first), scores + run.count, kHidden);
    scores += run.count;
  }
}

/// scores of one map := exp(score - max), not yet divided by their sum.
SoftmaxStats softmax_row(const DecodeCall& call, const Query& at, const OutputHead& output,
                         Index map, real* scores) {
  if (call.in.logit_softcap > 0)
    softcap(scores, at.width, static_cast<real>(call.in.logit_softcap));
  hide(at, map, scores);
  Simd top = load(scores);
  for (Index j = kSimdWidth; j < at.width; j += kSimdWidth) {
    const Simd s = load(scores + j);
    top = select(s > top, s, top);
  }
  const Sink sink = sink_of(call.in, output.query[map]);
  const real max = sink.present ? std::max(largest(top), sink.logit) : largest(top);
  Simd total{};
  for (Index j = 0; j < at.width; j += kSimdWidth) {
    const Simd numerator = exp_simd(load(scores + j) - max);
    store(numerator, scores + j);
    total += numerator;
  }
  const real extra = sink.present ? std::exp(sink.logit - max) : 0;
  return {max, 1 / (sum(total) + extra)};
}

/// numerators := their probabilities times `coefficient`.
void normalize(real* numerators, Index width, const SoftmaxStats& stats, real coefficient) {
  const real factor = coefficient * stats.inverse_sum;
  for (Index j = 0; j < width; j += kSimdWidth)
    store(load(numerators + j) * factor, numerators + j);
}

/// first := A1 - lambda A2 from the numerators of both maps. Exactly 0 for equal maps and lambda 1;
/// exactly A1 for lambda 0.
void subtract_maps(real* first, const real* second, Index width, const SoftmaxStats& stats1,
                   const SoftmaxStats& stats2, real lambda) {
  const real ratio = lambda * (stats2.inverse_sum / stats1.inverse_sum);
  for (Index j = 0; j < width; j += kSimdWidth)
    store(fma(-load(second + j), ratio, load(first + j)) * stats1.inverse_sum, first + j);
}

/// Turns the scores of both maps into weights of their values: A1 - lambda A2 in the first if these
/// are shared, else A1 and -lambda A2.
void weigh(const DecodeCall& call, const Query& at, Index head, real* first, real* second) {
  const OutputHead& output = call.output(head);
  const SoftmaxStats stats1 = softmax_row(call, at, output, 0, first);
  if (call.in.mapping.maps == 1) {
    normalize(first, at.width, stats1, 1);
    return;
  }
  const SoftmaxStats stats2 = softmax_row(call, at, output, 1, second);
  const real lambda = lambda_at(call.in, at.b, at.token, head);
  if (call.in.mapping.shares_value(output)) {
    subtract_maps(first, second, at.width, stats1, stats2, lambda);
  } else {
    normalize(first, at.width, stats1, 1);
    normalize(second, at.width, stats2, -lambda);
  }
}

void sum_values(const DecodeCall& call, const Query& at, const std::vector<Index>& group,
                const Scratch& scratch) {
  const Index stride = call.cache.value_stride();
  std::fill_n(scratch.outputs, std::ssize(group) * stride, real{0});
  for_each_chunk(at, [&](Index key, Index count, Index score) {
    for (Index i = 0; i < std::ssize(group); ++i) {
      const OutputHead& output = call.output(group[i]);
      for (Index map = 0; map < (call.in.mapping.shares_value(output) ? 1 : 2); ++map) {
        add_values(scratch.row(i, map) + score,
                   call.cache.values(at.b, output.value[map]) + key * stride,
                   std::min(count, at.end - key), stride, scratch.outputs + i * stride);
      }
    }
  });
}

void attend(const DecodeCall& call, const Query& at, const std::vector<Index>& group,
            const Scratch& scratch) {
  score(call, at, group, scratch);
  const Index heads = std::ssize(group), stride = call.cache.value_stride();
  for (Index i = 0; i < heads; ++i)
    weigh(call, at, group[i], scratch.row(i, 0), scratch.row(i, scratch.maps - 1));
  sum_values(call, at, group, scratch);
  for (Index i = 0; i < heads; ++i) {
    std::copy_n(scratch.outputs + i * stride, call.cache.value_dim(),
                head_data(call.out, at.b, group[i], at.token));
  }
}

}  // namespace

Tensor attention_cached(const AttentionInputs& in, KvCache& cache) {
  const HeadMapping& mapping = in.mapping;
  mapping.require_valid();
  const Shape& q = in.q.shape();
  const Index n = q.rank() == 4 ? q[1] : 0;
  require_shape(
      q == Shape{cache.batch(), n, mapping.query_heads, cache.head_dim()} && n <= cache.length(),
      "attention_cached", "q is {}; need ({}, n, {}, {}) with n of the {} tokens kept", q.str(),
      cache.batch(), mapping.query_heads, cache.head_dim(), cache.length());
  require_shape(in.scale != 0, "attention_cached",
                "scale is not set; set it to attention_scale(head_dim)");
  const bool sparse = in.blocks.block_size > 0;
  require_shape(
      !sparse || !cache.selection.empty() || (cache.length() - n) % in.blocks.block_size == 0,
      "attention_cached",
      "the first of {} tokens needs the choice of its block; call "
      "keep_selection first",
      n);
  Tensor out = Tensor::empty({cache.batch(), n, mapping.heads_out(), cache.value_dim()});
  const DecodeCall call{in, cache, n, out};
  const auto groups = mapping.groups();
  const Index group_count = std::ssize(groups);
  Index largest = 0;
  for (const auto& group : groups) largest = std::max<Index>(largest, std::ssize(group));
  const Index stride = round_up_to_width(cache.capacity()) + kSimdWidth;
  const Index rows = largest * mapping.maps * stride;
  Tensor scratch = Tensor::empty({num_threads(), rows + largest * cache.value_stride()});
  if (sparse) cache.selection.resize(cache.batch() * group_count);
  parallel_for(cache.batch() * group_count, [&](Index task) {
    real* memory = scratch.row(thread_index());
    const std::vector<Index>& group = groups[task % group_count];
    KeyRuns* selected = sparse ? &cache.selection[task] : nullptr;
    for (Index token = 0; token < n; ++token) {
      attend(call, make_query(call, task / group_count, group, token, selected), group,
             {memory, mapping.maps, stride, memory + rows});
    }
  });
  return out;
}

}  // namespace difftape
