#pragma once
// Keys and values of the tokens so far, kept for generation (core/attention/decode.h).

#include "core/attention/heads.h"
#include "core/attention/visibility.h"
#include "core/tensor.h"

namespace difftape {

/// The keys and values of one layer; zeros beyond the last token.
class KvCache {
 public:
  /// Allocates `batch` sequences of up to `capacity` tokens, with keys of width `head_dim` and
  /// values of width `value_dim`.
  KvCache(const HeadMapping& mapping, Index batch, Index capacity, Index head_dim, Index value_dim);

  /// Appends n tokens to each sequence: k (B, n, key_heads, D), v (B, n, value_heads, E). Throws
  /// ShapeError if the shapes differ or the capacity is exceeded.
  void append(const Tensor& k, const Tensor& v);

  Index length() const { return length_; }      ///< tokens per sequence
  Index capacity() const { return capacity_; }  ///< most tokens per sequence
  Index batch() const { return batch_; }
  Index head_dim() const { return head_dim_; }
  Index value_dim() const { return value_dim_; }
  /// Returns the bytes that one step of dense attention at this length reads.
  Index bytes_read() const;

  /// Returns the keys of one head as panels of kSimdWidth tokens, each (D, kSimdWidth): the scores
  /// of a panel are D products of whole vectors.
  const real* key_panels(Index b, Index head) const { return keys_.data() + keys_of(b, head); }
  /// Returns the values of one head, (capacity, value_stride()), zero-filled beyond E.
  const real* values(Index b, Index head) const { return values_.data() + values_of(b, head); }
  Index value_stride() const { return value_stride_; }
  /// Returns the keys of one head as rows, (length, D).
  std::vector<real> rows_of_keys(Index b, Index head) const;

  /// The earlier keys that the last block of queries reads, at b * groups + group; empty if
  /// attention is dense (selection.h).
  std::vector<KeyRuns> selection;

 private:
  Index keys_of(Index b, Index head) const;
  Index values_of(Index b, Index head) const;

  Index batch_, capacity_, key_heads_, value_heads_, head_dim_, value_dim_;
  Index panels_, value_stride_, length_ = 0;
  Tensor keys_;    // (B, key_heads, panels, D * kSimdWidth)
  Tensor values_;  // (B, value_heads, capacity, value_stride)
};

}  // namespace difftape
