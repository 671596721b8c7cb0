#include "layers/memory/tape.h"

#include <algorithm>
#include <utility>

namespace difftape::memory {

Held Meter::hold(Use use, Index numbers) {
  return hold_bytes(use, numbers * static_cast<Index>(sizeof(real)));
}

Held Meter::hold_bytes(Use use, Index wanted) {
  constexpr Index kAlignment = 64;  // of the pool
  const Index bytes = std::max(kAlignment, (wanted + kAlignment - 1) / kAlignment * kAlignment);
  add(use, bytes);
  return {this, [this, use, bytes](const void*) { add(use, -bytes); }};
}

void Meter::add(Use use, Index bytes) {
  (use == Use::activation ? now_.activations
   : use == Use::gradient ? now_.gradients
                          : now_.scratch) += bytes;
  if (now_.total() > peak_.total()) peak_ = now_;
}

const Held& Gradient::held() const { return tape_->nodes_[static_cast<size_t>(node_)].gradient; }

void Gradient::buffer() const {
  if (!requires_grad()) return;
  Tape::Node& node = tape_->nodes_[static_cast<size_t>(node_)];
  if (node.gradient.use_count() != 1) node.gradient = tape_->meter_.hold(Use::gradient, node.size);
}

void Gradient::add(const Held& gradient) const {
  if (!requires_grad()) return;
  Tape::Node& node = tape_->nodes_[static_cast<size_t>(node_)];
  if (node.gradient == nullptr) {
    node.gradient = gradient;
  } else {
    buffer();
  }
}

Value Tape::record(Held held, Index size, Pullback pullback) {
  if (!recording_) return constant(std::move(held), size);
  nodes_.push_back({size, std::move(pullback)});
  return {std::move(held), size, this, {this, static_cast<int>(nodes_.size()) - 1}};
}

void Tape::backward(const Value& from, const Held& cotangent) {
  from.gradient.add(cotangent);
  for (auto node = nodes_.rbegin(); node != nodes_.rend(); ++node) {
    if (!node->pullback) continue;
    const Pullback pullback = std::exchange(node->pullback, nullptr);
    const Held dy = std::exchange(node->gradient, nullptr);
    pullback(dy);
  }
}

}  // namespace difftape::memory
