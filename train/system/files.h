#pragma once
// Reads and writes text files, whole or line by line, with errors that name the file. Locks
// directories for one process at a time.

#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace difftape::system {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
/// A C stream with RAII.
using File = std::unique_ptr<std::FILE, CloseFile>;

/// A file descriptor with RAII. Calls interrupted by a signal are repeated.
class Descriptor {
 public:
  /// Opens a file with open(2). On failure is_open() is false and errno is set.
  Descriptor(const std::filesystem::path& path, int flags);
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Each returns false and sets errno on failure; `write` may then have written a part.
  bool write(std::string_view bytes);
  bool sync();
  bool close();

 private:
  int number_;
};

// Predicates of paths; false for paths that cannot be examined.
inline bool is_there(const std::filesystem::path& path, std::error_code ignored = {}) {
  return std::filesystem::exists(path, ignored);
}
inline bool is_folder(const std::filesystem::path& path, std::error_code ignored = {}) {
  return std::filesystem::is_directory(path, ignored);
}
inline bool is_file(const std::filesystem::path& path, std::error_code ignored = {}) {
  return std::filesystem::is_regular_file(path, ignored);
}
/// Returns the paths in a directory, as far as it can be read, in any order.
std::vector<std::filesystem::path> paths_in(const std::filesystem::path& directory);
/// Returns all paths in a directory in byte order. Throws MissingInput if it cannot be read.
std::vector<std::filesystem::path> all_paths_in(const std::filesystem::path& directory);
/// Creates a directory and its parents unless it exists. Throws OutputError.
void make_folder(const std::filesystem::path& directory);

/// Reads a whole regular file; other files, such as devices, are rejected because they may never
/// end. Throws MissingInput with the path and the reason.
std::string read_text(const std::filesystem::path& path);

/// Calls f(line, end) for every line that ends in a newline. `line` excludes the newline; `end` is
/// the offset after it. Only one line is in memory. Throws as read_text does, and what f throws.
void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view, std::size_t)>& f);

/// Returns the last line that ends in a newline, without it; empty if there is none. Reads the end
/// of the file only. Throws as read_text does.
std::string last_line_of(const std::filesystem::path& path);

// The functions and classes below never write through a symbolic link.

/// Extension of incomplete files.
inline constexpr const char* kTemporary = ".tmp";

/// A file that is written piece by piece and appears atomically. It has a temporary name next to
/// `path` until commit() syncs it and renames it over `path`. Without commit() it is removed. Each
/// function throws OutputError with the path and the reason.
class NewFile {
 public:
  explicit NewFile(const std::filesystem::path& path);
  ~NewFile();
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  void write(std::string_view bytes);
  void commit();

 private:
  void flush();

  std::filesystem::path path_, temporary_;
  Descriptor file_;
  std::string waiting_;  ///< bytes not written yet
};

/// Replaces the contents of a file atomically. Throws OutputError and keeps the old contents on
/// failure.
void replace_text(const std::filesystem::path& path, std::string_view text);

/// Truncates a file to a number of bytes; a file of that size is not touched. Throws OutputError.
void truncate_file(const std::filesystem::path& path, std::size_t bytes);

/// Makes renames within a directory survive a power failure if the file system supports it.
void sync_directory(const std::filesystem::path& directory);

/// Returns the name of this machine, "unknown" if it has none.
std::string host_name();

/// Returns `path` without the slash at its end, if it has one.
std::filesystem::path without_slash(const std::filesystem::path& path);

/// Throws OutputError if there is anything at `path`.
void require_absent(const std::filesystem::path& path);

/// A directory that appears atomically: it has a temporary name until it is published, and is
/// removed otherwise.
class StagedDirectory {
 public:
  /// Creates an empty directory next to `target`. Throws OutputError if `target` exists or the
  /// directory cannot be created.
  explicit StagedDirectory(const std::filesystem::path& target);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  /// Returns the temporary path to write to.
  const std::filesystem::path& path() const { return staging_; }
  /// Renames the directory to `target`. Throws OutputError.
  void publish();

 private:
  std::filesystem::path target_, staging_;
};

/// An append-only file. Every append reaches the operating system before it returns, so a crash of
/// the process loses no appended text.
class AppendFile {
 public:
  /// Creates the file if it is missing. Throws OutputError.
  explicit AppendFile(const std::filesystem::path& path);
  /// Throws OutputError, for example when the disk is full; part of the text may then be written.
  void append(std::string_view text);
  /// Makes the appended text survive a power failure. Throws OutputError.
  void sync();

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// Returns the absolute path of a user's path, which is relative to `folder`; `~/` is the home
/// directory. If the path is a POSIX glob pattern, the characters of `folder` are escaped.
std::string absolute_path(const std::string& path, const std::filesystem::path& folder = {});

// The shared directory holds the folder `configs`, which is installed with the program.

/// Sets the shared directory: <folder of the program>/../share/difftape if it exists, otherwise
/// `fallback`; empty: none. Call it once, before anything is read.
void set_shared_directory(const std::filesystem::path& fallback);

/// Resolves `name` relative to `folder` (empty: the working directory). If nothing exists
/// there, but the shared directory has `name`, returns its path there.
std::string here_or_shared(const std::string& name, const std::filesystem::path& folder = {});

/// Holds the lock `<dir>/lock` during its lifetime. Children that are started meanwhile hold it,
/// too, until they end: a worker that outlives its killed sweep keeps the sweep's directory locked.
/// The operating system releases it when the last of them ends, for any reason. A file system
/// without locks, such as some NFS and FUSE mounts, gets a warning: there the file names the
/// process, which excludes others of the same machine only, and not its children.
class DirectoryLock {
 public:
  /// Throws OutputError if another process holds the lock or the file cannot be created.
  explicit DirectoryLock(const std::filesystem::path& dir);
  DirectoryLock(DirectoryLock&&) = default;
  ~DirectoryLock();

  /// Returns whether any process, including this one, holds the lock of `dir`. Returns true for a
  /// lock file that cannot be read.
  static bool is_held(const std::filesystem::path& dir);

 private:
  Descriptor file_;
  bool names_process_ = false;
};

}  // namespace difftape::system
