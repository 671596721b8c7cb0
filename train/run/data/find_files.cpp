// Finds the files that data.path, SOURCES of `data prepare` and --data of `eval` name.
#include <fmt/ranges.h>
#include <glob.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <system_error>
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

/// Returns true for a file that `data prepare` writes next to its tokens.
bool is_sidecar(const fs::path& path) {
  const fs::path tokens = fs::path(path).replace_extension(), extension = path.extension();
  return (extension == ".json" || extension == ".model") && tokens.extension() == ".bin" &&
         system::is_file(tokens);
}

Index size_of(const fs::path& path) {
  std::error_code gone;  // reading the file reports it
  const auto size = fs::file_size(path, gone);
  return gone ? 0 : static_cast<Index>(size);
}

/// The files below a folder. Linked folders are searched after all others, each folder once, so a
/// file is named by its path without links if it has one, and circles end.
class Walk {
 public:
  explicit Walk(const fs::path& folder, bool list_folders = false) : list_folders_(list_folders) {
    enter(folder);
    for (std::size_t i = 0; i < links_.size(); ++i) {
      const fs::path link = links_[i];  // enter() may add to links_
      if (system::is_folder(link)) enter(link);
    }
    for (const fs::path& link : links_)
      if (system::is_file(link)) take(link);
  }

  std::vector<fs::path> files, folders;
  SourceFiles left_out;

 private:
  void enter(const fs::path& folder) {
    if (!seen_.insert(fs::canonical(folder)).second) return;
    if (list_folders_) folders.push_back(folder);
    for (const fs::path& path : system::all_paths_in(folder)) {
      std::error_code ignored;
      if (is_hidden(path))
        leave_out(path, left_out.hidden);
      else if (is_dangling(path))
        left_out.dangling.push_back(path);
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
      leave_out(file, left_out.sidecars);
    else
      files.push_back(file);
  }
  void leave_out(const fs::path& path, Index& count) {
    if (!system::is_file(path)) return;
    ++count;
    left_out.left_out_bytes += size_of(path);
  }

  bool list_folders_;
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
    for (const fs::path& folder : Walk(base, true).folders)
      std::ranges::copy(matches_of(system::absolute_path(after, folder)),
                        std::back_inserter(matches));
  }
  return matches;
}

std::vector<fs::path> expand(const std::string& entry) {
  std::vector<fs::path> matches = matches_of(entry);
  if (!matches.empty()) return matches;
  const bool pattern = entry.find_first_of("*?[") != std::string::npos;
  throw MissingInput(
      fmt::format("{}: {}", entry, pattern ? "the pattern matches no file" : "no such file"));
}

/// Returns `path` if it is a file, or the files below it if it is a directory.
std::vector<fs::path> files_at(const fs::path& path, SourceFiles& all) {
  if (system::is_file(path)) return {path};
  std::error_code error;
  throw_if<MissingInput>(is_dangling(path), "{}: is a link to {}, which does not exist; mend it",
                         path.string(), fs::read_symlink(path, error).string());
  throw_if<DataError>(!system::is_folder(path),
                      "{}: is a special file, but must be a file or a directory", path.string());
  Walk walk(path);
  all.hidden += walk.left_out.hidden;
  all.sidecars += walk.left_out.sidecars;
  all.left_out_bytes += walk.left_out.left_out_bytes;
  std::ranges::copy(walk.left_out.dangling, std::back_inserter(all.dangling));
  return std::move(walk.files);
}

}  // namespace

SourceFiles find_source_files(std::span<const std::string> entries) {
  std::vector<std::string> fallback;
  if (entries.empty()) entries = fallback = default_text();

  SourceFiles all;
  std::vector<fs::path> matches;
  std::vector<std::vector<fs::path>> files_of;  // by match
  for (const std::string& entry : entries) {
    bool found = false;
    for (const fs::path& match : expand(entry)) {
      if (match != entry && is_sidecar(match)) {
        ++all.sidecars;
        all.left_out_bytes += size_of(match);
        continue;
      }
      matches.push_back(match);
      files_of.push_back(files_at(match, all));
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
    for (const fs::path& file : files_of[i]) {
      const bool in_folder = file != matches[i];
      const auto known =
          named.emplace(fs::canonical(file), SourceFile{file, domains[i], in_folder});
      if (!in_folder) known.first->second.in_folder = false;
    }
  for (auto& [canonical, file] : named) {
    all.bytes += size_of(canonical);
    all.files.push_back(std::move(file));
  }
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
