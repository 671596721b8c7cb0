// Finds the files that data.path, SOURCES of `data prepare` and --data of `eval` name.
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "train/run/data/domains.h"
#include "train/run/data/sources.h"
#include "train/system/files.h"
#include "train/system/number.h"

namespace difftape::run {

namespace fs = std::filesystem;

namespace {

MissingInput cannot_read(const fs::path& path, const std::string& reason) {
  return MissingInput(fmt::format("cannot read {}: {}", path.string(), reason));
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

/// Returns true for a link that leads nowhere or in a circle.
bool is_dangling(const fs::path& path) {
  std::error_code ignored;
  return fs::is_symlink(path, ignored) && !system::is_there(path);
}

/// Returns true for a file that `data prepare` writes next to its tokens, or that it left behind
/// when it was killed.
bool is_sidecar(const fs::path& path) {
  const bool incomplete = path.extension() == system::kTemporary;
  const fs::path whole = incomplete ? fs::path(path).replace_extension() : path;
  const fs::path tokens = fs::path(whole).replace_extension(), extension = whole.extension();
  if (incomplete && (extension == ".bin" || extension == ".h5")) return true;
  return (extension == ".json" || extension == ".model") && tokens.extension() == ".bin" &&
         (incomplete || system::is_file(tokens));
}

Index size_of(const fs::path& path) {
  std::error_code gone;  // reading the file reports it
  const auto size = fs::file_size(path, gone);
  return gone ? 0 : static_cast<Index>(size);
}

/// Files below folders that are not read.
struct LeftOut {
  std::set<fs::path> hidden, sidecars;  ///< canonical paths
  std::set<fs::path> dangling;          ///< links that lead nowhere
};

/// The files below a folder. Linked folders are searched after all others, each folder once, so a
/// file is named by its path without links if it has one, and circles end.
class Walk {
 public:
  Walk(const fs::path& folder, LeftOut& left_out) : left_out_(left_out) {
    enter(folder);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const fs::path link = links_[i];  // enter() may add to links_
      if (system::is_folder(link)) enter(link);
    }
    for (const fs::path& link : links_)
      if (system::is_file(link)) take(link);
  }

  std::vector<fs::path> files, folders;

 private:
  void enter(const fs::path& folder) {
    if (!seen_.insert(fs::canonical(folder)).second) return;
    folders.push_back(folder);
    for (const fs::path& path : system::all_paths_in(folder)) {
      std::error_code ignored;
      if (is_hidden(path))
        hide(path);
      else if (is_dangling(path))
        left_out_.dangling.insert(path);
      else if (fs::is_symlink(path, ignored))
        links_.push_back(path);
      else if (system::is_folder(path))
        enter(path);
      else if (system::is_file(path))
        take(path);
    }
  }
  void take(const fs::path& file) {
    if (is_sidecar(file))
      left_out_.sidecars.insert(fs::canonical(file));
    else
      files.push_back(file);
  }
  /// Counts a hidden file, or the files below a hidden folder as far as it can be read.
  void hide(const fs::path& path) {
    std::error_code ignored;
    if (system::is_file(path)) left_out_.hidden.insert(fs::canonical(path));
    if (fs::is_symlink(path, ignored) || !system::is_folder(path)) return;
    for (const fs::path& below : system::paths_in(path)) hide(below);
  }

  LeftOut& left_out_;
  std::set<fs::path> seen_;  // by canonical path
  std::vector<fs::path> links_;
};

/// Returns the paths that match a POSIX pattern, in any order.
std::vector<fs::path> posix_matches(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, decltype(&globfree)> owner(&found, globfree);
  if (glob(pattern.c_str(), GLOB_NOSORT | GLOB_TILDE, nullptr, &found) != 0) return {};
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

/// Returns the paths that match a pattern, or the path itself if it exists under exactly that name.
/// "a/**/b" matches b in a and in every folder below it, "a/**" the folder a.
std::vector<fs::path> matches_of(const std::string& entry) {
  std::error_code error;
  if (fs::exists(entry, error)) return {entry};
  if (error) throw cannot_read(entry, error.message());
  if (is_dangling(entry)) return {entry};
  const std::string slashed = "/" + entry + "/";
  const std::size_t at = slashed.find("/**/");
  if (at == slashed.npos) return posix_matches(entry);
  const std::string before = at == 0 ? "." : entry.substr(0, at - 1);
  const std::string after = at + 3 < entry.size() ? entry.substr(at + 3) : "";
  std::vector<fs::path> matches;
  for (const fs::path& base : matches_of(before.empty() ? "/" : before)) {
    if (!system::is_folder(base)) continue;
    if (after.empty()) {
      matches.push_back(base);
      continue;
    }
    LeftOut ignored;
    for (const fs::path& folder : Walk(base, ignored).folders)
      std::ranges::copy(matches_of(system::absolute_path(after, folder)),
                        std::back_inserter(matches));
  }
  return matches;
}

std::vector<fs::path> expand(const std::string& entry) {
  std::string pattern = entry;
  const auto both_slashes = [](char a, char b) { return a == '/' && b == '/'; };
  pattern.erase(std::ranges::unique(pattern, both_slashes).begin(), pattern.end());
  std::vector<fs::path> matches = matches_of(pattern);
  if (!matches.empty()) return matches;
  const bool is_pattern = entry.find_first_of("*?[") != std::string::npos;
  throw MissingInput(
      fmt::format("{}: {}", entry, is_pattern ? "the pattern matches no file" : "no such file"));
}

/// Returns `path` if it is a file, or the files below it if it is a directory.
std::vector<fs::path> files_at(const fs::path& path, LeftOut& left_out) {
  if (system::is_file(path)) return {path};
  std::error_code error;
  throw_if<MissingInput>(is_dangling(path), "{}: is a link to {}, which does not exist; mend it",
                         path.string(), fs::read_symlink(path, error).string());
  throw_if<DataError>(!system::is_folder(path),
                      "{}: is a special file, but must be a file or a directory", path.string());
  return Walk(path, left_out).files;
}

/// Number of folders between the match of an entry and a file of it.
std::ptrdiff_t depth_below(const fs::path& match, const fs::path& file) {
  return std::distance(file.begin(), file.end()) - std::distance(match.begin(), match.end());
}

/// The matches of entries, and the files of each.
struct Matches {
  std::vector<fs::path> paths;
  std::vector<std::vector<fs::path>> files_of;

  void add(const std::string& entry, LeftOut& left_out);
  /// Returns the files by canonical path. A file that several matches contain belongs to the
  /// nearest one, and among equally near ones to the one without links.
  std::map<fs::path, SourceFile> nearest() const;
};

void Matches::add(const std::string& entry, LeftOut& left_out) {
  bool found = false;
  std::vector<fs::path> nowhere;
  for (const fs::path& match : expand(entry)) {
    if (match != entry && is_sidecar(match)) {
      left_out.sidecars.insert(fs::canonical(match));
    } else if (match != entry && is_dangling(match)) {
      nowhere.push_back(match);
    } else {
      paths.push_back(system::without_slash(match));
      files_of.push_back(files_at(match, left_out));
      found = found || !files_of.back().empty();
    }
  }
  if (!found && !nowhere.empty()) files_at(nowhere.front(), left_out);  // throws
  left_out.dangling.insert(nowhere.begin(), nowhere.end());
  throw_if<MissingInput>(!found,
                         "{}: no files; names that begin with a dot are left out; give a file, a "
                         "folder with files, or a pattern such as 'corpus/*.txt'",
                         entry);
}

std::map<fs::path, SourceFile> Matches::nearest() const {
  struct Owner {
    std::ptrdiff_t depth;
    bool through_link;
    SourceFile file;
    auto rank() const { return std::tie(depth, through_link, file.path.native()); }
  };
  const std::vector<std::string> domains = domain_names(paths);
  std::map<fs::path, Owner> owners;
  for (size_t i = 0; i < paths.size(); ++i) {
    const fs::path folder = fs::canonical(paths[i]);
    for (const fs::path& file : files_of[i]) {
      const fs::path canonical = fs::canonical(file);
      const bool through_link = *canonical.lexically_relative(folder).begin() == "..";
      const std::ptrdiff_t depth = depth_below(paths[i], file);
      Owner owner{depth, through_link, {file, domains[i], depth > 0}};
      const auto [known, is_new] = owners.try_emplace(canonical, owner);
      if (!is_new && owner.rank() < known->second.rank()) known->second = std::move(owner);
    }
  }
  std::map<fs::path, SourceFile> named;
  for (auto& [canonical, owner] : owners) named.emplace(canonical, std::move(owner.file));
  return named;
}

}  // namespace

SourceFiles find_source_files(std::span<const std::string> entries) {
  std::vector<std::string> fallback;
  if (entries.empty()) entries = fallback = default_text();

  Matches matches;
  LeftOut left_out;
  for (const std::string& entry : entries) matches.add(entry, left_out);
  SourceFiles all;
  const std::map<fs::path, SourceFile> named = matches.nearest();
  for (const auto& [canonical, file] : named) {
    all.bytes += size_of(canonical);
    all.files.push_back(file);
  }
  const auto count = [&](const std::set<fs::path>& paths) {
    Index files = 0;
    for (const fs::path& path : paths) {
      if (named.contains(path)) continue;
      ++files;
      all.left_out_bytes += size_of(path);
    }
    return files;
  };
  all.hidden = count(left_out.hidden);
  all.sidecars = count(left_out.sidecars);
  all.dangling.assign(left_out.dangling.begin(), left_out.dangling.end());
  std::ranges::sort(all.files, {}, [](const SourceFile& file) { return file.path.native(); });
  return all;
}

std::string SourceFiles::note() const {
  using system::grouped;
  const Index read = std::ssize(files) - lines, left_out = hidden + sidecars + lines;
  std::string note =
      fmt::format("{} of {} files, {} of {} bytes", grouped(read), grouped(read + left_out),
                  grouped(bytes), grouped(bytes + left_out_bytes));
  std::vector<std::string> reasons;
  if (hidden > 0) reasons.push_back(fmt::format("{} hidden", grouped(hidden)));
  if (sidecars > 0) reasons.push_back(fmt::format("{} of `data prepare`", grouped(sidecars)));
  if (lines > 0) reasons.push_back(fmt::format("{} of JSON lines", grouped(lines)));
  if (!dangling.empty()) {
    constexpr std::size_t kNamed = 3;
    std::vector<std::string> names;
    for (const fs::path& link : std::span(dangling).first(std::min(kNamed, dangling.size())))
      names.push_back(link.string());
    reasons.push_back(
        fmt::format("{} that lead{} nowhere: {}{}",
                    dangling.size() == 1 ? "1 link" : grouped(std::ssize(dangling)) + " links",
                    dangling.size() == 1 ? "s" : "", fmt::join(names, ", "),
                    dangling.size() > kNamed ? ", ..." : ""));
  }
  return reasons.empty() ? note : fmt::format("{}; left out: {}", note, fmt::join(reasons, "; "));
}

}  // namespace difftape::run
