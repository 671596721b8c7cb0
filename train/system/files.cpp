#include "train/system/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "core/error.h"

namespace difftape::system {

namespace {

OutputError cannot_write(const std::filesystem::path& path) {
  return OutputError(
      fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
}

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  const File file(std::fopen(path.c_str(), "rb"));
  std::string text;
  std::array<char, 1 << 16> block;
  bool failed = file == nullptr;
  while (!failed) {
    const std::size_t count = std::fread(block.data(), 1, block.size(), file.get());
    text.append(block.data(), count);
    failed = std::ferror(file.get()) != 0;
    if (count < block.size()) break;
  }
  if (failed) {
    throw MissingInput(
        fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(errno)));
  }
  return text;
}

NewFile::NewFile(const std::filesystem::path& path)
    : path_(path), temporary_(path.string() + ".tmp"), file_(std::fopen(temporary_.c_str(), "wb")) {
  if (file_ == nullptr) throw cannot_write(path_);
}

NewFile::~NewFile() {
  if (file_ != nullptr) std::remove(temporary_.c_str());
}

void NewFile::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size())
    throw cannot_write(path_);
}

void NewFile::commit() {
  if (std::fflush(file_.get()) != 0 || fsync(fileno(file_.get())) != 0 ||
      std::rename(temporary_.c_str(), path_.c_str()) != 0) {
    throw cannot_write(path_);
  }
  file_.reset();
}

void replace_text(const std::filesystem::path& path, std::string_view text) {
  NewFile file(path);
  file.write(text);
  file.commit();
}

void require_absent(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) return;
  throw OutputError(fmt::format("{} exists; nothing is overwritten: choose another name with --out",
                                path.string()));
}

StagedDirectory::StagedDirectory(std::filesystem::path target) : target_(std::move(target)) {
  if (!target_.has_filename()) target_ = target_.parent_path();  // "name/"
  require_absent(target_);
  staging_ = fmt::format("{}.tmp-{}", target_.string(), getpid());
  if (mkdir(staging_.c_str(), 0777) != 0) throw cannot_write(target_);
}

StagedDirectory::~StagedDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(staging_, ignored);
}

void StagedDirectory::publish() {
  if (std::rename(staging_.c_str(), target_.c_str()) != 0) throw cannot_write(target_);
}

AppendFile::AppendFile(const std::filesystem::path& path)
    : path_(path), file_(std::fopen(path.c_str(), "ab")) {
  if (!file_) throw cannot_write(path);
}

void AppendFile::append(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() ||
      std::fflush(file_.get()) != 0) {
    throw cannot_write(path_);
  }
}

namespace {

constexpr const char* kGlob = "*?[";

/// As a part of a pattern that means this path alone.
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
  std::error_code ignored;
  if (path.find_first_of(kGlob) == std::string::npos || fs::exists(whole, ignored))
    return whole.string();
  return escaped((from / "").lexically_normal().string()) + path;
}

void DirectoryLock::Close::operator()(const int* descriptor) const {
  close(*descriptor);
  delete descriptor;
}

namespace {

/// The lock of a file as a whole, which belongs to the open file, not to the process.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

}  // namespace

bool DirectoryLock::is_held(const std::filesystem::path& dir) {
  const int opened = open((dir / "lock").c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) return errno != ENOENT;  // what cannot be asked may be held
  struct flock lock = whole_file();
  const bool held = fcntl(opened, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
  close(opened);
  return held;
}

DirectoryLock::DirectoryLock(const std::filesystem::path& dir) {
  const std::filesystem::path path = dir / "lock";
  const int opened = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (opened < 0) {
    throw OutputError(
        fmt::format("cannot write {}: {}", path.string(), std::generic_category().message(errno)));
  }
  descriptor_.reset(new int(opened));
  struct flock lock = whole_file();
  if (fcntl(opened, F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) throw cannot_write(path);
    throw OutputError(fmt::format(
        "{}: another process is training here; wait for it, or choose another directory with --out",
        dir.string()));
  }
}

}  // namespace difftape::system
