#include "optim/gradient_exchange.h"

#include <algorithm>
#include <utility>

namespace difftape {

GradientExchange::GradientExchange(ParameterSet& parameters, const Shards& shards,
                                   std::vector<TreeSum>& sums, Index leaves)
    : parameters_(parameters), shards_(shards), sums_(sums), received_(parameters.size()) {
  if (!shards.several()) return;
  for (size_t i = 0; i < received_.size(); ++i) {
    for (const Piece& piece : shards.pieces(i)) {
      if (piece.owner != distributed::rank()) continue;
      std::vector<TreeSum::Part>& parts = received_[i].emplace_back(Received{piece, {}}).parts;
      for (Index from = 0; from < distributed::count(); ++from) {
        if (from == distributed::rank()) continue;
        for (const LeafRange& range :
             aligned_ranges(leaves_of(leaves, distributed::count(), from))) {
          parts.push_back({range, Tensor::empty({piece.count})});
          const std::span room = parts.back().sum.values();
          distributed::receive(std::as_writable_bytes(room), from, static_cast<Index>(i));
        }
      }
    }
  }
}

void GradientExchange::send(size_t parameter) {
  for (const Piece& piece : shards_.pieces(parameter)) {
    if (piece.owner == distributed::rank()) continue;
    for (const TreeSum::Part& part : sums_[parameter].parts()) {
      const std::span values = part.sum.values().subspan(piece.begin, piece.count);
      distributed::send(std::as_bytes(values), piece.owner, static_cast<Index>(parameter));
    }
  }
}

Tensor GradientExchange::sum_of(Received& received) {
  const auto& [piece, others] = received;
  std::vector<TreeSum::Part> parts = std::move(received.parts);
  for (const TreeSum::Part& own : sums_[piece.parameter].parts())
    parts.push_back({own.leaves, own.sum.slice(piece.begin, piece.count)});
  std::ranges::sort(parts, {}, [](const TreeSum::Part& part) { return part.leaves.begin; });
  TreeSum tree;
  for (TreeSum::Part& part : parts) tree.add(part.leaves, part.sum);
  Tensor sum;
  tree.finish(sum);
  return sum;
}

void GradientExchange::finish() {
  distributed::wait();
  for (size_t i = 0; i < sums_.size(); ++i) {
    Tensor& gradient = parameters_[i].grad;
    if (!shards_.several()) {
      sums_[i].finish(gradient);
      continue;
    }
    std::vector<Tensor> reduced;
    for (Received& received : received_[i]) reduced.push_back(sum_of(received));
    sums_[i].restart(gradient);
    for (size_t k = 0; k < reduced.size(); ++k) {
      const Piece& piece = received_[i][k].piece;
      gradient.slice(piece.begin, piece.count).copy_from(reduced[k]);
    }
  }
}

}  // namespace difftape
