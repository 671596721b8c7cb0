#pragma once
// The choice of experts in a mixture of experts, and the order of their rows.

#include <span>
#include <vector>

#include "core/names.h"
#include "core/parallel.h"
#include "core/tensor.h"

namespace difftape {

/// The scores of a router: softmax(logits) (Shazeer et al. 2017; Fedus et al. 2021) or
/// sigmoid(logits) (DeepSeek-AI 2024).
enum class RouterScore { softmax, sigmoid };
constexpr auto names_of(RouterScore) {
  return std::to_array<Named<RouterScore>>(
      {{"softmax", RouterScore::softmax}, {"sigmoid", RouterScore::sigmoid}});
}

/// The settings of a router.
struct RouterRule {
  RouterScore score = RouterScore::softmax;
  Index top_k = 1;
  bool normalize = true;  ///< the weights of a token sum to 1
};

/// The k experts of each of N tokens, and N k rows sorted by expert, then by token.
struct Routing {
  Index experts = 0, top_k = 0;
  std::vector<std::int32_t> chosen{};  ///< (N, k): experts of a token, the highest score first
  std::vector<std::int32_t> rows{};    ///< (N, k): the sorted row of each choice
  std::vector<Index> starts{};         ///< (E + 1): the first sorted row of each expert

  Index tokens() const { return std::ssize(chosen) / top_k; }
  /// Returns the number of tokens of an expert.
  Index load(Index expert) const { return starts[expert + 1] - starts[expert]; }
};

/// Chooses the k experts with the highest score + bias of each row of scores (N, E); the lower
/// index wins a tie. `bias` (E) may be empty; it affects the choice only. In a dry run the last
/// expert gets all rows.
Routing choose_experts(const Tensor& scores, std::span<const real> bias, Index top_k);

/// Calls f(token, its k elements of `choices`) in parallel. `choices` is one of the (N, k) lists,
/// and the work per choice is in proportion to `width`.
template <class F>
void for_each_token(const Routing& routing, const std::vector<std::int32_t>& choices, Index width,
                    F&& f) {
  const Index k = routing.top_k;
  parallel_ranges(routing.tokens(), row_grain(width * k), [&](Index begin, Index count) {
    for (Index i = begin; i < begin + count; ++i) f(i, std::span(choices).subspan(i * k, k));
  });
}

}  // namespace difftape
