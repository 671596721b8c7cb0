#pragma once
// Where a configuration value was written, and the errors found there.

#include <string>
#include <vector>

namespace difftape::run {

struct SourceLocation {
  std::string source;  ///< a file, or what the user typed: "--set optim.lr=3"; empty: a default
  int line = 0;        ///< from 1; 0 if the source has no lines
  int column = 0;      ///< from 1

  /// "configs/base/text_0.9m.yaml:3:5", or the source alone where there are no lines.
  std::string str() const;
  /// Short form for people: "default", "configs/base/text_0.9m.yaml:3", "--set".
  std::string origin() const;
};

/// Collects errors so that one run reports all of them.
class ConfigErrors {
 public:
  /// Adds the line "<location>: error: <message>", once.
  void add(const SourceLocation& location, const std::string& message);
  bool any() const { return !lines_.empty(); }
  /// Throws one ConfigError of all lines, in the order in which they were found.
  void throw_if_any() const;

 private:
  std::vector<std::string> lines_;
};

}  // namespace difftape::run
