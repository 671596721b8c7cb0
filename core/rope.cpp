#include "core/rope.h"

#include <cmath>

#include "core/error.h"
#include "core/parallel.h"

namespace difftape {

RopeTable::RopeTable(Index max_seq_len, Index head_dim, double theta)
    : max_seq_len_(max_seq_len), head_dim_(head_dim), theta_(theta) {
  require_shape(head_dim % 2 == 0, "rope", "head_dim is {}; need an even number", head_dim);
}

void RopeTable::fill() const {
  const Index planes = head_dim_ / 2;
  cosine_ = Tensor::empty({max_seq_len_, planes});
  sine_ = Tensor::like(cosine_);
  parallel_for(max_seq_len_, [&](Index t) {
    for (Index i = 0; i < planes; ++i) {
      const double frequency =
          std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(head_dim_));
      const double angle = static_cast<double>(t) * frequency;
      cosine_.row(t)[i] = static_cast<real>(std::cos(angle));
      sine_.row(t)[i] = static_cast<real>(std::sin(angle));
    }
  });
}

void RopeTable::rotate(const Tensor& x, Tensor& y, real direction, Index first) const {
  const Shape& s = x.shape();
  require_shape(s.rank() == 4 && s[3] == head_dim() && first + s[1] <= max_seq_len(), "rope",
                "x is {}; need (B, T <= {}, H, {})", s.str(), max_seq_len() - first, head_dim());
  std::call_once(filled_, [this] { fill(); });
  const Index seq = s[1], heads = s[2], planes = s[3] / 2, width = heads * s[3];
  parallel_ranges(s[0] * seq, row_grain(width), [&](Index begin, Index count) {
    for (Index token = begin; token < begin + count; ++token) {
      const real* cosine = cosine_.row(first + token % seq);
      const real* sine = sine_.row(first + token % seq);
      for (Index head = 0; head < heads; ++head) {
        const real* in = x.data() + token * width + head * s[3];
        real* out = y.data() + token * width + head * s[3];
        for (Index i = 0; i < planes; ++i) {
          const real a = in[2 * i], b = in[2 * i + 1], sin = direction * sine[i];
          out[2 * i] = a * cosine[i] - b * sin;
          out[2 * i + 1] = a * sin + b * cosine[i];
        }
      }
    }
  });
}

}  // namespace difftape
