#pragma once
// The query, key and value heads that make one output head of (differential) attention.

#include <array>
#include <vector>

#include "core/real.h"

namespace difftape {

/// The heads that one output head reads, for each of its one or two softmax maps:
///   out = softmax(q[0] k[0]^T) v[0]  -  lambda softmax(q[1] k[1]^T) v[1]
struct OutputHead {
  std::array<Index, 2> query{};
  std::array<Index, 2> key{};
  std::array<Index, 2> value{};
};

/// The heads of an attention layer. Head counts are those in q, k and v.
struct HeadMapping {
  Index maps = 1;  ///< 1: softmax attention, 2: differential attention
  Index query_heads = 0, key_heads = 0, value_heads = 0;
  std::vector<OutputHead> outputs;  ///< one per output head

  Index heads_out() const { return std::ssize(outputs); }
  /// Throws ShapeError unless there are one or two maps, all heads exist, and no query head is read
  /// twice: its gradient has one owner.
  void require_valid() const;
  /// Returns true if every query head is read.
  bool reads_all_queries() const { return heads_out() * maps == query_heads; }
  /// Returns true if all maps of an output head read one value head: then one product with V is
  /// enough.
  bool shares_value(const OutputHead& output) const {
    return maps == 1 || output.value[0] == output.value[1];
  }
  /// Returns the output heads grouped by shared key or value heads, directly or through others.
  /// Groups touch disjoint key and value heads, so each can own the sums of its gradients.
  std::vector<std::vector<Index>> groups() const;

  // The three mappings throw ShapeError if kv_heads does not divide heads.

  /// One map: query head i reads key and value head i / (heads / kv_heads) (grouped-query
  /// attention, Ainslie et al. 2023).
  static HeadMapping standard(Index heads, Index kv_heads);
  /// V1: heads form pairs; both numbers must be even. With n = heads / kv_heads, pair i reads query
  /// heads 2i and 2i+1, key heads 2(i/n) and 2(i/n)+1, and the double-width value head i/n.
  static HeadMapping paired(Index heads, Index kv_heads);
  /// V2: twice the query heads. Output head i subtracts query head 2i+1 from 2i; both are in one
  /// group and share its key and value head. With `split_half` it subtracts query head i + heads
  /// from i, which are in different groups: ablation 1 of the V2 article.
  static HeadMapping doubled(Index heads, Index kv_heads, bool split_half = false);
};

}  // namespace difftape
