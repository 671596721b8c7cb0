#pragma once
// The attention kinds by name, and the attention of a configuration: a kind, and what is set beside
// it.

#include <concepts>
#include <optional>
#include <span>

#include "layers/attention/fields.h"

namespace difftape {

/// A row of the table in kinds.cpp.
class AttentionKind {
 public:
  /// The baseline, softmax.
  AttentionKind() : AttentionKind("softmax") {}
  /// Throws ConfigError for a name that no row has.
  template <std::convertible_to<std::string_view> Text>
  AttentionKind(const Text& name) : row_(find(name)) {}

  std::string_view name() const;
  /// The article or report that describes it.
  std::string_view source() const;
  const AttentionFields& fields() const;
  /// Every kind with its name, in alphabetical order.
  static std::span<const Named<AttentionKind>> named();
  bool operator==(const AttentionKind&) const = default;

 private:
  struct Row;
  explicit AttentionKind(const Row* row) : row_(row) {}
  static std::span<const Row> rows();
  static const Row* find(std::string_view name);
  const Row* row_;
};

/// The rows of the table in their order.
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
  double logit_softcap = 0;
  double qk_clip = 0;
  Index sliding_window = 0;
};

/// The fields of the kind, with those that are set beside it.
AttentionFields fields_of(const AttentionConfig& config);

/// The kind alone, with what no kind decides as in `config`: qk_norm, the soft cap, QK-clip and
/// the sliding window.
AttentionConfig plain_kind(AttentionKind kind, const AttentionConfig& config);

}  // namespace difftape
