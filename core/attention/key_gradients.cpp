#include "core/attention/key_gradients.h"

#include <algorithm>

#include "core/attention/blocks.h"
#include "core/rows.h"

namespace difftape {

namespace attention {

namespace {

using Firsts = std::vector<std::array<bool, 2>>;

/// For each output head and map, in the order of their groups, whether it is the first to use the
/// head that `used` names. A gradient that is to be overwritten and has heads that nobody uses is
/// cleared instead, and nobody is the first.
template <class Used>
Firsts first_uses(const HeadLayout& layout, Tensor& gradient, Into into, Used&& used) {
  Firsts first(layout.routes.size());
  if (into == Into::add) return first;
  std::vector<bool> seen(static_cast<size_t>(gradient.shape()[2]));
  for (const std::vector<Index>& group : layout.groups()) {
    for (Index head : group) {
      for (size_t map = 0; map < static_cast<size_t>(layout.maps); ++map) {
        const auto at = static_cast<size_t>(used(layout.routes[static_cast<size_t>(head)], map));
        first[static_cast<size_t>(head)][map] = !seen[at];
        seen[at] = true;
      }
    }
  }
  if (std::find(seen.begin(), seen.end(), false) == seen.end()) return first;
  gradient.fill(0);
  return Firsts(layout.routes.size());
}

KeyGradients key_gradients(const HeadLayout& layout, Tensor dk, Tensor dv, Into into_k,
                           Into into_v) {
  const Firsts first_key = first_uses(
      layout, dk, into_k, [](const HeadRoute& route, size_t map) { return route.key[map]; });
  const Firsts first_value = first_uses(
      layout, dv, into_v, [](const HeadRoute& route, size_t map) { return route.value[map]; });
  return {std::move(dk), std::move(dv), first_key, first_value};
}

}  // namespace

KeyGradients own_key_gradients(const HeadLayout& layout, AttentionGradients& gradients) {
  return key_gradients(layout, gradients.dk, gradients.dv, gradients.into_k, gradients.into_v);
}

KeyGradients part_of_key_gradients(const HeadLayout& layout, const AttentionGradients& gradients) {
  return key_gradients(layout, Tensor::zeros(gradients.dk.shape()),
                       Tensor::zeros(gradients.dv.shape()), Into::add, Into::add);
}

void add_parts(const std::vector<KeyGradients>& parts, AttentionGradients& gradients) {
  const auto add = [&](Tensor KeyGradients::*which, Tensor& to, Into into) {
    parallel_ranges(to.size(), kElementGrain, [&](Index i, Index n) {
      Row row(to.data() + i, n);
      if (into == Into::overwrite) row.setZero();
      for (const KeyGradients& part : parts) row += ConstRow((part.*which).data() + i, n);
    });
  };
  add(&KeyGradients::dk, gradients.dk, gradients.into_k);
  add(&KeyGradients::dv, gradients.dv, gradients.into_v);
}

}  // namespace attention

Index attention_backward_parts(const HeadLayout& layout, Index batch, Index seq, Index window) {
  constexpr Index kEnough = 16;
  const auto groups = static_cast<Index>(layout.groups().size());
  const Index tasks = std::max(Index{1}, batch * groups);
  const Index block = attention::block_rows(seq, window), blocks = (seq + block - 1) / block;
  const Index pairs = static_cast<Index>(layout.routes.size()) / groups * blocks;
  return std::clamp((kEnough + tasks - 1) / tasks, Index{1}, std::max(Index{1}, pairs));
}

}  // namespace difftape
