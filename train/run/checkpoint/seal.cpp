#include "train/run/checkpoint/seal.h"

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

std::string seal_text(const std::string& digest, std::size_t bytes) {
  const std::string line = fmt::format("{} xxh3-128 {} {}", kMagic, digest, bytes);
  return fmt::format("{:<{}}\n", line, kSealSize - 1);
}

/// What is on the disk, and what its seal says should be there.
struct Found {
  std::string seal;
  std::string digest;
  std::size_t bytes = 0;  // after the seal
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
  found.seal.resize(kSealSize);
  found.seal.resize(std::fread(found.seal.data(), 1, kSealSize, file.get()));
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

void seal(std::span<std::byte> image) {
  Digest digest;
  digest.add(image.subspan(kSealSize));
  const std::string text = seal_text(digest.hex(), image.size() - kSealSize);
  std::ranges::copy(std::as_bytes(std::span(text)), image.begin());
}

void verify_seal(const std::filesystem::path& path) {
  const Found found = read_file(path);
  if (!found.seal.starts_with(kMagic)) {
    throw DataError(fmt::format("{} is not a difftape checkpoint: it does not begin with '{}'",
                                path.string(), kMagic));
  }
  std::istringstream words(found.seal);
  std::string magic, algorithm, digest;
  std::size_t bytes = 0;
  words >> magic >> algorithm >> digest >> bytes;
  if (found.seal.size() < kSealSize || found.bytes < bytes) {
    throw DataError(
        fmt::format("checkpoint {} is cut off: {} bytes are there, {} were written; use another "
                    "checkpoint of the run",
                    path.string(), found.seal.size() + found.bytes,
                    bytes == 0 ? "more" : std::to_string(kSealSize + bytes)));
  }
  if (found.seal != seal_text(found.digest, found.bytes)) {
    throw DataError(
        fmt::format("checkpoint {} is damaged: its {} bytes of digest {} do not match its first "
                    "line; use another checkpoint of the run",
                    path.string(), found.bytes, found.digest));
  }
}

}  // namespace difftape::run
