#include "optim/shards.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "optim/tree_sum.h"

namespace difftape {

Shards::Shards(const ParameterSet& parameters, Index processes) {
  if (processes == 1) return;
  std::vector<size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size = [&](size_t i) {
    return parameters.begin()[static_cast<Index>(i)].shape.size();
  };
  std::ranges::stable_sort(order, std::ranges::greater(), size);
  owners_.resize(order.size());
  std::vector<Index> load(static_cast<size_t>(processes));
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(load);
    *least += size(i);
    owners_[i] = least - load.begin();
  }
}

bool Shards::here(size_t parameter) const {
  return owners_.empty() || owners_[parameter] == processes::rank();
}

void Shards::sum_gradients(ParameterSet& parameters) const {
  if (owners_.empty()) return;
  for (Index i = 0; i < std::ssize(owners_); ++i) {
    if (!here(static_cast<size_t>(i))) {
      const Parameter& p = parameters.begin()[i];
      processes::send(std::as_bytes(p.grad.values()), owners_[static_cast<size_t>(i)], i);
    }
  }
  for (Index i = 0; i < std::ssize(owners_); ++i) {
    if (!here(static_cast<size_t>(i))) continue;
    Parameter& p = parameters.begin()[i];
    TreeSum sum(processes::count());
    Tensor own = std::exchange(p.grad, Tensor());
    for (Index from = 0; from < processes::count(); ++from) {
      if (from == processes::rank()) {
        p.grad = std::move(own);
      } else {
        if (!p.grad.allocated()) p.grad = Tensor::empty(p.shape);
        processes::receive(std::as_writable_bytes(p.grad.values()), from, i);
      }
      sum.add(from, p.grad);
    }
  }
  processes::wait_until_sent();
}

void Shards::publish_values(ParameterSet& parameters) const {
  if (owners_.empty()) return;
  for (Index i = 0; i < std::ssize(owners_); ++i) {
    const Parameter& p = parameters.begin()[i];
    for (Index to = 0; here(static_cast<size_t>(i)) && to < processes::count(); ++to) {
      if (to != processes::rank()) processes::send(std::as_bytes(p.value.values()), to, i);
    }
  }
  for (Index i = 0; i < std::ssize(owners_); ++i) {
    Parameter& p = parameters.begin()[i];
    if (here(static_cast<size_t>(i))) continue;
    processes::receive(std::as_writable_bytes(p.value.values()), owners_[static_cast<size_t>(i)],
                       i);
  }
  processes::wait_until_sent();
}

}  // namespace difftape
