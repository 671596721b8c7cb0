#pragma once
// A rehearsal of autograd/tape: what is allocated and freed when, without a single number. Values
// are sizes; they live as long as something refers to them, as tensors do.

#include <functional>
#include <memory>
#include <vector>

#include "core/gemm.h"

namespace difftape::memory {

enum class Use {
  activation,  ///< the result of an op
  gradient,    ///< of a result
  scratch      ///< what an op needs while it runs
};

/// Bytes by use.
struct Bytes {
  Index activations = 0, gradients = 0, scratch = 0;
  Index total() const { return activations + gradients + scratch; }
};

/// A block of memory; the last handle gives it back. It must not outlive its meter.
using Held = std::shared_ptr<const void>;

/// Counts what is held, as core/pool does.
class Meter {
 public:
  /// Memory of so many numbers, or bytes.
  Held hold(Use use, Index numbers);
  Held hold_bytes(Use use, Index bytes);
  const Bytes& now() const { return now_; }
  /// What was held when the total was largest.
  const Bytes& peak() const { return peak_; }

 private:
  void add(Use use, Index bytes);
  Bytes now_, peak_;
};

class Tape;

/// The gradient of a value, as pullbacks see it.
class Gradient {
 public:
  Gradient() = default;
  Gradient(Tape* tape, int node) : tape_(tape), node_(node) {}
  bool requires_grad() const { return node_ >= 0; }
  /// Memory to write to: allocated the first time, copied if another node shares it.
  void buffer() const;
  /// Adds a whole gradient: the first one is shared.
  void add(const Held& gradient) const;
  /// What has been added so far.
  const Held& held() const;

 private:
  Tape* tape_ = nullptr;
  int node_ = -1;
};

/// A result of so many numbers.
struct Value {
  Held held;
  Index size = 0;
  Tape* tape = nullptr;
  Gradient gradient{};
};

class Tape {
 public:
  Tape(Meter& meter, bool recording, Precision precision)
      : meter_(meter), recording_(recording), precision_(precision) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  Meter& meter() { return meter_; }
  Precision precision() const { return precision_; }
  /// A leaf with a gradient, and one without.
  Value input(Held held, Index size) { return record(std::move(held), size, nullptr); }
  Value constant(Held held, Index size) { return {std::move(held), size, this}; }

  using Pullback = std::function<void(const Held& dy)>;
  /// The result of an op; its pullback keeps what it captures until it ran.
  Value record(Held held, Index size, Pullback pullback);
  void backward(const Value& from, const Held& cotangent);

 private:
  friend class Gradient;
  struct Node {
    Index size;
    Pullback pullback{};
    Held gradient{};
  };

  Meter& meter_;
  bool recording_;
  Precision precision_;
  std::vector<Node> nodes_;
};

}  // namespace difftape::memory
