#include "core/attention/cache.h"

#include <algorithm>

#include "core/error.h"
#include "core/parallel.h"
#include "core/simd.h"

namespace difftape {

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
  return batch_ * length_ * (keys + values) * Index{sizeof(real)};
}

Index KvCache::keys_of(Index b, Index head) const {
  return (b * key_heads_ + head) * panels_ * head_dim_ * kSimdWidth;
}

Index KvCache::values_of(Index b, Index head) const {
  return (b * value_heads_ + head) * capacity_ * value_stride_;
}

std::vector<real> KvCache::rows_of_keys(Index b, Index head) const {
  std::vector<real> rows(length_ * head_dim_);
  const real* panels = key_panels(b, head);
  for (Index t = 0; t < length_; ++t) {
    const real* key = panels + t / kSimdWidth * head_dim_ * kSimdWidth + t % kSimdWidth;
    for (Index d = 0; d < head_dim_; ++d) rows[t * head_dim_ + d] = key[d * kSimdWidth];
  }
  return rows;
}

void KvCache::append(const Tensor& k, const Tensor& v) {
  const Index n = k.shape().rank() == 4 ? k.shape()[1] : 0;
  require_shape(k.shape() == Shape{batch_, n, key_heads_, head_dim_} &&
                    v.shape() == Shape{batch_, n, value_heads_, value_dim_},
                "kv_cache", "keys are {}, values {}; need ({}, n, {}, {}) and ({}, n, {}, {})",
                k.shape().str(), v.shape().str(), batch_, key_heads_, head_dim_, batch_,
                value_heads_, value_dim_);
  require_shape(length_ + n <= capacity_, "kv_cache",
                "{} tokens and {} more exceed the capacity of {}", length_, n, capacity_);
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

}  // namespace difftape
