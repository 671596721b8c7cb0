#include "train/system/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "core/error.h"
#include "train/system/number.h"

namespace difftape::system {
namespace {

OutputError cannot_write(const std::filesystem::path& path) {
  return OutputError(fmt::format("cannot write {}: {}", path.string(),
                                 errno == ELOOP ? "it is a symbolic link, which is not followed"
                                                : std::generic_category().message(errno)));
}

MissingInput cannot_read(const std::filesystem::path& path) {
  return MissingInput(
      fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
}

}  // namespace

namespace {

std::vector<std::filesystem::path> listed(const std::filesystem::path& directory,
                                          std::error_code& error) {
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    paths.push_back(entry->path());
  return paths;
}

}  // namespace

std::vector<std::filesystem::path> paths_in(const std::filesystem::path& directory) {
  std::error_code ignored;
  return listed(directory, ignored);
}

std::vector<std::filesystem::path> all_paths_in(const std::filesystem::path& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> paths = listed(directory, error);
  throw_if<MissingInput>(bool(error), "cannot read {}: {}", directory.string(), error.message());
  std::ranges::sort(paths, {}, &std::filesystem::path::native);
  return paths;
}

void make_folder(const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  throw_if<OutputError>(bool(error), "cannot create {}: {}", directory.string(), error.message());
}

namespace {

/// Calls f for each block of bytes of a file.
template <class F>
void for_each_block(const std::filesystem::path& path, F&& f) {
  std::error_code ignored;
  if (const auto status = std::filesystem::status(path, ignored);
      exists(status) && !is_regular_file(status) && !is_directory(status))
    throw MissingInput(fmt::format("cannot read {}: it is not a regular file", path.string()));
  const File file(std::fopen(path.c_str(), "rb"));
  std::array<char, 1 << 16> block;
  bool failed = file == nullptr;
  while (!failed) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), file.get());
    failed = std::ferror(file.get()) != 0;
    if (!failed) f(std::string_view(block.data(), count));
    if (count < block.size()) break;
  }
  if (failed) throw cannot_read(path);
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  std::string text;
  for_each_block(path, [&](std::string_view block) { text += block; });
  return text;
}

void for_each_line(const std::filesystem::path& path,
                   const std::function<void(std::string_view, std::size_t)>& f) {
  std::string begun;  // the beginning of a line that the next block continues
  std::size_t end = 0;
  for_each_block(path, [&](std::string_view block) {
    for (std::size_t newline; (newline = block.find('\n')) != std::string_view::npos;) {
      begun += block.substr(0, newline);
      block.remove_prefix(newline + 1);
      end += begun.size() + 1;
      f(begun, end);
      begun.clear();
    }
    begun += block;
  });
}

std::string last_line_of(const std::filesystem::path& path) {
  std::error_code error;
  const std::size_t size = std::filesystem::file_size(path, error);
  errno = error.value();
  const File file(error ? nullptr : std::fopen(path.c_str(), "rb"));
  if (file == nullptr) throw cannot_read(path);
  for (std::size_t count = 1 << 16;; count *= 16) {
    std::string tail(std::min(count, size), '\0');
    if (fseeko(file.get(), static_cast<off_t>(size - tail.size()), SEEK_SET) != 0 ||
        std::fread(tail.data(), 1, tail.size(), file.get()) != tail.size())
      throw cannot_read(path);
    const std::size_t end = tail.rfind('\n'), none = std::string::npos;
    const std::size_t before = end == none || end == 0 ? none : tail.rfind('\n', end - 1);
    if (before != none) return tail.substr(before + 1, end - before - 1);
    if (count >= size) return end == none ? "" : tail.substr(0, end);
  }
}

namespace {

/// Repeats a system call as long as a signal interrupts it, and returns its result.
template <class F>
auto uninterrupted(F&& call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

constexpr int kNewFile = O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW;
constexpr int kAppended = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW;
constexpr std::size_t kWriteBytes = 1 << 16;  // size of a write
constexpr const char* kStaged = ".tmp-";      // before the names of machine and process

}  // namespace

Descriptor::Descriptor(const std::filesystem::path& path, int flags)
    : number_(uninterrupted([&] { return open(path.c_str(), flags | O_CLOEXEC, 0666); })) {}

bool Descriptor::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto count = uninterrupted([&] { return ::write(number_, bytes.data(), bytes.size()); });
    if (count < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

bool Descriptor::sync() {
  return uninterrupted([this] { return fsync(number_); }) == 0;
}

bool Descriptor::close() {
  if (!is_open()) return true;
  return ::close(std::exchange(number_, -1)) == 0 ||
         errno == EINTR;  // Linux closes it even after EINTR
}

NewFile::NewFile(const std::filesystem::path& path)
    : path_(path), temporary_(path.string() + kTemporary), file_(temporary_, kNewFile) {
  if (!file_.is_open()) throw cannot_write(path_);
}

NewFile::~NewFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

void NewFile::flush() {
  if (!file_.write(waiting_)) throw cannot_write(path_);
  waiting_.clear();
}

void NewFile::write(std::string_view bytes) {
  if (waiting_.size() + bytes.size() < kWriteBytes) {
    waiting_ += bytes;
    return;
  }
  flush();
  if (!file_.write(bytes)) throw cannot_write(path_);
}

void NewFile::commit() {
  flush();
  if (!file_.sync() || !file_.close() ||
      uninterrupted([this] { return rename(temporary_.c_str(), path_.c_str()); }) != 0)
    throw cannot_write(path_);
  temporary_.clear();
}

void truncate_file(const std::filesystem::path& path, std::size_t bytes) {
  const auto size = static_cast<off_t>(bytes);
  std::error_code ignored;
  if (is_symlink(path, ignored)) {
    errno = ELOOP;
    throw cannot_write(path);
  }
  if (file_size(path, ignored) == bytes) return;
  if (uninterrupted([&] { return truncate(path.c_str(), size); }) != 0) throw cannot_write(path);
}

void sync_directory(const std::filesystem::path& directory) {
  Descriptor opened(directory, O_RDONLY | O_DIRECTORY);
  if (opened.is_open()) opened.sync();  // not every file system lets directories be opened
}

void replace_text(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.commit();
}

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::filesystem::path without_slash(const std::filesystem::path& path) {
  return path.has_filename() ? path : path.parent_path();
}

void require_absent(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return;
  throw OutputError(fmt::format(
      "{} already exists and is not overwritten; choose another name with --out", path.string()));
}

namespace {

/// Returns the beginning of the names of staged directories of this machine, which the number of
/// the process follows.
std::string staged_prefix(const std::filesystem::path& target) {
  return fmt::format("{}{}{}-", target.string(), kStaged, host_name());
}

/// Removes what killed processes of this machine left of a staged directory. On a shared disk,
/// those of other machines may still run.
void remove_staged(const std::filesystem::path& target) {
  const std::string prefix = staged_prefix(target.filename());
  const std::filesystem::path parent = target.parent_path();
  for (const std::filesystem::path& path : paths_in(parent.empty() ? "." : parent)) {
    const std::string name = path.filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::optional<pid_t> process = read_number<pid_t>(name.substr(prefix.size()));
    if (!process || (*process != getpid() && is_there(fmt::format("/proc/{}", *process)))) continue;
    std::error_code ignored;
    remove_all(path, ignored);
  }
}

}  // namespace

StagedDirectory::StagedDirectory(const std::filesystem::path& target)
    : target_(without_slash(target)),
      staging_(fmt::format("{}{}", staged_prefix(target_), getpid())) {
  require_absent(target_);
  remove_staged(target_);
  if (mkdir(staging_.c_str(), 0777) != 0) throw cannot_write(target_);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(staging_, ignored);
}

void StagedDirectory::publish() {
  if (std::rename(staging_.c_str(), target_.c_str()) != 0) throw cannot_write(target_);
}

AppendFile::AppendFile(const std::filesystem::path& path) : path_(path), file_(path, kAppended) {
  if (!file_.is_open()) throw cannot_write(path);
}

void AppendFile::append(std::string_view text) {
  if (!file_.write(text)) throw cannot_write(path_);
}

void AppendFile::sync() {
  if (!file_.sync()) throw cannot_write(path_);
}

namespace {

constexpr const char* kGlob = "*?[";

/// Returns a glob pattern that matches this path alone.
std::string escaped(const std::string& path) {
  std::string text;
  for (const char c : path) {
    if (c == '\\' || std::strchr(kGlob, c) != nullptr) text += '\\';
    text += c;
  }
  return text;
}

}  // namespace

std::string absolute_path(const std::string& path, const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  const char* home = std::getenv("HOME");
  if (path.starts_with("~/") && home != nullptr) return (fs::path(home) / path.substr(2)).string();
  if (path.empty() || fs::path(path).is_absolute()) return path;
  const fs::path from = folder.empty() ? fs::current_path() : fs::absolute(folder);
  const fs::path whole = (from / path).lexically_normal();
  if (path.find_first_of(kGlob) == std::string::npos || system::is_there(whole))
    return whole.string();
  return escaped((from / "").lexically_normal().string()) + path;
}

namespace {

std::filesystem::path& shared_directory() {
  static std::filesystem::path directory;
  return directory;
}

}  // namespace

void set_shared_directory(const std::filesystem::path& fallback) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::filesystem::path installed = self.parent_path().parent_path() / "share" / "difftape";
  shared_directory() =
      !error && std::filesystem::is_directory(installed, error) ? installed : fallback;
}

std::string here_or_shared(const std::string& name, const std::filesystem::path& folder) {
  std::string here = (folder / name).lexically_normal().string();
  if (shared_directory().empty() || std::filesystem::path(name).is_absolute() ||
      system::is_there(here))
    return here;
  const std::filesystem::path shared = (shared_directory() / name).lexically_normal();
  return system::is_there(shared) ? shared.string() : here;
}

}  // namespace difftape::system
