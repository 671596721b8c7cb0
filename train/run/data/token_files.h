#pragma once
// Files of tokens that other programs wrote.
//
//   nanoGPT .bin   uint16, nothing else
//   llm.c .bin     256 int32: magic 20240520, version 1, number of tokens; then uint16
//                  or magic 20240801, version 7, number of tokens; then uint32
//   HDF5           dataset /tokens with one axis, of any whole-number type
//
// All little-endian. A .bin that begins with one of llm.c's magic numbers is llm.c's; as nanoGPT
// these would be tokens above 55,000, which GPT-2's vocabulary does not have.

#include <filesystem>
#include <string>

#include "core/real.h"

namespace difftape::run {

/// The tokens of a file, as it stores them: they are read whole and not widened.
struct TokenFile {
  std::filesystem::path path;
  std::string format;      ///< "nanoGPT .bin", for messages
  std::string bytes;       ///< the file, or for HDF5 its dataset as int32
  std::size_t offset = 0;  ///< of the first token in `bytes`
  std::size_t width = 2;   ///< bytes a token

  Index size() const { return static_cast<Index>((bytes.size() - offset) / width); }
  /// Token i; those that do not fit into 31 bits are negative.
  std::int32_t operator[](Index i) const;
};

/// Throws MissingInput if it cannot be read and DataError, with the file and what was expected, if
/// it is damaged, cut off, of another version or empty.
TokenFile read_token_file(const std::filesystem::path& path);

}  // namespace difftape::run
