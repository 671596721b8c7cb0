#include "train/run/checkpoint/checksum_header.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "core/digest.h"
#include "core/error.h"

namespace difftape::run {

namespace {

constexpr std::string_view kMagic = "difftape-checkpoint";

std::string header_text(const std::string& digest, std::size_t bytes) {
  const std::string line = fmt::format("{} xxh3-128 {} {}", kMagic, digest, bytes);
  return fmt::format("{:<{}}\n", line, kChecksumHeaderSize - 1);
}

/// What is on the disk, and what its header says should be there.
struct Found {
  std::string header;
  std::string digest;
  std::size_t bytes = 0;  // after the header
};

Found read_file(const std::filesystem::path& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"),
                                                             std::fclose);
  const auto cannot_read = [&path] {
    return MissingInput(fmt::format("cannot read checkpoint {}: {}", path.string(),
                                    std::generic_category().message(errno)));
  };
  if (file == nullptr) throw cannot_read();
  Found found;
  found.header.resize(kChecksumHeaderSize);
  found.header.resize(std::fread(found.header.data(), 1, kChecksumHeaderSize, file.get()));
  Digest digest;
  std::vector<std::byte> block(1 << 20);
  while (const std::size_t n = std::fread(block.data(), 1, block.size(), file.get())) {
    digest.add(std::span(block).first(n));
    found.bytes += n;
  }
  if (std::ferror(file.get()) != 0) throw cannot_read();
  found.digest = digest.hex();
  return found;
}

}  // namespace

void write_checksum_header(std::span<std::byte> image) {
  Digest digest;
  digest.add(image.subspan(kChecksumHeaderSize));
  const std::string text = header_text(digest.hex(), image.size() - kChecksumHeaderSize);
  std::ranges::copy(std::as_bytes(std::span(text)), image.begin());
}

void verify_checksum_header(const std::filesystem::path& path) {
  const Found found = read_file(path);
  if (!found.header.starts_with(kMagic)) {
    throw DataError(fmt::format("{} is not a difftape checkpoint: it does not begin with '{}'",
                                path.string(), kMagic));
  }
  std::istringstream words(found.header);
  std::string magic, algorithm, digest;
  std::size_t bytes = 0;
  words >> magic >> algorithm >> digest >> bytes;
  if (found.header.size() < kChecksumHeaderSize || found.bytes < bytes) {
    throw DataError(
        fmt::format("checkpoint {} is cut off: {} bytes are there, {} were written; use another "
                    "checkpoint of the run",
                    path.string(), found.header.size() + found.bytes,
                    bytes == 0 ? "more" : std::to_string(kChecksumHeaderSize + bytes)));
  }
  if (found.header != header_text(found.digest, found.bytes)) {
    throw DataError(
        fmt::format("checkpoint {} is damaged: its {} bytes of digest {} do not match its first "
                    "line; use another checkpoint of the run",
                    path.string(), found.bytes, found.digest));
  }
}

}  // namespace difftape::run
