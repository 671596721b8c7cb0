#pragma once
// Reverse-mode differentiation: the tape is a vector of nodes in the order of execution, and
// backward runs it in reverse (Griewank & Walther 2008, chapter 3).

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "autograd/parameter.h"
#include "core/precision.h"

namespace difftape {

class Tape;

/// Where pullbacks add the gradient of one op input. A handle that holds no value, so that
/// capturing it holds no activation in memory. Inputs that need no gradient have `requires_grad()
/// == false` and must then be left alone.
class Gradient {
 public:
  Gradient() = default;
  bool requires_grad() const { return node_ >= 0; }

  /// The memory of the accumulated gradient, zero-filled if nothing has been added yet: for `+=`.
  Tensor grad() const;
  /// The same memory for writers that can overwrite. Where `accumulate` is no, the contents are
  /// undefined and every element must be written; where it is yes, the result must be added.
  struct Buffer {
    Tensor grad;
    Accumulate accumulate;
  };
  Buffer buffer() const;
  /// Adds a whole tensor of the input's size. The first one is shared, not copied.
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
  /// Stands for an operand that is absent; `defined` is false.
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
  /// In inference mode nothing is recorded and values live only as long as their Vars. `precision`
  /// is what linear, cross_entropy and attention round the operands of their products to.
  explicit Tape(Mode mode = Mode::training, Precision precision = Precision::full)
      : recording_(mode == Mode::training), precision_(precision) {}
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  /// A value that gradients do not flow into.
  Var constant(Tensor value) { return {std::move(value), this, -1}; }
  /// A leaf whose gradient is read with `gradient_of` after backward.
  Var input(Tensor value);
  /// A leaf whose gradient is the parameter's; the same Var for the same parameter.
  Var parameter(Parameter& parameter);

  using Pullback = std::function<void(const Tensor& dy)>;
  /// Puts the result of an op on the tape. The pullback receives the gradient of `value` and adds
  /// to the gradients of the inputs; it is dropped if no input needs one. For a profile, the op has
  /// run since the event before it ended: ops compute their value before they record it.
  Var record(const char* op, Tensor value, std::initializer_list<Var> inputs, Pullback pullback);

  /// Runs all pullbacks in reverse from the scalar `loss`, dloss/dloss = 1. Captured tensors are
  /// released as soon as their pullback ran. Afterwards every parameter that is on this tape has a
  /// gradient (zero where none reached it). Runs once a tape.
  void backward(const Var& loss);
  /// The same from any value with the given cotangent of its shape.
  void backward(const Var& from, const Tensor& cotangent);

  /// Gradient of an input leaf after backward, zeros if none reached it.
  Tensor gradient_of(const Var& leaf) const;

  /// Called with what the tape computes: every value when its op is recorded, and after every
  /// pullback the gradients it added to, with the op and the layer; and the gradient of a
  /// parameter, with its name for the layer, when this tape adds nothing more to it. `op` is of
  /// static lifetime.
  enum class Phase { forward, backward, complete };
  using Hook =
      std::function<void(const char* op, std::string_view scope, Phase phase, const Tensor& seen)>;
  /// From now on; before anything is recorded, if pullbacks are to be seen. Tapes inside an op
  /// call it too. It changes no result, and costs nothing when absent.
  void set_hook(Hook hook) { hook_ = std::move(hook); }
  const Hook& hook() const { return hook_; }

  /// Number of recorded nodes.
  size_t size() const { return nodes_.size(); }
  bool recording() const { return recording_; }
  Precision precision() const { return precision_; }
  /// Names of the recorded ops in the order of execution.
  std::vector<std::string> ops() const;

 private:
  friend class Gradient;
  struct Node {
    const char* op;
    std::string scope{};  // the layer that recorded it
    Shape shape;
    bool is_leaf = false;
    Parameter* parameter = nullptr;
    Pullback pullback{};
    Tensor grad{};
    bool has_gradient = false;
    std::vector<int> inputs{};  // nodes its pullback adds to; filled only with a hook
  };
  Tensor& gradient_memory(Node& node);
  void show_gradients(const Node& of) const;
  int add_node(Node node);

  std::vector<Node> nodes_;
  std::unordered_map<const Parameter*, int> parameter_nodes_;
  bool recording_;
  Precision precision_;
  Hook hook_;
};

/// record on the tape of the inputs.
Var record(const char* op, Tensor value, std::initializer_list<Var> inputs,
           Tape::Pullback pullback);

}  // namespace difftape
