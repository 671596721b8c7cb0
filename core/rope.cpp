#include "core/rope.h"

#include <cmath>

#include "core/error.h"
#include "core/parallel.h"
#include "core/simd.h"

namespace difftape {

namespace {
/// Elements 2i and 2i + 1 in each other's place.
Simd swapped_pairs(const Simd& x) {
  return Simd([&](size_t i) {
    return [&]<size_t... lane>(std::index_sequence<lane...>) {
      return __builtin_shufflevector(x.part[i], x.part[i], static_cast<int>(lane ^ 1)...);
    }
    (std::make_index_sequence<detail::kLanes>());
  });
}
}  // namespace

RopeTable::RopeTable(Index max_seq_len, Index head_dim, double theta)
    : max_seq_len_(max_seq_len), head_dim_(head_dim), theta_(theta) {
  require_shape(head_dim % 2 == 0, "rope", "head_dim is {}; need an even number", head_dim);
}

void RopeTable::fill() const {
  const Index planes = head_dim_ / 2;
  cosine_ = Tensor::empty({max_seq_len_, head_dim_});
  sine_ = Tensor::like(cosine_);
  parallel_for(max_seq_len_, [&](Index t) {
    for (Index i = 0; i < planes; ++i) {
      const double frequency =
          std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_));
      const double angle = static_cast<double>(t) * frequency;
      const auto sine = static_cast<real>(std::sin(angle));
      cosine_.row(t)[2 * i] = cosine_.row(t)[2 * i + 1] = static_cast<real>(std::cos(angle));
      sine_.row(t)[2 * i] = -sine;
      sine_.row(t)[2 * i + 1] = sine;
    }
  });
}

void RopeTable::rotate(const Tensor& x, Tensor& y, real direction, Index first) const {
  const Shape& s = x.shape();
  require_shape(s.rank() == 4 && s[3] == head_dim() && first + s[1] <= max_seq_len(), "rope",
                "x is {}; need (B, T <= {}, H, {})", s.str(), max_seq_len() - first, head_dim());
  std::call_once(filled_, [this] { fill(); });
  const Index seq = s[1], heads = s[2], width = heads * s[3];
  parallel_ranges(s[0] * seq, row_grain(width), [&](Index begin, Index count) {
    for (Index token = begin; token < begin + count; ++token) {
      const real* cosine = cosine_.row(first + token % seq);
      const real* sine = sine_.row(first + token % seq);
      for (Index head = 0; head < heads; ++head) {
        const real* in = x.data() + token * width + head * s[3];
        real* out = y.data() + token * width + head * s[3];
        for_each_vector(s[3], [&](Index i, Index n) {
          const Simd here = load(in + i, n), turn = load(sine + i, n) * direction;
          store(fma(swapped_pairs(here), turn, here * load(cosine + i, n)), out + i, n);
        });
      }
    }
  });
}

}  // namespace difftape
