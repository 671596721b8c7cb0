#include "train/run/data/sources.h"

#include <glob.h>

#include <algorithm>
#include <map>
#include <memory>
#include <system_error>

#include "core/error.h"
#include "train/system/files.h"

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

}  // namespace

std::vector<fs::path> find_sources(std::span<const std::string> entries) {
  std::vector<std::string> fallback;
  if (entries.empty()) entries = fallback = default_text();

  std::map<fs::path, fs::path>
      named;  // by canonical path: a file that two entries name counts once
  for (const std::string& entry : entries) {
    for (const fs::path& match : expand(entry)) {
      for (const fs::path& file : files_at(match)) named.emplace(fs::canonical(file), file);
    }
  }
  std::vector<fs::path> files;
  for (const auto& [canonical, file] : named) files.push_back(file);
  std::ranges::sort(files, {}, [](const fs::path& file) { return file.native(); });
  return files;
}

std::string read_sources(std::span<const fs::path> files) {
  std::string text;
  for (const fs::path& file : files) text += system::read_text(file);
  return text;
}

}  // namespace difftape::run
