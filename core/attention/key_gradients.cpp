#include "core/attention/key_gradients.h"

#include <algorithm>

#include "core/attention/blocks.h"
#include "core/rows.h"

namespace difftape {

namespace attention {

namespace {

using Firsts = std::vector<std::array<bool, 2>>;

/// For each output head and map, in the order of their groups, whether it is the first to use the
/// head that `used` names. A gradient that is to be overwritten and has heads that no output head
/// uses is set to zero instead, and no use counts as the first.
template <class Used>
Firsts first_uses(const HeadMapping& mapping, Tensor& gradient, Accumulate accumulate,
                  Used&& used) {
  Firsts first(mapping.outputs.size());
  if (accumulate == Accumulate::yes) return first;
  std::vector<bool> seen(static_cast<size_t>(gradient.shape()[2]));
  for (const std::vector<Index>& group : mapping.groups()) {
    for (Index head : group) {
      for (size_t map = 0; map < static_cast<size_t>(mapping.maps); ++map) {
        const auto at = static_cast<size_t>(used(mapping.outputs[static_cast<size_t>(head)], map));
        first[static_cast<size_t>(head)][map] = !seen[at];
        seen[at] = true;
      }
    }
  }
  if (std::find(seen.begin(), seen.end(), false) == seen.end()) return first;
  gradient.fill(0);
  return Firsts(mapping.outputs.size());
}

KeyGradients key_gradients(const HeadMapping& mapping, Tensor dk, Tensor dv,
                           Accumulate accumulate_k, Accumulate accumulate_v) {
  const Firsts first_key =
      first_uses(mapping, dk, accumulate_k,
                 [](const OutputHead& output, size_t map) { return output.key[map]; });
  const Firsts first_value =
      first_uses(mapping, dv, accumulate_v,
                 [](const OutputHead& output, size_t map) { return output.value[map]; });
  return {std::move(dk), std::move(dv), first_key, first_value};
}

}  // namespace

KeyGradients own_key_gradients(const HeadMapping& mapping, AttentionGradients& gradients) {
  return key_gradients(mapping, gradients.dk, gradients.dv, gradients.accumulate_k,
                       gradients.accumulate_v);
}

KeyGradients part_of_key_gradients(const HeadMapping& mapping,
                                   const AttentionGradients& gradients) {
  return key_gradients(mapping, Tensor::zeros(gradients.dk.shape()),
                       Tensor::zeros(gradients.dv.shape()), Accumulate::yes, Accumulate::yes);
}

void add_parts(const std::vector<KeyGradients>& parts, AttentionGradients& gradients) {
  const auto add = [&](Tensor KeyGradients::*which, Tensor& to, Accumulate accumulate) {
    parallel_ranges(to.size(), kElementGrain, [&](Index i, Index n) {
      Row row(to.data() + i, n);
      if (accumulate == Accumulate::no) row.setZero();
      for (const KeyGradients& part : parts) row += ConstRow((part.*which).data() + i, n);
    });
  };
  add(&KeyGradients::dk, gradients.dk, gradients.accumulate_k);
  add(&KeyGradients::dv, gradients.dv, gradients.accumulate_v);
}

}  // namespace attention

Index attention_backward_parts(const HeadMapping& mapping, Index batch, Index seq) {
  constexpr Index kEnough = 16;
  const auto groups = static_cast<Index>(mapping.groups().size());
  const Index tasks = std::max(Index{1}, batch * groups);
  const Index blocks = ceil_div(seq, attention::kBlockRows);
  const Index pairs = static_cast<Index>(mapping.outputs.size()) / groups * blocks;
  return std::clamp(ceil_div(kEnough, tasks), Index{1}, std::max(Index{1}, pairs));
}

}  // namespace difftape
