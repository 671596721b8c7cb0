#pragma once
// Finds text that documents share: near-duplicates to drop, documents to hold out, and the overlap
// of held-out documents with training. Strings of kSharedBytes bytes within documents are compared
// by 64-bit hashes.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/real.h"

namespace difftape::run {

/// Minimum length of a common string that counts as shared, bytes. Lee et al. 2022, "Deduplicating
/// training data makes language models better", use 50 tokens.
inline constexpr Index kSharedBytes = 50;

/// Size and digest of a document or a group of documents.
struct DocumentFacts {
  Index bytes = 0;
  std::string digest;  ///< XXH3 of the text or of the name of the group
};

/// Callback that returns the text of document i, the same on every call.
using ReadDocument = std::function<std::string_view(std::size_t i)>;

/// Returns which documents to drop: exact duplicates, and documents with more than `fraction` of
/// their bytes in strings shared with kept documents. It goes from the longest document to the
/// shortest, with ties in order of digests, so a document contained in a longer one is dropped
/// regardless of the order of files and domains. One in 2^sampling strings is compared, chosen by
/// its hash, and fewer above 256 Mi strings; coverage is then an estimate. Memory is 8 bytes per
/// compared string, at most 2 GiB, again 8 bytes per string of the longest document, and 32 MiB.
std::vector<bool> find_near_duplicates(std::span<const DocumentFacts> documents, double fraction,
                                       int sampling, const ReadDocument& read);

/// Returns which documents to hold out: in order of digests, each document that brings the number
/// of held-out bytes closer to `fraction` of all bytes.
std::vector<bool> choose_held_out(std::span<const DocumentFacts> documents, double fraction);

/// Returns true if `bytes` is between 0.5 and 1.5 times `wanted`.
inline bool is_about(double bytes, double wanted) {
  return bytes >= wanted / 2 && bytes <= wanted * 3 / 2;
}

/// Returns for each document of `held_out` the number of bytes in strings shared with a document of
/// `train`; both are lists of document indices. The count is exact up to hash collisions for at
/// most 256 MiB of held-out text, and estimated from a sample above. Memory is 8 bytes per held-out
/// byte, at most 2 GiB, and 32 MiB.
std::vector<Index> count_shared_bytes(std::span<const std::size_t> train,
                                      std::span<const std::size_t> held_out,
                                      const ReadDocument& read);

/// Size of a held-out document and its bytes shared with training.
struct Overlap {
  Index bytes = 0, shared = 0;
};

/// Returns which documents to drop, in descending order of their shared fraction, until at most a
/// fraction `most` of the remaining bytes is shared.
std::vector<bool> choose_overlapping(std::span<const Overlap> held_out, double most);

}  // namespace difftape::run
