#pragma once
// Text files, read and written whole or line by line, with errors that name the file, and
// directories that one process at a time works in.

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
/// A C stream that closes itself.
using File = std::unique_ptr<std::FILE, CloseFile>;

/// A file descriptor that closes itself. Calls that a signal interrupts are made again.
class Descriptor {
 public:
  /// Opens a file as open(2) does; without it if that fails, with errno.
  Descriptor(const std::filesystem::path& path, int flags);
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() { close(); }

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  /// Each false if it fails, with errno; of `write` a part may then be written.
  bool write(std::string_view bytes);
  bool sync();
  bool close();

 private:
  int number_;
};

// Questions about a path; what cannot be asked about is not there.
inline bool is_there(const std::filesystem::path& path, std::error_code ignored = {}) {
  return std::filesystem::exists(path, ignored);
}
inline bool is_folder(const std::filesystem::path& path, std::error_code ignored = {}) {
  return std::filesystem::is_directory(path, ignored);
}
inline bool is_file(const std::filesystem::path& path, std::error_code ignored = {}) {
  return std::filesystem::is_regular_file(path, ignored);
}
/// The paths in a directory, as far as it can be read, in any order.
std::vector<std::filesystem::path> paths_in(const std::filesystem::path& directory);
/// Makes a directory, with its parents, unless it is there. Throws OutputError.
void make_folder(const std::filesystem::path& directory);

/// All of an ordinary file: a device may never end. Throws MissingInput with the path and the
/// reason.
std::string read_text(const std::filesystem::path& path);

/// Calls f(line, end) for every line that ends in a newline, without it; `end` is the offset behind
/// it. A file of any size: one line is in memory. Throws as read_text does, and what f throws.
void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view, std::size_t)>& f);

/// The same from the last line to the first, until f returns false; `end` is the offset behind the
/// line. Takes time and memory for the lines that f saw.
void for_each_line_from_the_end(const std::filesystem::path& path,
                                const std::function<bool(std::string_view, std::size_t)>& f);

// What is written below is never written where a symbolic link in the place of a file leads.

/// The ending of the names of files that are not whole yet.
inline constexpr const char* kTemporary = ".tmp";

/// A file that is written piece by piece and appears as a whole: under a temporary name beside
/// `path` until commit() syncs it and renames it over `path`. One that is not committed leaves
/// nothing behind. Each throws OutputError with the path and the reason.
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
  std::string waiting_;  ///< bytes that are not written yet
};

/// The same for text at hand. Throws OutputError; the previous contents then still stand.
void replace_text(const std::filesystem::path& path, std::string_view text);

/// Makes a file shorter; one of that size stays as it is. Throws OutputError.
void truncate_file(const std::filesystem::path& path, std::size_t bytes);

/// Makes renames within a directory survive a power failure, where the file system can.
void sync_directory(const std::filesystem::path& directory);

/// Throws OutputError if there is anything at `path`.
void require_absent(const std::filesystem::path& path);

/// A directory that appears under its name in one piece: what is written into it before then is
/// removed unless it is published.
class StagedDirectory {
 public:
  /// Makes an empty directory beside `target`. Throws OutputError if something is at `target` or
  /// the directory cannot be made.
  explicit StagedDirectory(std::filesystem::path target);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  /// Where to write until then.
  const std::filesystem::path& path() const { return staging_; }
  /// Gives it its name. Throws OutputError.
  void publish();

 private:
  std::filesystem::path target_, staging_;
};

/// A file that only grows. Every append reaches the operating system before it returns, so a crash
/// of the process loses nothing that was appended.
class AppendFile {
 public:
  /// Creates the file if it is missing. Throws OutputError.
  explicit AppendFile(const std::filesystem::path& path);
  /// Throws OutputError, for example when the disk is full; part of the text may then be written.
  void append(std::string_view text);
  /// What was appended survives a power failure, too. Throws OutputError.
  void sync();

 private:
  std::filesystem::path path_;
  Descriptor file_;
};

/// A path that a user wrote, seen from `folder`: absolute, with `~/` as the home directory. In a
/// pattern the characters of the folder stand for themselves (POSIX glob).
std::string absolute_path(const std::string& path, const std::filesystem::path& folder = {});

// What is installed with the program to be read by it: the folder `configs`.

/// Where this program looks: <its folder>/../share/difftape if that is there, otherwise `fallback`;
/// empty: nowhere. Called once, before anything is read.
void set_shared_directory(const std::filesystem::path& fallback);

/// `name` seen from `folder` (empty: the working directory); if nothing is there, that of the same
/// name in the shared directory; if nothing is there either, the first.
std::string here_or_shared(const std::string& name, const std::filesystem::path& folder = {});

/// Holds `<dir>/lock` for as long as it lives. The operating system frees it however the process
/// ends.
class DirectoryLock {
 public:
  /// Throws OutputError if another process holds it or the file cannot be made.
  explicit DirectoryLock(const std::filesystem::path& dir);

  /// Whether some process, this one too, holds the lock of `dir` now, as far as can be told: true
  /// of a file that is there and may not be read.
  static bool is_held(const std::filesystem::path& dir);

 private:
  Descriptor file_;
};

}  // namespace difftape::system
