#include "optim/shards.h"

#include <algorithm>
#include <map>
#include <queue>

#include "core/parallel.h"

namespace difftape {

namespace {

/// Assigns the largest piece first to the process with the fewest elements; the first such process.
void assign(std::vector<Piece>& pieces, Index processes) {
  std::vector<Piece*> order;
  for (Piece& piece : pieces) order.push_back(&piece);
  std::ranges::stable_sort(order, std::ranges::greater(), &Piece::count);
  using Load = std::pair<Index, Index>;  // elements, process
  std::priority_queue<Load, std::vector<Load>, std::greater<>> least;
  for (Index process = 0; process < processes; ++process) least.emplace(0, process);
  for (Piece* piece : order) {
    const auto [load, process] = least.top();
    least.pop();
    least.emplace(load + piece->count, process);
    piece->owner = process;
  }
}

}  // namespace

Shards::Shards(const ParameterSet& parameters, const RuleSet& rules, Index processes)
    : processes_(processes) {
  const Index blocks = ceil_div(parameters.count(), kPiecesPerProcess * processes * kElementGrain);
  for (const Parameter& p : parameters) {
    first_.push_back(pieces_.size());
    const Index size = p.shape.size();
    const bool whole = processes == 1 || rules.of(p).needs_whole_parameters();
    const Index each = whole ? size : blocks * kElementGrain;
    for (Index begin = 0; begin < size; begin += each)
      pieces_.push_back({p.position, begin, std::min(each, size - begin)});
  }
  first_.push_back(pieces_.size());
  assign(pieces_, processes);
  std::map<std::pair<size_t, Index>, Index> owned;
  for (Piece& piece : pieces_) {
    Index& count = owned[{piece.parameter, piece.owner}];
    piece.offset = count;
    count += piece.count;
  }
}

std::span<const Piece> Shards::pieces(size_t parameter) const {
  const size_t first = first_[parameter];
  return std::span(pieces_).subspan(first, first_[parameter + 1] - first);
}

const Piece& Shards::piece(size_t parameter, Index element) const {
  const std::span<const Piece> all = pieces(parameter);
  return all[element / all.front().count];  // only the last piece may be shorter
}

bool Shards::here(size_t parameter, Index element) const {
  return !several() || piece(parameter, element).owner == distributed::rank();
}

Index Shards::owned(size_t parameter, Index process) const {
  Index count = 0;
  for (const Piece& piece : pieces(parameter)) {
    if (piece.owner == process) count += piece.count;
  }
  return count;
}

void Shards::publish_values(ParameterSet& parameters) const {
  for (const Piece& piece : pieces_) {
    const std::span values = parameters[piece.parameter].value.values();
    const auto own = std::as_writable_bytes(values.subspan(piece.begin, piece.count));
    const auto tag = static_cast<Index>(piece.parameter);
    if (piece.owner != distributed::rank()) {
      distributed::receive(own, piece.owner, tag);
      continue;
    }
    for (Index to = 0; to < processes_; ++to) {
      if (to != piece.owner) distributed::send(own, to, tag);
    }
  }
  distributed::wait();
}

}  // namespace difftape
