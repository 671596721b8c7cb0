#pragma once
// The tokens that a query sees.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace difftape {

/// Packed documents: for each token of (B, T) the position in its sequence where its document
/// begins, from 0 and never decreasing. Null: every sequence is one document.
using DocumentOffsets = std::shared_ptr<const std::vector<std::int32_t>>;

/// The part of the causal past that a query sees.
struct Visibility {
  /// Itself and the window - 1 tokens before it (Beltagy et al. 2020); 0: all.
  Index sliding_window = 0;
  DocumentOffsets document_offsets{};  ///< limits a query to its own document

  /// Returns the first position that a query sees. `position` is its position in its sequence,
  /// `token` its index in document_offsets.
  Index first_visible(Index position, Index token) const;
};

/// Returns (B, T, T): 0 where query t sees key s, itself included, and -inf elsewhere. For
/// attention composed of primitives, which adds it to the scores.
Tensor attention_mask(Index batch, Index seq, const Visibility& visible);

}  // namespace difftape
