#pragma once
// The tokens that a query sees.

#include <array>
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

/// Blocks of keys that queries read instead of all (selection.h has the definition).
struct BlockSparsity {
  Index block_size = 0;     ///< S, tokens per block, a multiple of 16; 0: dense attention
  Index num_selected = 0;   ///< n, blocks that a query reads, its own included
  bool separately = false;  ///< first and second maps choose separately
};

/// Consecutive keys that the queries of a block read, and the maps that read them.
struct KeyRun {
  Index first, count;
  std::array<bool, 2> maps{true, true};
  Index end() const { return first + count; }
  bool operator==(const KeyRun&) const = default;
};
using KeyRuns = std::vector<KeyRun>;
/// Appends a run after the last one, or extends it if both are adjacent and have the same maps.
void append_run(KeyRuns& runs, const KeyRun& run);

/// Returns (B, T, T): 0 where query t sees key s, itself included, and -inf elsewhere. For
/// attention composed of primitives, which adds it to the scores.
Tensor attention_mask(Index batch, Index seq, const Visibility& visible);

}  // namespace difftape
