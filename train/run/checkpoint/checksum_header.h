#pragma once
// The first 512 bytes of a checkpoint: one line of text with the digest of all that follows, so
// that damage is found before HDF5 reads a byte. HDF5 readers skip this user block.

#include <cstddef>
#include <filesystem>
#include <span>

namespace difftape::run {

inline constexpr std::size_t kChecksumHeaderSize = 512;

/// Writes the line "difftape-checkpoint xxh3-128 <32 hex digits> <bytes that follow>" into the
/// first kChecksumHeaderSize bytes of a file image, padded with spaces.
void write_checksum_header(std::span<std::byte> image);

/// Checks a file against its checksum header. Throws MissingInput if it cannot be read and
/// DataError if it is not a checkpoint, is cut off or is damaged.
void verify_checksum_header(const std::filesystem::path& path);

}  // namespace difftape::run
