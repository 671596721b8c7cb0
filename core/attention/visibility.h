#pragma once
// Which tokens a query sees.

#include <cstdint>
#include <memory>
#include <vector>

#include "core/tensor.h"

namespace difftape {

/// Packed documents: for each token of (B, T) the position in its row at which its document begins,
/// from 0 and never decreasing. Null: every row is one document.
using DocumentOffsets = std::shared_ptr<const std::vector<std::int32_t>>;

/// Which of the tokens up to itself a query sees.
struct Visibility {
  /// Itself and the window - 1 tokens before (Beltagy et al. 2020); 0: all.
  Index sliding_window = 0;
  DocumentOffsets document_offsets{};  ///< a query sees its own document only

  /// Returns the first position that a query sees. `position` is its own in its sequence, `token`
  /// its index in document_offsets.
  Index first_visible(Index position, Index token) const;
};

/// Returns (B, T, T): 0 where query t sees key s, itself included, and -inf where it does not. It
/// is added to the scores of attention that is composed of primitives; the fused kernel has no such
/// tensor.
Tensor attention_mask(Index batch, Index seq, const Visibility& visible);

}  // namespace difftape
