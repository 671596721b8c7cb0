#include "optim/gradient_exchange.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace difftape {

GradientExchange::GradientExchange(ParameterSet& parameters, const Shards& shards,
                                   std::vector<TreeSum>& sums, Index leaves)
    : parameters_(parameters), shards_(shards), sums_(sums) {
  if (!shards.several()) return;
  received_.resize(parameters.size());
  for (size_t i = 0; i < received_.size(); ++i) {
    if (!shards.here(i)) continue;
    for (Index from = 0; from < distributed::count(); ++from) {
      if (from == distributed::rank()) continue;
      for (const LeafRange& range : aligned_ranges(leaves_of(leaves, distributed::count(), from))) {
        received_[i].push_back({range, Tensor::empty(parameters[i].shape)});
        const std::span room = received_[i].back().sum.values();
        distributed::receive(std::as_writable_bytes(room), from, i);
      }
    }
  }
}

void GradientExchange::send(size_t parameter) {
  if (shards_.here(parameter)) return;
  for (const TreeSum::Part& part : sums_[parameter].parts())
    distributed::send(std::as_bytes(part.sum.values()), shards_.owner(parameter), parameter);
}

void GradientExchange::finish() {
  distributed::wait();
  for (size_t i = 0; i < sums_.size(); ++i) {
    Tensor& gradient = parameters_[i].grad;
    if (shards_.several() && shards_.here(i)) {
      std::vector<TreeSum::Part>& all = received_[i];
      std::ranges::move(sums_[i].parts(), std::back_inserter(all));
      std::ranges::sort(all, {}, [](const TreeSum::Part& part) { return part.leaves.begin; });
      sums_[i] = TreeSum();
      for (TreeSum::Part& part : all) sums_[i].add(part.leaves, part.sum);
    }
    sums_[i].finish(gradient);
  }
}

}  // namespace difftape
