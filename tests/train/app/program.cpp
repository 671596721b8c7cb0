#include "tests/train/app/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string_view>

extern char** environ;

namespace difftape::test {

namespace {

constexpr int kSmallestPipe = 4096;
constexpr unsigned kSeconds = 60;
constexpr uid_t kNobody = 65534;

/// Text as exec wants it: pointers into `words`, and a null.
std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  all.push_back(nullptr);
  return all;
}

std::vector<std::string> environment(const Conditions& conditions) {
  std::vector<std::string> all;
  for (const auto& [name, value] : conditions.environment) all.push_back(name + "=" + value);
  for (char** word = environ; *word != nullptr; ++word) {
    const std::string_view variable = *word;
    const auto replaces = [&](const auto& added) {
      return variable.starts_with(added.first + "=");
    };
    if (std::ranges::none_of(conditions.environment, replaces)) all.emplace_back(variable);
  }
  return all;
}

bool limit(__rlimit_resource resource, rlim_t value) {
  const rlimit both{value, value};
  return value == RLIM_INFINITY || setrlimit(resource, &both) == 0;
}

/// In the child, where only what is safe after a fork may be called.
[[noreturn]] void become(const Conditions& conditions, char* const* arguments,
                         char* const* variables, int out, int err) {
  const bool ready = (conditions.directory.empty() || chdir(conditions.directory.c_str()) == 0) &&
                     limit(RLIMIT_FSIZE, conditions.largest_file) &&
                     limit(RLIMIT_AS, conditions.memory) &&
                     (!conditions.unprivileged || geteuid() != 0 || setuid(kNobody) == 0) &&
                     dup2(out, 1) == 1 && dup2(err, 2) == 2;
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) signal(number, SIG_DFL);  // not nohup's
  alarm(kSeconds);
  if (ready) execve(arguments[0], arguments, variables);
  _exit(127);
}

}  // namespace

Process::Process(const std::vector<std::string>& arguments, const Conditions& conditions)
    : err_(std::tmpfile()) {
  std::vector<std::string> words = arguments, variables = environment(conditions);
  words.insert(words.begin(), conditions.program);
  const std::vector<char*> argv = pointers(words), envp = pointers(variables);
  std::array<int, 2> ends;
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("no pipe");
  fcntl(ends[1], F_SETPIPE_SZ, kSmallestPipe);
  out_.reset(fdopen(ends[0], "rb"));
  const int file = conditions.out_file.empty()
                       ? ends[1]
                       : open(conditions.out_file.c_str(), O_WRONLY | O_CLOEXEC);
  child_ = fork();
  if (child_ == 0) become(conditions, argv.data(), envp.data(), file, fileno(err_.get()));
  if (file != ends[1]) close(file);
  close(ends[1]);
}

Process::~Process() {
  if (child_ <= 0) return;
  kill(child_, SIGKILL);
  waitpid(child_, nullptr, 0);
}

bool Process::read_until(const std::string& text) {
  while (printed_.find(text) == std::string::npos) {
    const int next = std::fgetc(out_.get());
    if (next == EOF) return false;
    printed_.push_back(static_cast<char>(next));
  }
  return true;
}

void Process::signal(int number) const { kill(child_, number); }

Outcome Process::wait() {
  for (int next; (next = std::fgetc(out_.get())) != EOF;) printed_.push_back(char(next));
  int status = 0;
  waitpid(child_, &status, 0);
  child_ = -1;
  std::string errors;
  std::rewind(err_.get());
  for (int next; (next = std::fgetc(err_.get())) != EOF;) errors.push_back(char(next));
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status), printed_, errors};
}

}  // namespace difftape::test
