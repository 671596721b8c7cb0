// Preloaded into a program (LD_PRELOAD), counts the calls by which it changes files below
// DIFFTAPE_FAULTS_DIR, and lets one of them go wrong. What is set in the environment:
//
//   DIFFTAPE_FAULTS_DIR     the folder, absolute
//   DIFFTAPE_FAULTS_WORD    count only in processes whose first argument is this ("worker")
//   DIFFTAPE_FAULTS_LOG     a file outside to which each call is appended, with its file
//   DIFFTAPE_FAULTS_AT      the call that goes wrong, from 1
//   DIFFTAPE_FAULTS_DO      before, after: the process is killed then; ENOSPC, EIO, EINTR: the call
//                           fails; short: it writes half; full: it and all later calls that need
//                           room fail with ENOSPC, writes after half of their bytes
//   DIFFTAPE_FAULTS_LOCKS   file locks fail with ENOLCK, as on some network file systems
//   DIFFTAPE_FAULTS_CLOCK   the clocks of the wall jump by years, back and forth
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <string_view>

namespace {

std::string_view variable(const char* name) {
  const char* text = getenv(name);
  return text == nullptr ? "" : text;
}

/// The settings of the environment, read once.
struct Plan {
  std::string dir{variable("DIFFTAPE_FAULTS_DIR")}, log{variable("DIFFTAPE_FAULTS_LOG")};
  std::string action{variable("DIFFTAPE_FAULTS_DO")};
  long at = atol(std::string(variable("DIFFTAPE_FAULTS_AT")).c_str());
  bool clock = !variable("DIFFTAPE_FAULTS_CLOCK").empty();

  Plan() {
    if (const auto word = variable("DIFFTAPE_FAULTS_WORD"); !word.empty() && word != argument())
      dir.clear();
  }

  static std::string argument() {
    char line[4096] = {};
    const int file = static_cast<int>(syscall(SYS_open, "/proc/self/cmdline", O_RDONLY));
    const long count = syscall(SYS_read, file, line, sizeof line - 1);
    syscall(SYS_close, file);
    const auto first = static_cast<long>(strlen(line)) + 1;
    return first < count ? line + first : "";
  }
};

const Plan& plan() {
  static const Plan* const the_plan = new Plan;  // lives until the process ends
  return *the_plan;
}

std::atomic<long> calls{0};

/// The fault that one call injects.
struct Fault {
  bool kill_after = false, half = false;
  int error = 0;
};

[[noreturn]] void die() {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

/// The path below the folder, empty if it lies elsewhere.
std::string below(const char* path, int directory = AT_FDCWD) {
  if (plan().dir.empty() || path == nullptr) return "";
  std::string whole = path;
  if (path[0] != '/') {
    char base[PATH_MAX] = {};
    const std::string link =
        directory == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/" + std::to_string(directory);
    if (readlink(link.c_str(), base, sizeof base - 1) < 0) return "";
    whole = std::string(base) + "/" + path;
  }
  const std::string& dir = plan().dir;
  if (whole.compare(0, dir.size(), dir) != 0 || whole.size() == dir.size()) return "";
  return whole[dir.size()] == '/' ? whole.substr(dir.size() + 1) : "";
}

std::string below(int file) {
  char path[PATH_MAX] = {};
  if (plan().dir.empty() ||
      readlink(("/proc/self/fd/" + std::to_string(file)).c_str(), path, sizeof path - 1) < 0)
    return "";
  return below(path);
}

bool path_call(std::string_view name) {
  return name == "mkdir" || name == "rename" || name == "unlink";
}

/// Counts a call. `room` is true if the call can fail because the disk is full.
Fault count(const char* name, const std::string& path, bool room) {
  if (path.empty()) return {};
  const long number = ++calls;
  if (!plan().log.empty()) {
    const std::string line = std::string(name) + " " + path + "\n";
    const int log = static_cast<int>(
        syscall(SYS_open, plan().log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666));
    syscall(SYS_write, log, line.data(), line.size());
    syscall(SYS_close, log);
  }
  const std::string& action = plan().action;
  if (action == "full" && plan().at > 0 && number >= plan().at && room)
    return {.half = strcmp(name, "write") == 0, .error = ENOSPC};
  if (number != plan().at) return {};
  if (action == "before") die();
  if (action == "after") return {.kill_after = true};
  if (action == "short") return {.half = true};
  if (action == "ENOSPC") return {.error = room ? ENOSPC : 0};
  if (action == "EIO") return {.error = EIO};
  if (action == "EINTR")  // which mkdir, rename and unlink do not have
    return {.error = path_call(name) ? 0 : EINTR};
  return {};
}

/// The call as it is, unless the fault is an error.
template <class F>
auto with(const Fault& fault, F&& call) -> decltype(call()) {
  if (fault.error != 0) {
    errno = fault.error;
    return -1;
  }
  const auto result = call();
  if (fault.kill_after) die();
  return result;
}

template <class F>
ssize_t write_with(const Fault& fault, size_t bytes, F&& call) {
  if (!fault.half || bytes < 2) return with(fault, [&] { return call(bytes); });
  const ssize_t half = call(bytes / 2);
  if (fault.error == 0) return half;
  static std::atomic<bool> was_half{false};  // a full disk takes a part once
  if (!was_half.exchange(true)) return half;
  errno = fault.error;
  return -1;
}

bool changes(int flags) { return (flags & (O_WRONLY | O_RDWR | O_CREAT | O_TRUNC)) != 0; }

int opened(const char* path, int flags, mode_t mode, int directory) {
  const std::string found = changes(flags) ? below(path, directory) : "";
  return with(count("open", found, true),
              [&] { return static_cast<int>(syscall(SYS_openat, directory, path, flags, mode)); });
}

bool no_locks() {
  static const bool missing = !variable("DIFFTAPE_FAULTS_LOCKS").empty();
  return missing;
}

bool locks(int command) {
  return command == F_SETLK || command == F_SETLKW || command == F_GETLK ||
         command == F_OFD_SETLK || command == F_OFD_SETLKW || command == F_OFD_GETLK;
}

mode_t mode_of(int flags, va_list arguments) {
  return (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
}

}  // namespace

extern "C" {

#define DIFFTAPE_OPEN(name)                        \
  int name(const char* path, int flags, ...) {     \
    va_list arguments;                             \
    va_start(arguments, flags);                    \
    const mode_t mode = mode_of(flags, arguments); \
    va_end(arguments);                             \
    return opened(path, flags, mode, AT_FDCWD);    \
  }
DIFFTAPE_OPEN(open)
DIFFTAPE_OPEN(open64)

int openat(int directory, const char* path, int flags, ...) {
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = mode_of(flags, arguments);
  va_end(arguments);
  return opened(path, flags, mode, directory);
}

ssize_t write(int file, const void* bytes, size_t size) {
  return write_with(count("write", below(file), true), size,
                    [&](size_t n) { return syscall(SYS_write, file, bytes, n); });
}
ssize_t pwrite(int file, const void* bytes, size_t size, off_t at) {
  return write_with(count("write", below(file), true), size,
                    [&](size_t n) { return syscall(SYS_pwrite64, file, bytes, n, at); });
}
ssize_t pwrite64(int file, const void* bytes, size_t size, off64_t at) {
  return pwrite(file, bytes, size, at);
}

int fsync(int file) {
  return with(count("fsync", below(file), true),
              [&] { return static_cast<int>(syscall(SYS_fsync, file)); });
}
int close(int file) {
  const int flags = plan().dir.empty() ? 0 : fcntl(file, F_GETFL);
  const std::string path = flags > 0 && changes(flags) ? below(file) : "";
  Fault fault = count("close", path, false);
  if (fault.error != 0) syscall(SYS_close, file);  // closed even if it fails
  return with(fault, [&] { return static_cast<int>(syscall(SYS_close, file)); });
}
int rename(const char* from, const char* to) {
  return with(count("rename", below(to), true),
              [&] { return static_cast<int>(syscall(SYS_rename, from, to)); });
}
int unlink(const char* path) {
  return with(count("unlink", below(path), false),
              [&] { return static_cast<int>(syscall(SYS_unlink, path)); });
}
int unlinkat(int directory, const char* path, int flags) {
  return with(count("unlink", below(path, directory), false),
              [&] { return static_cast<int>(syscall(SYS_unlinkat, directory, path, flags)); });
}
int remove(const char* path) {
  return with(count("unlink", below(path), false), [&] {
    const int result = static_cast<int>(syscall(SYS_unlink, path));
    return result != 0 && errno == EISDIR ? static_cast<int>(syscall(SYS_rmdir, path)) : result;
  });
}
int rmdir(const char* path) {
  return with(count("unlink", below(path), false),
              [&] { return static_cast<int>(syscall(SYS_rmdir, path)); });
}
int mkdir(const char* path, mode_t mode) {
  return with(count("mkdir", below(path), true),
              [&] { return static_cast<int>(syscall(SYS_mkdir, path, mode)); });
}
int truncate(const char* path, off_t size) {
  return with(count("truncate", below(path), false),
              [&] { return static_cast<int>(syscall(SYS_truncate, path, size)); });
}
int truncate64(const char* path, off64_t size) { return truncate(path, size); }

int flock(int file, int operation) {
  return with({.error = no_locks() ? ENOLCK : 0},
              [&] { return static_cast<int>(syscall(SYS_flock, file, operation)); });
}
int fcntl(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return with({.error = no_locks() && locks(command) ? ENOLCK : 0},
              [&] { return static_cast<int>(syscall(SYS_fcntl, file, command, argument)); });
}
int fcntl64(int file, int command, ...) {
  va_list arguments;
  va_start(arguments, command);
  void* const argument = va_arg(arguments, void*);
  va_end(arguments);
  return fcntl(file, command, argument);
}

int clock_gettime(clockid_t which, timespec* now) {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, which, now));
  static std::atomic<long> asked{0};
  if (plan().clock && which == CLOCK_REALTIME)
    now->tv_sec += (++asked * 7919 % 11 - 5) * 365L * 86400;
  return result;
}
time_t time(time_t* out) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != nullptr) *out = now.tv_sec;
  return now.tv_sec;
}
}
