#include "optim/shards.h"

#include <algorithm>
#include <numeric>

namespace difftape {

Shards::Shards(const ParameterSet& parameters, Index processes) {
  if (processes == 1) return;
  std::vector<size_t> order(parameters.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const auto size = [&](size_t i) { return parameters[i].shape.size(); };
  std::ranges::stable_sort(order, std::ranges::greater(), size);
  owners_.resize(order.size());
  std::vector<Index> load(processes);
  for (const size_t i : order) {
    const auto least = std::ranges::min_element(load);
    *least += size(i);
    owners_[i] = least - load.begin();
  }
}

bool Shards::here(size_t parameter) const {
  return owners_.empty() || owners_[parameter] == distributed::rank();
}

void Shards::publish_values(ParameterSet& parameters) const {
  if (!several()) return;
  for (Index i = 0; i < std::ssize(owners_); ++i) {
    const Index owner = owners_[i];
    Tensor& value = parameters[i].value;
    if (owner != distributed::rank()) {
      distributed::receive(std::as_writable_bytes(value.values()), owner, i);
      continue;
    }
    for (Index to = 0; to < distributed::count(); ++to) {
      if (to != owner) distributed::send(std::as_bytes(value.values()), to, i);
    }
  }
  distributed::wait();
}

}  // namespace difftape
