// The lock of a directory: a lock of its file `lock`, or where the file system has no locks, the
// machine, the number of the process and when it began, in that file.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <string>
#include <system_error>

#include "core/error.h"
#include "train/system/files.h"

namespace difftape::system {
namespace {

/// Returns a lock of the whole file. It belongs to the open file description, not to the process.
struct flock whole_file() {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return lock;
}

bool is_unsupported(int error) {
  constexpr std::array kUnsupported{ENOLCK, ENOSYS, EOPNOTSUPP, EINVAL};
  return std::ranges::find(kUnsupported, error) != kUnsupported.end();
}

/// Returns when a process began, in ticks since the machine did; empty if there is none. A number
/// that a later process got has another time.
std::string start_of(const std::string& process) {
  std::ifstream stat("/proc/" + process + "/stat");
  std::string field;
  while (stat >> field && !field.ends_with(')')) {
  }
  for (int after_name = 0; after_name < 20; ++after_name) stat >> field;  // starttime, proc(5)
  return field;
}

std::string name_of(const std::string& process) {
  return fmt::format("{} {} {}", host_name(), process, start_of(process));
}

/// Returns true if the file names another process of this machine that has not ended.
bool names_live_process(int file) {
  std::array<char, 512> text{};
  if (pread(file, text.data(), text.size() - 1, 0) <= 0) return false;
  const std::string whole = text.data(), before = host_name() + " ";
  if (!whole.starts_with(before)) return false;
  const std::string process = whole.substr(before.size(), whole.rfind(' ') - before.size());
  return process != std::to_string(getpid()) && !start_of(process).empty() &&
         whole == name_of(process);
}

void warn_once(const std::filesystem::path& dir) {
  static const bool said = [&dir] {
    std::fputs(fmt::format("difftape: warning: {}: the file system has no locks (ENOLCK), so two "
                           "machines can train here at once; start only one\n",
                           dir.string())
                   .c_str(),
               stderr);
    return true;
  }();
  static_cast<void>(said);
}

OutputError cannot_lock(const std::filesystem::path& dir) {
  return OutputError(fmt::format("cannot write {}: {}", (dir / "lock").string(),
                                 errno == ELOOP ? "it is a symbolic link, which is not followed"
                                                : std::generic_category().message(errno)));
}

}  // namespace

bool DirectoryLock::is_held(const std::filesystem::path& dir) {
  const Descriptor opened(dir / "lock", O_RDONLY | O_NONBLOCK);  // a pipe would block
  if (!opened.is_open()) return errno != ENOENT;  // a lock that cannot be read may be held
  struct flock lock = whole_file();
  if (fcntl(opened.number(), F_OFD_GETLK, &lock) == 0) return lock.l_type != F_UNLCK;
  return !is_unsupported(errno) || names_live_process(opened.number());
}

DirectoryLock::DirectoryLock(const std::filesystem::path& dir)
    : file_(dir / "lock", O_RDWR | O_CREAT | O_NOFOLLOW) {
  if (!file_.is_open()) throw cannot_lock(dir);
  struct flock lock = whole_file();
  const bool locked = fcntl(file_.number(), F_OFD_SETLK, &lock) == 0;
  const bool unsupported = !locked && is_unsupported(errno);
  if (!locked && !unsupported && errno != EAGAIN && errno != EACCES) throw cannot_lock(dir);
  throw_if<OutputError>(
      unsupported ? names_live_process(file_.number()) : !locked,
      "{}: another process is training here; wait for it, or choose another directory with --out",
      dir.string());
  if (locked) {
    fcntl(file_.number(), F_SETFD, 0);  // open in children, which keeps it locked
    return;
  }
  warn_once(dir);
  names_process_ = true;
  if (ftruncate(file_.number(), 0) != 0 || !file_.write(name_of(std::to_string(getpid()))))
    throw cannot_lock(dir);
}

DirectoryLock::~DirectoryLock() {
  // Without locks, the number of this process in the file would still hold it.
  if (names_process_ && file_.is_open() && ftruncate(file_.number(), 0) != 0) return;
}

}  // namespace difftape::system
