#pragma once
// The attention kinds by name, and the attention of a configuration: a kind, and what is set beside
// it.

#include <concepts>
#include <functional>
#include <optional>
#include <span>

#include "layers/attention/fields.h"

namespace difftape {

class Var;
template <class Operand>
struct BasicAttentionInputs;
struct AttentionArgs;

/// Makes the context (B, T, output heads, E) of AttentionOperands (autograd/ops.h), whose q and k
/// come after norm and RoPE; attention_mask (core/attention/visibility.h) makes a tensor of
/// `visible`. The context may depend on no token after its own, on none of another document and on
/// none before the window. Tensors that a rule makes of numbers are filled through core/parallel.h,
/// which a dry run skips.
using ContextRule = std::function<Var(const BasicAttentionInputs<Var>&)>;
/// Makes the rule of one layer (context.h) and declares the parameters that it reads, below the
/// name of the layer. Throws ConfigError for a model that it cannot serve.
using MakeContext = std::function<ContextRule(const AttentionArgs&)>;

/// An entry of the registry of kinds.
struct AttentionEntry {
  std::string name;    ///< a word: lower-case letters, digits and '_'
  std::string source;  ///< the article or report that describes it
  AttentionFields fields{};
  MakeContext context{};  ///< empty: the fused op, with the fields
};

/// Adds a kind to those of kinds.cpp, before anything reads a configuration: first of all in
/// main(). Throws ConfigError if the name is taken or no word, or the source is missing.
void register_attention(AttentionEntry entry);

/// One of the registered kinds.
class AttentionKind {
 public:
  /// The baseline, softmax.
  AttentionKind() : AttentionKind("softmax") {}
  /// Throws ConfigError for a name that no kind has.
  template <std::convertible_to<std::string_view> Text>
  AttentionKind(const Text& name) : entry_(find(name)) {}

  std::string_view name() const { return entry_->name; }
  const AttentionEntry& entry() const { return *entry_; }
  const AttentionFields& fields() const { return entry_->fields; }
  /// Every kind with its name, in alphabetical order.
  static std::span<const Named<AttentionKind>> named();
  bool operator==(const AttentionKind&) const = default;

 private:
  friend class AttentionRegistry;
  explicit AttentionKind(const AttentionEntry* entry) : entry_(entry) {}
  static const AttentionEntry* find(std::string_view name);
  const AttentionEntry* entry_;
};

/// The kinds in their order.
struct AttentionKindNames {
  auto begin() const { return AttentionKind::named().begin(); }
  auto end() const { return AttentionKind::named().end(); }
};
template <>
inline constexpr AttentionKindNames kNames<AttentionKind>{};

/// Names that model.attention.kind accepts, in alphabetical order.
inline std::vector<std::string> attention_kinds() { return names<AttentionKind>(); }

/// A field without a value is that of the kind. What the fields mean is in fields.h.
struct AttentionConfig {
  AttentionKind kind{};
  std::optional<Pairing> pairing{};
  std::optional<LambdaKind> lambda{};
  std::optional<LambdaInit> lambda_init{};
  double lambda_init_value = 0.8;  ///< with a constant lambda_init only
  std::optional<SoftmaxDenominator> softmax_denominator{};
  std::optional<bool> subln{};
  std::optional<Gate> gate{};
  bool qk_norm = false;
  double attn_logit_softcap = 0;
  double qk_clip_threshold = 0;
  Index sliding_window = 0;
};

/// The fields of the kind, with those that are set beside it.
AttentionFields fields_of(const AttentionConfig& config);

/// The kind alone, with what no kind decides as in `config`: qk_norm, the soft cap, QK-clip and
/// the sliding window.
AttentionConfig plain_kind(AttentionKind kind, const AttentionConfig& config);

}  // namespace difftape
