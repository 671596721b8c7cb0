#pragma once
// The vocabulary of the tests: GoogleTest with its most frequent matchers, the usual parts of the
// standard library, errors, and scratch directories.

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/real.h"
#include "tests/support/scratch.h"

namespace difftape::test {

/// Begins the message of a test that is skipped because it needs another processor. `./dev test`
/// names these tests at its end (tests/skipped.sh).
inline constexpr const char* kOtherHardware = "other hardware: ";

/// Counts the occurrences of `part` in `text`.
inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string::npos; ++at) ++found;
  return found;
}

/// Returns the message of the error of this type that `f` throws; empty if it throws none.
template <class Expected, class F>
std::string message_of(F&& f) {
  try {
    f();
  } catch (const Expected& error) {
    return error.what();
  }
  return "";
}

}  // namespace difftape::test

namespace difftape {

namespace fs = std::filesystem;

using test::contents;
using test::count;
using test::message_of;
using test::put;
using test::ScratchDir;
using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;
using testing::ThrowsMessage;

}  // namespace difftape
