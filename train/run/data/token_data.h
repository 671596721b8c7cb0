#pragma once
// data.kind tokens: files of tokens that other programs wrote.
//
//   nanoGPT .bin   uint16, nothing else
//   llm.c .bin     256 int32: magic 20240520, version 1, number of tokens; then uint16
//                  or magic 20240801, version 7, number of tokens; then uint32
//   HDF5           dataset /tokens with one axis, of any whole-number type
//
// All little-endian. A .bin that begins with one of llm.c's magic numbers is llm.c's; as nanoGPT
// these would be tokens above 55,000, which GPT-2's vocabulary does not have.

#include <memory>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// Reads the files of data.path, one after the other in the order of find_sources. Throws
/// MissingInput, and DataError for a file that cannot be used, a token that is not in
/// [0, vocab_size), with its place, and fewer tokens than one sequence of each part.
std::unique_ptr<Dataset> make_token_data(const DataConfig& config, Index vocab_size,
                                         std::uint64_t seed);

}  // namespace difftape::run
