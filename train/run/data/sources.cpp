// Finds and reads the files of data.path. The build compiles the path of the Eigen headers into
// this file only.
#include "train/run/data/sources.h"

#include <glob.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "core/digest.h"
#include "core/error.h"
#include "train/run/data/domains.h"
#include "train/system/files.h"

namespace difftape::run {

namespace fs = std::filesystem;

namespace {

MissingInput cannot_read(const fs::path& path, const std::string& reason) {
  return MissingInput(fmt::format("cannot read {}: {}", path.string(), reason));
}

/// Returns the paths that match a pattern, or the path itself if it exists under exactly that name.
std::vector<fs::path> expand(const std::string& entry) {
  std::error_code error;
  if (fs::exists(entry, error)) return {entry};
  if (error) throw cannot_read(entry, error.message());
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, globfree);
  if (glob(entry.c_str(), GLOB_NOSORT | GLOB_TILDE, nullptr, &found) != 0) {
    const bool pattern = entry.find_first_of("*?[") != std::string::npos;
    throw MissingInput(
        fmt::format("{}: {}", entry, pattern ? "the pattern matches no file" : "no such file"));
  }
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

bool hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// Returns `path` if it is a file, or the files below it if it is a directory.
std::vector<fs::path> files_at(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  throw_if<DataError>(!fs::is_directory(path, error),
                      "{}: is a special file, but must be a file or a directory", path.string());
  std::vector<fs::path> files;
  fs::recursive_directory_iterator at(path, error), end;
  for (; !error && at != end; at.increment(error))
    if (hidden(at->path()))
      at.disable_recursion_pending();
    else if (at->is_regular_file(error))
      files.push_back(at->path());
  if (error) throw cannot_read(path, error.message());
  return files;
}

}  // namespace

std::vector<SourceFile> find_source_files(std::span<const std::string> entries) {
  std::vector<std::string> fallback;
  if (entries.empty()) entries = fallback = default_text();

  std::vector<fs::path> matches;
  std::vector<std::vector<fs::path>> files_of;  // by match
  for (const std::string& entry : entries) {
    bool found = false;
    for (const fs::path& match : expand(entry)) {
      matches.push_back(match);
      files_of.push_back(files_at(match));
      found = found || !files_of.back().empty();
    }
    throw_if<MissingInput>(!found,
                           "{}: no files; names that begin with a dot are left out; give a file, a "
                           "folder with files, or a pattern such as 'corpus/*.txt'",
                           entry);
  }
  const std::vector<std::string> domains = domain_names(matches);
  std::map<fs::path, SourceFile>
      named;  // by canonical path: a file that two entries name counts once
  for (size_t i = 0; i < matches.size(); ++i)
    for (const fs::path& file : files_of[i])
      named.emplace(fs::canonical(file), SourceFile{file, domains[i]});
  std::vector<SourceFile> files;
  for (auto& [canonical, file] : named) files.push_back(std::move(file));
  std::ranges::sort(files, {}, [](const SourceFile& file) { return file.path.native(); });
  return files;
}

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
  if (file.width == 1) widen<std::uint8_t>(bytes, into);
  if (file.width == 2) widen<std::uint16_t>(bytes, into);
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
    Digest of_file;
    for (Index at = 0; at < file.size; at += kPiece) {
      tokens.resize(std::min(kPiece, file.size - at));
      const std::span<const std::byte> bytes = read_tokens(file, at, tokens);
      payload.add(bytes);
      of_file.add(bytes);
      check(file, at, tokens);
    }
    if (!file.pieces) {
      const std::size_t bytes = static_cast<std::size_t>(file.size) * file.width;
      file.bytes.accept_if(file.offset, bytes, [was = of_file.hex()](std::string_view now) {
        return digest_of(now) == was;
      });
    }
    parts.push_back({file.domain, {size(), size() + file.size}, of_file.hex()});
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
