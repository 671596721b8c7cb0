#include "optim/gradient_exchange.h"

#include <utility>

#include "optim/tree_sum.h"

namespace difftape {

GradientExchange::GradientExchange(ParameterSet& parameters, const Shards& shards)
    : parameters_(parameters), shards_(shards) {
  if (!shards.several()) return;
  received_.resize(parameters.size());
  for (size_t i = 0; i < received_.size(); ++i) {
    if (!shards.here(i)) continue;
    for (Index from = 0; from < distributed::count(); ++from) {
      Tensor& room = received_[i].emplace_back();
      if (from == distributed::rank()) continue;
      room = Tensor::empty(parameters[i].shape);
      distributed::receive(std::as_writable_bytes(room.values()), from, i);
    }
  }
}

void GradientExchange::send(size_t parameter) {
  if (shards_.here(parameter)) return;
  const Tensor& gradient = parameters_[parameter].grad;
  distributed::send(std::as_bytes(gradient.values()), shards_.owner(parameter), parameter);
}

void GradientExchange::finish() {
  distributed::wait();
  for (size_t i = 0; i < received_.size(); ++i) {
    if (!shards_.here(i)) continue;
    Tensor& gradient = parameters_[i].grad;
    received_[i][distributed::rank()] = std::move(gradient);
    TreeSum sum(distributed::count());
    for (Index from = 0; from < distributed::count(); ++from) {
      gradient = std::move(received_[i][from]);
      sum.add(from, gradient);
    }
  }
}

}  // namespace difftape
