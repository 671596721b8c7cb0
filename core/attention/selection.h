#pragma once
// Block-sparse attention: queries read chosen blocks of keys (BlockSparsity in visibility.h).
//
// A sequence is cut into blocks of S tokens. All queries of block i read their own block and the
// n - 1 earlier blocks with the highest pooled scores. Let q be the first query of block i. The
// score of block j is q . mean(k) over the keys of block j that q sees, with norm and RoPE, without
// scale and cap. It is the mean of q . k over the block (MoBA, Lu et al. 2025). The query heads of
// a group (HeadMapping::groups) read the same blocks (NSA, Yuan et al. 2025). Scores are summed
// over all of its heads, or over first and second maps separately. On a tie the later block wins.
//
// The first query decides because a choice must not depend on later tokens. A choice is piecewise
// constant in q and k, so no gradient flows through it.

#include <array>
#include <span>
#include <vector>

#include "core/attention/attention.h"
#include "core/attention/cache.h"

namespace difftape {

/// Returns the position in HeadMapping::groups of each output head.
std::vector<Index> groups_of_heads(const HeadMapping& mapping);

/// The keys that the queries of one sequence read in the output heads of one group.
class KeySelection {
 public:
  /// Reads all keys.
  KeySelection() = default;
  /// Chooses for every block of queries unless in.blocks is dense.
  KeySelection(const AttentionInputs& in, Index b, std::span<const Index> group);

  /// Returns the chosen keys before the block of query t, in order.
  const KeyRuns& before(Index t) const { return runs_[t / block_size_]; }
  /// Returns true if the queries in the block of t read all keys that they see.
  bool reads_all(Index t) const { return all_[t / block_size_]; }
  /// Returns true if query t reads key s <= t in a map. Ignores visibility.
  bool reads(Index map, Index t, Index s) const;

 private:
  Index block_size_ = 0;
  std::vector<KeyRuns> runs_;  ///< of each block of queries
  std::vector<bool> all_;      ///< for each block: all earlier keys that are visible
};

/// Keeps the choice of the last block of queries in the cache, for the tokens that follow. Call it
/// after attention_forward of `in`, whose tokens must be the only ones in the cache.
void keep_selection(const AttentionInputs& in, KvCache& cache);

/// Chooses the blocks that the queries of in.q read from token `token` on. This token is the first
/// of its block and at `position` in the cache.
KeyRuns select_cached(const AttentionInputs& in, const KvCache& cache, Index b,
                      std::span<const Index> group, Index token, Index position);

}  // namespace difftape
