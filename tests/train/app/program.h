#pragma once
// Runs difftape as a user does: as a process of its own, in a directory of its own.

#include <sys/resource.h>
#include <sys/types.h>

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace difftape::test {

struct Outcome {
  int exit;  ///< exit code, or minus the signal that ended the process
  std::string out, err;
};

/// Under which a program runs.
struct Conditions {
  std::filesystem::path directory = {};
  std::string program = DIFFTAPE_TEST_PROGRAM;
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to the test's own
  rlim_t largest_file = RLIM_INFINITY;  ///< bytes; writing more fails as on a full disk
  rlim_t memory = RLIM_INFINITY;        ///< bytes of address space
  bool unprivileged = false;            ///< if the test is root, the program is not
  std::string out_file = {};            ///< what it prints goes here instead of to Outcome::out
};

/// A running program. What it prints waits in a pipe of one page: a program that prints more
/// than that stands still until somebody reads. It is killed if it takes a minute, or at the end.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const Conditions& conditions);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Reads on until what was printed holds `text`. False if it ended before.
  bool read_until(const std::string& text);
  void signal(int number) const;
  pid_t id() const { return child_; }
  Outcome wait();

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  pid_t child_;
  std::unique_ptr<std::FILE, Close> out_, err_;
  std::string printed_;
};

inline Outcome run(const std::vector<std::string>& arguments, const Conditions& conditions = {}) {
  return Process(arguments, conditions).wait();
}

}  // namespace difftape::test
