#include "core/attention/rounded.h"

#include "core/bf16.h"
#include "core/parallel.h"

namespace difftape {

namespace {

constexpr Index kStep = 8;  // elements of a loop that the compiler vectorizes

/// Calls f(b, head, first token, tokens) for all heads, on all threads.
template <class F>
void for_each_head(const Shape& s, F&& f) {
  constexpr Index kTokens = 64;  // even, so that pairs have one owner
  const Index parts = ceil_div(s[1], kTokens);
  parallel_for(s[0] * s[2] * parts, [&](Index task) {
    const Index t = task % parts * kTokens, head = task / parts;
    f(head / s[2], head % s[2], t, std::min(kTokens, s[1] - t));
  });
}

}  // namespace

RoundedHeads::RoundedHeads(const Tensor& x) : shape_(x.shape()) {
  const Index width = shape_.last(), size = row_size();
  const auto memory =
      pool::allocate(static_cast<size_t>(shape_.rows() * size) * sizeof(std::uint16_t));
  bits_ = {memory, static_cast<std::uint16_t*>(memory.get())};
  for_each_head(shape_, [&](Index b, Index head, Index first, Index count) {
    auto* to = const_cast<std::uint16_t*>(row(b, head, first));
    const real* from = x.data() + ((b * shape_[1] + first) * shape_[2] + head) * width;
    for (Index t = 0; t < count; ++t, to += size, from += shape_[2] * width) {
      Index i = 0;
      for (; i + kStep <= width; i += kStep)
        for (Index j = 0; j < kStep; ++j) to[i + j] = bf16_bits(from[i + j]);
      for (; i < width; ++i) to[i] = bf16_bits(from[i]);
      if (size > width) to[width] = 0;
    }
  });
}

std::shared_ptr<std::uint32_t> RoundedHeads::pairs() const {
  const Index width = shape_.last(), count = ceil_div(shape_[1], 2);
  const auto memory = pool::allocate(static_cast<size_t>(shape_[0] * shape_[2] * count * width) *
                                     sizeof(std::uint32_t));
  auto* const words = static_cast<std::uint32_t*>(memory.get());
  for_each_head(shape_, [&](Index b, Index head, Index first, Index tokens) {
    std::uint32_t* to = words + ((b * shape_[2] + head) * count + first / 2) * width;
    for (Index t = first; t < first + tokens; t += 2, to += width)
      join_bf16(row(b, head, t), t + 1 < shape_[1] ? row(b, head, t + 1) : nullptr, width, to);
  });
  return {memory, words};
}

Tensor RoundedHeads::values() const {
  Tensor x = Tensor::empty(shape_);
  const Index width = shape_.last();
  for_each_head(shape_, [&](Index b, Index head, Index first, Index count) {
    for (Index t = first; t < first + count; ++t) {
      const std::uint16_t* from = row(b, head, t);
      real* to = x.data() + ((b * shape_[1] + t) * shape_[2] + head) * width;
      for (Index i = 0; i < width; ++i) to[i] = from_bf16_bits(from[i]);
    }
  });
  return x;
}

}  // namespace difftape
