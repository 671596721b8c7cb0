#include "tests/fuzz/contract.h"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <typeinfo>

#include "core/error.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch.h"

namespace difftape::fuzz {

namespace {

constexpr std::string_view kBetween = "%%%%\n";

[[noreturn]] void fail(const std::string& what) {
  fmt::print(stderr, "broken contract: {}\n", what);
  std::abort();
}

/// Returns the CPU time of this thread, which other programs do not affect.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

std::vector<std::string_view> parts_of(std::string_view input, std::size_t count) {
  std::vector<std::string_view> parts(count);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t end = i + 1 < count ? input.find(kBetween) : input.npos;
    parts[i] = input.substr(0, end);
    input.remove_prefix(end == input.npos ? input.size() : end + kBetween.size());
  }
  return parts;
}

const std::filesystem::path& folder() {
  static const test::ScratchDir dir;
  return dir.path();
}

std::filesystem::path put(const std::string& name, std::string_view bytes) {
  std::filesystem::path path = folder() / name;
  test::put(path, std::string(bytes));
  return path;
}

void expect_an_error_at_most(double seconds, const std::function<void()>& read) {
  const double begin = cpu_seconds();
  try {
    read();
  } catch (const Error&) {
  } catch (const std::exception& error) {
    fail(fmt::format("{} left the reader: {}", typeid(error).name(), error.what()));
  }
  const double taken = cpu_seconds() - begin;
  if (taken > seconds * (test::kKeepsFreedMemory ? 10 : 1))
    fail(fmt::format("it took {:.0f} ms, may take {:.0f}", 1000 * taken, 1000 * seconds));
}

}  // namespace difftape::fuzz
