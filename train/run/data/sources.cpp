// Reads the tokens of files. The build compiles the path of the Eigen headers into this file only.
#include "train/run/data/sources.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "core/digest.h"
#include "core/error.h"
#include "train/system/files.h"

namespace difftape::run {

namespace fs = std::filesystem;

DataError not_text(const fs::path& path, std::string_view text, Index zero, const char* remedy) {
  const bool utf32 = text.starts_with(std::string_view("\xFF\xFE\0\0", 4));
  if ((text.starts_with("\xFF\xFE") && !utf32) || text.starts_with("\xFE\xFF")) {
    return DataError(
        fmt::format("{}: is UTF-16, but must be UTF-8; convert it with iconv -f UTF-16 -t UTF-8",
                    path.string()));
  }
  return DataError(
      fmt::format("{}: byte {} is 0, but the file must be text; {}", path.string(), zero, remedy));
}

std::string one_or_number(std::span<const SourceFile> files) {
  return files.size() == 1 ? files[0].path.string() : fmt::format("{} files", files.size());
}

std::vector<std::string> default_text() {
  const std::filesystem::path headers = DIFFTAPE_EIGEN_HEADERS;
  for (const char* part : {"Eigen", "unsupported"}) {
    throw_if<MissingInput>(
        !system::is_folder(headers / part),
        "{}: the default text, the Eigen headers, is missing; set data.path or install "
        "libeigen3-dev",
        (headers / part).string());
  }
  return {headers / "Eigen", headers / "unsupported"};
}

static_assert(std::endian::native == std::endian::little, "stored tokens are little-endian");

namespace {

constexpr Index kPiece = Index{1} << 18;  ///< tokens per piece

/// Returns the token, or -1 if it does not fit into 31 bits.
std::int32_t token_of(auto stored) {
  return std::in_range<std::int32_t>(stored) ? static_cast<std::int32_t>(stored) : -1;
}

template <class T>
void widen(std::string_view bytes, std::span<std::int32_t> into) {
  for (size_t i = 0; i < into.size(); ++i) {
    T token;
    std::memcpy(&token, bytes.data() + i * sizeof(T), sizeof(T));
    into[i] = token_of(token);
  }
}

/// Fills `into` with the tokens from index `begin` on. Returns their stored bytes; for a file read
/// in pieces, the bytes of `into`.
std::span<const std::byte> read_tokens(const TokenFile& file, Index begin,
                                       std::span<std::int32_t> into) {
  if (file.pieces) {
    std::vector<std::int64_t> stored(into.size());
    file.pieces->read_range("tokens", begin, stored);
    std::ranges::transform(stored, into.begin(),
                           [](std::int64_t token) { return token_of(token); });
    return std::as_bytes(into);
  }
  const std::string_view bytes = file.bytes.read(
      file.offset + static_cast<size_t>(begin) * file.width, into.size() * file.width);
  if (file.width == 1 && file.is_signed) widen<std::int8_t>(bytes, into);
  if (file.width == 1 && !file.is_signed) widen<std::uint8_t>(bytes, into);
  if (file.width == 2 && file.is_signed) widen<std::int16_t>(bytes, into);
  if (file.width == 2 && !file.is_signed) widen<std::uint16_t>(bytes, into);
  if (file.width == 4) widen<std::uint32_t>(bytes, into);
  if (file.width == 8) widen<std::uint64_t>(bytes, into);
  return std::as_bytes(std::span(bytes));
}

}  // namespace

StoredTokens::StoredTokens(std::vector<TokenFile> stored, const Check& check)
    : files_(std::move(stored)) {
  Digest payload;
  std::vector<std::int32_t> tokens;
  for (TokenFile& file : files_) {
    Digest of_file, of_wide;
    for (Index at = 0; at < file.size; at += kPiece) {
      tokens.resize(std::min(kPiece, file.size - at));
      const std::span<const std::byte> bytes = read_tokens(file, at, tokens);
      payload.add(bytes);
      of_file.add(bytes);
      of_wide.add(std::as_bytes(std::span(tokens)));
      check(file, at, tokens);
    }
    if (!file.pieces) {
      const std::size_t bytes = static_cast<std::size_t>(file.size) * file.width;
      file.bytes.accept_if(file.offset, bytes, [was = of_file.hex()](std::string_view now) {
        return digest_of(now) == was;
      });
    }
    parts.push_back({file.domain, {size(), size() + file.size}, of_file.hex(), of_wide.hex()});
    ends_.push_back(size() + file.size);
  }
  files = std::ssize(files_);
  digest = payload.hex();
}

void StoredTokens::copy(Index begin, std::span<std::int32_t> into) const {
  auto file = static_cast<size_t>(std::ranges::upper_bound(ends_, begin) - ends_.begin());
  Index at = begin - (file == 0 ? 0 : ends_[file - 1]);
  for (; !into.empty(); ++file, at = 0) {
    const Index here = std::min(std::ssize(into), files_[file].size - at);
    read_tokens(files_[file], at, into.first(here));
    into = into.subspan(here);
  }
}

}  // namespace difftape::run
