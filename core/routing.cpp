// The sort by expert is a stable counting sort on one thread, so threads do not change the order.
#include "core/routing.h"

#include "core/parallel.h"

namespace difftape {

namespace {

/// Chooses for one token. `taken` (E) is scratch. NaN never wins against a number before it.
void choose(const real* scores, std::span<const real> bias, std::span<std::int32_t> chosen,
            std::vector<bool>& taken) {
  std::fill(taken.begin(), taken.end(), false);
  for (std::int32_t& slot : chosen) {
    std::int32_t best = -1;
    real highest = 0;
    for (size_t e = 0; e < taken.size(); ++e) {
      if (taken[e]) continue;
      const real score = bias.empty() ? scores[e] : scores[e] + bias[e];
      if (best >= 0 && !(score > highest)) continue;
      best = static_cast<std::int32_t>(e);
      highest = score;
    }
    taken[best] = true;
    slot = best;
  }
}

void sort_by_expert(Routing& routing) {
  std::fill(routing.starts.begin(), routing.starts.end(), 0);
  for (const std::int32_t expert : routing.chosen) ++routing.starts[expert + 1];
  for (Index e = 0; e < routing.experts; ++e) routing.starts[e + 1] += routing.starts[e];
  std::vector<Index> next = routing.starts;
  for (size_t i = 0; i < routing.chosen.size(); ++i) {
    routing.rows[i] = static_cast<std::int32_t>(next[routing.chosen[i]]++);
  }
}

}  // namespace

Routing choose_experts(const Tensor& scores, std::span<const real> bias, Index top_k) {
  const Index tokens = scores.shape().rows(), experts = scores.shape().last();
  Routing routing{experts, top_k, std::vector<std::int32_t>(tokens * top_k),
                  std::vector<std::int32_t>(tokens * top_k), std::vector<Index>(experts + 1)};
  routing.starts.back() = tokens * top_k;
  parallel_ranges(tokens, row_grain(experts * top_k), [&](Index begin, Index count) {
    std::vector<bool> taken(experts);
    for (Index i = begin; i < begin + count; ++i) {
      choose(scores.row(i), bias, std::span(routing.chosen).subspan(i * top_k, top_k), taken);
    }
  });
  serial([&] { sort_by_expert(routing); });
  return routing;
}

}  // namespace difftape
