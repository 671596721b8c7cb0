#pragma once
// Runs difftape as a user does: as a separate process in a separate directory.

#include <source_location>

#include "tests/support/test.h"
#include "train/system/child.h"
#include "train/system/files.h"

namespace difftape::test {

/// Words of a command line.
using Words = std::vector<std::string>;

inline Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

struct Outcome {
  int exit;  ///< exit code, or minus the signal that ended the process
  std::string out, err;
};

/// Environment and limits of a program.
struct Conditions {
  fs::path directory = {};
  std::string program = DIFFTAPE_TEST_PROGRAM;
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to the test's own
  std::optional<std::uint64_t> largest_file = {};  ///< bytes; writing more fails as on a full disk
  std::optional<std::uint64_t> memory = {};        ///< bytes of address space
  bool unprivileged = false;                       ///< if the test is root, the program is not
  std::string out_file = {};                       ///< receives the output in place of Outcome::out
};

/// A running program. Its output goes to a pipe of one page, so that it blocks until the test
/// reads. It is killed after four minutes, or by the destructor.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const Conditions& conditions);

  /// Reads until the output contains `text`. Returns false if the program ended before.
  bool read_until(const std::string& text);
  void signal(int number) { child_->signal(number); }
  pid_t id() const { return child_->id(); }
  Outcome wait();

 private:
  system::File out_, err_;
  std::unique_ptr<system::Child> child_;
  std::string printed_;
};

inline Outcome run(const std::vector<std::string>& arguments, const Conditions& conditions = {}) {
  return Process(arguments, conditions).wait();
}

/// Expects exit code 0, and returns the output.
std::string output(const Outcome& outcome,
                   std::source_location where = std::source_location::current());
/// Expects the exit code `exit`, and returns the errors.
std::string error(int exit, const Outcome& outcome,
                  std::source_location where = std::source_location::current());

/// Waits up to two minutes until `holds()` is true. Returns false if it is not.
bool becomes_true(const std::function<bool()>& holds);

}  // namespace difftape::test

namespace difftape {

using test::joined;
using test::Outcome;
using test::Process;
using test::Words;

}  // namespace difftape
