#pragma once
// The first 512 bytes of a checkpoint: one line of text that tells the digest of all that follows,
// so that damage is found before HDF5 reads a byte. HDF5 readers skip this user block.

#include <cstddef>
#include <filesystem>
#include <span>

namespace difftape::run {

inline constexpr std::size_t kSealSize = 512;

/// Writes the line "difftape-checkpoint xxh3-128 <32 hex digits> <bytes that follow>" into the
/// first kSealSize bytes of a file image, padded with spaces.
void seal(std::span<std::byte> image);

/// Checks a file against its seal. Throws MissingInput if it cannot be read and DataError if it is
/// not a checkpoint, is cut off or is damaged.
void verify_seal(const std::filesystem::path& path);

}  // namespace difftape::run
