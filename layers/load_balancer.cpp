#include "layers/load_balancer.h"

#include <numeric>
#include <span>

#include "core/distributed.h"
#include "core/parallel.h"

namespace difftape {

void LoadBalancer::routing(Index layer, const RoutingView& view) {
  if (next_) next_->routing(layer, view);
  if (std::ssize(pass_) <= layer) pass_.resize(layer + 1);
  pass_[layer].clear();
  for (Index e = 0; e < view.routing.experts; ++e) pass_[layer].push_back(view.routing.load(e));
}

void LoadBalancer::end_pass() {
  size_t i = 0;
  for (const std::vector<Index>& layer : pass_) {
    loads_.resize(std::max(loads_.size(), i + layer.size()));
    for (const Index load : layer) loads_[i++] += load;
  }
}

void LoadBalancer::join_processes() {
  const std::vector<Index> all = distributed::all_of(std::span<const Index>(loads_));
  const size_t own = loads_.size();
  std::fill(loads_.begin(), loads_.end(), 0);
  for (size_t i = 0; i < all.size(); ++i) loads_[i % own] += all[i];
}

void LoadBalancer::update(ParameterSet& parameters) const {
  std::span<const Index> left = loads_;
  for (Parameter& p : parameters) {
    if (p.role != Role::state) continue;
    const auto loads = left.first(p.shape.size());
    left = left.subspan(loads.size());
    const Index total = std::accumulate(loads.begin(), loads.end(), Index{0});
    serial([&] {
      for (size_t e = 0; e < loads.size(); ++e) {
        const Index excess = loads[e] * std::ssize(loads) - total;  // exact: no mean is rounded
        if (excess == 0) continue;
        p.value.data()[e] += static_cast<real>(excess < 0 ? rate_ : -rate_);
      }
    });
  }
}

}  // namespace difftape
