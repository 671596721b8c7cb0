#pragma once
// Reverse-mode differentiation: the tape is a vector of nodes in the order of execution, and
// backward runs it in reverse (Griewank & Walther 2008, chapter 3).

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/parameter.h"
#include "core/saved_tensor.h"

namespace difftape {

class Tape;

/// A handle through which pullbacks add to the gradient of one input. It holds no value, so
/// capturing it keeps no activation. Leave inputs with `requires_grad() == false` alone.
class Gradient {
 public:
  Gradient() = default;
  bool requires_grad() const { return node_ >= 0; }

  /// Returns the accumulated gradient for `+=`, zero-filled if nothing has been added.
  Tensor grad() const;
  /// Returns the same memory without zeros. With Accumulate::no its contents are undefined and must
  /// be overwritten; with yes they must be added to.
  struct Buffer {
    Tensor grad;
    Accumulate accumulate;
  };
  Buffer buffer() const;
  /// Adds a tensor of the input's size; the first one is shared, not copied.
  void add(const Tensor& gradient) const;

 private:
  friend class Tape;
  friend class Var;
  Gradient(Tape* tape, int node) : tape_(tape), node_(node) {}
  Tape* tape_ = nullptr;
  int node_ = -1;
};

/// A value on a tape. Copies are handles to the same value.
class Var {
 public:
  /// Represents an absent operand; `defined` is false.
  Var() = default;
  bool defined() const { return tape_ != nullptr; }
  const Tensor& value() const { return value_; }
  const Shape& shape() const { return value_.shape(); }
  Gradient gradient() const { return {tape_, node_}; }
  Tape& tape() const { return *tape_; }

 private:
  friend class Tape;
  Var(Tensor value, Tape* tape, int node) : value_(std::move(value)), tape_(tape), node_(node) {}
  Tensor value_;
  Tape* tape_ = nullptr;
  int node_ = -1;  // -1: no gradient flows here
};

class Tape {
 public:
  enum class Mode { training, inference };
  /// Inference mode records nothing, and values live only as long as their Vars. linear,
  /// cross_entropy and attention round the operands of their products to `precision`.
  explicit Tape(Mode mode = Mode::training, Precision precision = Precision::full)
      : recording_(mode == Mode::training), precision_(precision) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// Makes a value without gradient.
  Var constant(Tensor value) { return {std::move(value), this, -1}; }
  /// Makes a leaf; `gradient_of` returns its gradient after backward.
  Var input(Tensor value);
  /// Makes a leaf that shares the gradient of a parameter; the same Var for the same parameter.
  Var parameter(Parameter& parameter);

  using Pullback = std::function<void(const Tensor& dy)>;
  /// Records the result of an op. The pullback receives the gradient of `value` and adds to those
  /// of the inputs; it is dropped if no input needs one. In a profile, the op begins when the
  /// previous event ended, because ops compute before they record.
  Var record(const char* op, Tensor value, const std::vector<Var>& inputs, Pullback pullback);

  /// Runs all pullbacks in reverse from the scalar `loss`. Frees captured tensors as it goes, so a
  /// second call throws UsageError: add the losses and call it once. Afterwards every parameter on
  /// the tape has a gradient, zero if none reached it.
  void backward(const Var& loss);
  /// Starts from any value and a cotangent of its shape.
  void backward(const Var& from, const Tensor& cotangent);

  /// Returns the gradient of an input leaf after backward, zeros if none reached it.
  Tensor gradient_of(const Var& leaf) const;

  /// Optional callbacks. `op` has static lifetime, `scope` is the layer. They change no result, and
  /// cost nothing when absent.
  struct Events {
    using See = std::function<void(const char* op, std::string_view scope, const Tensor& seen)>;
    See on_value{};     ///< every value, when its op is recorded
    See on_gradient{};  ///< each gradient a pullback added to
    /// Called when the gradient of a parameter is complete.
    std::function<void(Parameter&)> on_complete{};
  };
  /// Call before anything is recorded if gradients are to be seen.
  void set_events(Events events) { events_ = std::move(events); }

  /// Returns a tape for the inside of an op, with the same precision and events.
  Tape inner(Mode mode) const { return Tape(mode, precision_, events_); }

  size_t size() const { return nodes_.size(); }
  bool recording() const { return recording_; }
  Precision precision() const { return precision_; }
  /// Returns x as an operand of products in the precision of this tape. If that is not full, calls
  /// that follow each other share it for the same x, which stays alive until another call or
  /// backward.
  SavedTensor saved(const Tensor& x);
  /// Returns the names of the recorded ops in order.
  std::vector<std::string> ops() const;

 private:
  friend class Gradient;
  Tape(Mode mode, Precision precision, Events events) : Tape(mode, precision) {
    events_ = std::move(events);
  }
  struct Node {
    const char* op;
    std::string scope{};  // the layer that recorded it
    Shape shape;
    bool is_leaf = false;
    Parameter* parameter = nullptr;
    Pullback pullback{};
    Tensor grad{};
    bool has_gradient = false;
    bool adopted = false;  ///< `grad` is memory that `Gradient::add` was given, and others may hold
    std::vector<int> inputs{};  // targets of the pullback; only if events.on_gradient

    bool& has() { return parameter ? parameter->has_gradient : has_gradient; }
    Tensor& gradient() { return parameter ? parameter->grad : grad; }
    Tensor& gradient_memory();
  };
  int add_node(Node node);

  std::vector<Node> nodes_;
  std::unordered_map<const Parameter*, int> parameter_nodes_;
  bool recording_;
  bool has_run_ = false;  // backward
  Precision precision_;
  Tensor last_;  // for which `saved` was called, with its result
  SavedTensor last_saved_{};
  Events events_;
};

/// Records on the tape of the inputs.
Var record(const char* op, Tensor value, const std::vector<Var>& inputs, Tape::Pullback pullback);

}  // namespace difftape
