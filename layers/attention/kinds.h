#pragma once
// The attention kinds by name, and the attention section of a configuration.

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

/// Computes the context (B, T, output heads, E) from AttentionOperands (autograd/ops.h), whose q
/// and k come after norm and RoPE. It must not depend on later tokens, other documents, or tokens
/// before the window; attention_mask (core/attention/visibility.h) makes a tensor of `visible`.
/// Rules fill tensors through core/parallel.h, which a dry run skips.
using ContextRule = std::function<Var(const BasicAttentionInputs<Var>&)>;
/// Makes the rule of one layer and declares its parameters below the layer's name. Throws
/// ConfigError for an unsupported model.
using MakeContext = std::function<ContextRule(const AttentionArgs&)>;

/// An entry of the registry of kinds.
struct AttentionEntry {
  std::string name;    ///< a word: lower-case letters, digits and '_'
  std::string source;  ///< the article or report that describes it
  AttentionFields fields{};
  MakeContext context{};  ///< empty: the fused op with the fields
};

/// Adds a kind; call it first in main(), before a configuration is read. Throws ConfigError if the
/// name is taken or not a word, or if the source is missing.
void register_attention(AttentionEntry entry);

/// One of the registered kinds.
class AttentionKind {
 public:
  AttentionKind() : AttentionKind("softmax") {}
  /// Throws ConfigError for an unknown name.
  template <std::convertible_to<std::string_view> Text>
  AttentionKind(const Text& name) : entry_(find(name)) {}

  std::string_view name() const { return entry_->name; }
  const AttentionEntry& entry() const { return *entry_; }
  const AttentionFields& fields() const { return entry_->fields; }
  /// Returns every kind with its name, in alphabetical order.
  static std::span<const Named<AttentionKind>> named();
  bool operator==(const AttentionKind&) const = default;

 private:
  friend class AttentionRegistry;
  explicit AttentionKind(const AttentionEntry* entry) : entry_(entry) {}
  static const AttentionEntry* find(std::string_view name);
  const AttentionEntry* entry_;
};

struct AttentionKindNames {
  auto begin() const { return AttentionKind::named().begin(); }
  auto end() const { return AttentionKind::named().end(); }
};
template <>
inline constexpr AttentionKindNames kNames<AttentionKind>{};

/// Returns the values of model.attention.kind in alphabetical order.
inline std::vector<std::string> attention_kinds() { return names<AttentionKind>(); }

/// Fields without a value come from the kind; fields.h documents them.
struct AttentionConfig {
  AttentionKind kind{};
  std::optional<Pairing> pairing{};
  std::optional<LambdaKind> lambda{};
  std::optional<LambdaInit> lambda_init{};
  double lambda_init_value = 0.8;  ///< only for a constant lambda_init
  std::optional<SoftmaxDenominator> softmax_denominator{};
  std::optional<bool> subln{};
  std::optional<Gate> gate{};
  bool qk_norm = false;
  double attn_logit_softcap = 0;
  double qk_clip_threshold = 0;
  Index sliding_window = 0;
  Index block_size = 0;
  Index num_selected_blocks = 0;
  BlockSelection block_selection = BlockSelection::averaged;
};

/// Returns the fields of the kind, with the fields set in `config`.
AttentionFields fields_of(const AttentionConfig& config);

/// Returns a configuration of the kind alone, with the settings of `config` that no kind sets:
/// qk_norm, soft cap, QK-clip, sliding window and blocks. With one map, maps cannot choose blocks
/// separately.
AttentionConfig plain_kind(AttentionKind kind, const AttentionConfig& config);

}  // namespace difftape
