#pragma once
// Text that documents share: near-duplicates among them, which of them to hold out, and how much of
// the held-out ones occurs in training, too. All by 64-bit hashes of strings of kSharedBytes bytes,
// within documents.

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/real.h"

namespace difftape::run {

/// A string of at least so many bytes that two documents have in common is shared by them (Lee et
/// al. 2022, "Deduplicating training data makes language models better", take 50 tokens).
inline constexpr Index kSharedBytes = 50;

/// What decides about a document, or a group of documents, before its text does.
struct DocumentFacts {
  Index bytes = 0;
  std::string digest;  ///< XXH3 of the text or of the name of the group
};

/// The text of document i; the same whenever it is asked for.
using ReadDocument = std::function<std::string_view(std::size_t i)>;

/// Which documents to drop: those of which more than `fraction` of the bytes lie in strings shared
/// with documents that are kept, and repetitions of an equal one. Documents are kept from the
/// longest to the shortest, equally long ones in the order of their digests: what is contained in
/// a longer document goes, whichever file or domain comes first. Of 2^sampling strings one is
/// looked at, chosen by its hash, and of more than 256 Mi strings so many fewer; coverage is then
/// an estimate. Memory is 8 bytes a string, 2 GiB at most, and as much for the longest document.
std::vector<bool> find_near_duplicates(std::span<const DocumentFacts> documents, double fraction,
                                       int sampling, const ReadDocument& read);

/// Which documents to hold out: in the order of their digests each that brings the bytes held out
/// nearer to `fraction` of all. A function of the documents and `fraction` alone.
std::vector<bool> choose_held_out(std::span<const DocumentFacts> documents, double fraction);

/// Whether so many bytes are at least half and at most one and a half times what was wanted.
inline bool is_about(double bytes, double wanted) {
  return bytes >= wanted / 2 && bytes <= wanted * 3 / 2;
}

/// Of each document of `held_out` the bytes within strings shared with a document of `train`; both
/// are numbers of documents. Exact but for collisions of hashes up to 256 MiB
/// held out, an estimate by a sample beyond; memory is 8 bytes a held-out byte, 2 GiB at most.
std::vector<Index> count_shared_bytes(std::span<const std::size_t> train,
                                      std::span<const std::size_t> held_out,
                                      const ReadDocument& read);

/// A held-out document.
struct Overlap {
  Index bytes = 0, shared = 0;  ///< shared: by training
};

/// Which of them to drop, those first of which the largest fraction is shared, until no more than
/// `most` of the bytes of the others together is.
std::vector<bool> choose_overlapping(std::span<const Overlap> held_out, double most);

}  // namespace difftape::run
