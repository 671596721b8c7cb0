// The place of the Eigen headers, which the build compiles into this file alone.
#include "train/run/data/sources.h"

#include <glob.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <system_error>

#include "core/error.h"

namespace difftape::run {

namespace fs = std::filesystem;

namespace {

MissingInput cannot_read(const fs::path& path, const std::string& reason) {
  return MissingInput(fmt::format("cannot read {}: {}", path.string(), reason));
}

/// Paths that match a pattern; the path itself if it exists under exactly that name.
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

/// `path` if it is a file, the files below it if it is a directory.
std::vector<fs::path> files_at(const fs::path& path) {
  std::error_code error;
  if (fs::is_regular_file(path, error)) return {path};
  if (!fs::is_directory(path, error)) {
    throw DataError(fmt::format("{}: neither a file nor a directory", path.string()));
  }
  std::vector<fs::path> files;
  fs::recursive_directory_iterator at(path, error), end;
  for (; !error && at != end; at.increment(error)) {
    if (hidden(at->path())) {
      at.disable_recursion_pending();
    } else if (at->is_regular_file(error)) {
      files.push_back(at->path());
    }
  }
  if (error) throw cannot_read(path, error.message());
  return files;
}

/// What the files at a path that an entry names are called together.
std::string domain_of(const fs::path& path) {
  std::error_code error;
  if (!fs::is_directory(path, error)) return path.stem().string();
  return fs::canonical(path).filename().string();
}

}  // namespace

std::vector<SourceFile> find_source_files(std::span<const std::string> entries) {
  std::vector<std::string> fallback;
  if (entries.empty()) entries = fallback = default_text();

  std::map<fs::path, SourceFile>
      named;  // by canonical path: a file that two entries name counts once
  for (const std::string& entry : entries) {
    for (const fs::path& match : expand(entry)) {
      const std::string domain = domain_of(match);
      for (const fs::path& file : files_at(match))
        named.emplace(fs::canonical(file), SourceFile{file, domain});
    }
  }
  std::vector<SourceFile> files;
  for (auto& [canonical, file] : named) files.push_back(std::move(file));
  std::ranges::sort(files, {}, [](const SourceFile& file) { return file.path.native(); });
  return files;
}

std::vector<std::int32_t> bytes_of(std::string_view text) {
  std::vector<std::int32_t> bytes;
  for (const char c : text) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

std::string text_of(std::span<const std::int32_t> bytes) {
  std::string text;
  for (const std::int32_t byte : bytes) text += static_cast<char>(byte);
  return text;
}

std::string one_or_number(std::span<const SourceFile> files) {
  return files.size() == 1 ? files[0].path.string() : fmt::format("{} files", files.size());
}

std::vector<std::string> default_text() {
  const std::filesystem::path headers = DIFFTAPE_EIGEN_HEADERS;
  for (const char* part : {"Eigen", "unsupported"}) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(headers / part, ignored)) {
      throw MissingInput(fmt::format(
          "the default text, the headers of Eigen, is not on this machine: no directory {}; set "
          "data.path or install libeigen3-dev",
          (headers / part).string()));
    }
  }
  return {headers / "Eigen", headers / "unsupported"};
}

}  // namespace difftape::run
