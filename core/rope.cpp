#include "core/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "core/error.h"
#include "core/parallel.h"
#include "core/simd.h"

namespace difftape {

namespace {
/// Exchanges elements 2i and 2i + 1.
Simd swapped_pairs(const Simd& x) {
  return Simd([&](size_t i) {
    return [&]<size_t... lane>(std::index_sequence<lane...>) {
      return __builtin_shufflevector(x.part[i], x.part[i], static_cast<int>(lane ^ 1)...);
    }
    (std::make_index_sequence<detail::kLanes>());
  });
}

/// Turns within the original length above which YaRN treats a plane as fast, and below which as
/// slow.
constexpr double kFastTurns = 32, kSlowTurns = 1;

/// Returns the position of a plane on the ramp from fast, 0, to slow, 1.
double slowness(const RopeRule& rule, Index head_dim, Index plane) {
  const double width = static_cast<double>(head_dim);
  const double length = static_cast<double>(rule.scaling.original_seq_len);
  /// The plane that makes this many turns.
  const auto plane_of = [&](double turns) {
    return width * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(rule.theta));
  };
  const double first = std::max(std::floor(plane_of(kFastTurns)), 0.0);
  const double last = std::min(std::ceil(plane_of(kSlowTurns)), width - 1);
  const double span = first == last ? 0.001 : last - first;
  return std::clamp((static_cast<double>(plane) - first) / span, 0.0, 1.0);
}
}  // namespace

double ntk_theta(double theta, double factor, Index head_dim) {
  if (head_dim <= 2) return theta;  // the only plane is the fastest
  const double width = static_cast<double>(head_dim);
  return theta * std::pow(factor, width / (width - 2));
}

std::vector<double> rope_frequencies(const RopeRule& rule, Index head_dim) {
  const auto& [kind, factor, original, attention] = rule.scaling;
  const double width = static_cast<double>(head_dim);
  const double theta =
      kind == RopeScalingKind::ntk ? ntk_theta(rule.theta, factor, head_dim) : rule.theta;
  std::vector<double> frequencies;
  for (Index plane = 0; plane < head_dim / 2; ++plane) {
    const double frequency = std::pow(theta, -2.0 * static_cast<double>(plane) / width);
    const double slow = kind == RopeScalingKind::yarn     ? slowness(rule, head_dim, plane)
                        : kind == RopeScalingKind::linear ? 1
                                                          : 0;
    frequencies.push_back(slow == 0 ? frequency
                                    : frequency / factor * slow + frequency * (1 - slow));
  }
  return frequencies;
}

double attention_factor_of(const RopeScaling& scaling) {
  if (scaling.attention_factor != 0) return scaling.attention_factor;
  return scaling.rope_type == RopeScalingKind::yarn ? 0.1 * std::log(scaling.factor) + 1 : 1;
}

RopeTable::RopeTable(Index max_seq_len, Index head_dim, const RopeRule& rule)
    : max_seq_len_(max_seq_len), head_dim_(head_dim), rule_(rule) {
  require_shape(head_dim > 0 && head_dim % 2 == 0, "rope", "head_dim is {}; need an even number",
                head_dim);
}

void RopeTable::fill() const {
  const std::vector<double> frequencies = rope_frequencies(rule_, head_dim_);
  const double factor = attention_factor_of(rule_.scaling);
  width_ = head_dim_ + kSimdWidth - std::gcd(head_dim_, kSimdWidth);
  cosine_.resize(max_seq_len_ * width_);
  sine_.resize(max_seq_len_ * width_);
  parallel_for(max_seq_len_, [&](Index t) {
    real *cosine = &cosine_[t * width_], *sine = &sine_[t * width_];
    for (Index i = 0; i < head_dim_; i += 2) {
      const double angle = static_cast<double>(t) * frequencies[i / 2];
      cosine[i] = cosine[i + 1] = static_cast<real>(factor * std::cos(angle));
      sine[i + 1] = static_cast<real>(factor * std::sin(angle));
      sine[i] = -sine[i + 1];
    }
    for (Index i = head_dim_; i < width_; ++i) {
      cosine[i] = cosine[i - head_dim_];
      sine[i] = sine[i - head_dim_];
    }
  });
}

void RopeTable::rotate(const Tensor& x, Tensor& y, real direction, Index first) const {
  const Shape& s = x.shape();
  require_shape(s.rank() == 4 && s[3] == head_dim() && first + s[1] <= max_seq_len(), "rope",
                "x is {}; need (B, T <= {}, H, {})", s.str(), max_seq_len() - first, head_dim());
  if (pool::dry()) return;  // the table would stay empty
  std::call_once(filled_, [this] { fill(); });
  const Index seq = s[1], width = s[2] * s[3], step = kSimdWidth % s[3];
  parallel_ranges(s[0] * seq, row_grain(width), [&](Index begin, Index count) {
    for (Index token = begin; token < begin + count; ++token) {
      const Index row = (first + token % seq) * width_;
      const real *cosine = &cosine_[row], *sine = &sine_[row];
      const real* in = x.data() + token * width;
      real* out = y.data() + token * width;
      Index at = 0;
      for_each_vector(width, [&](Index i, Index n) {
        const Simd here = load(in + i, n), turn = load(sine + at) * direction;
        store(fma(swapped_pairs(here), turn, here * load(cosine + at)), out + i, n);
        at += at + step < s[3] ? step : step - s[3];
      });
    }
  });
}

}  // namespace difftape
