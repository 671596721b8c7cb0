// Malformed configurations: each is accepted or refused quickly, in bounded memory, without a
// crash.
#include <sys/resource.h>

#include <ctime>
#include <random>

#include "tests/faults/project.h"
#include "train/run/config/reader.h"

namespace difftape::test {
namespace {

constexpr double kMostSeconds = 0.1;

/// Returns the CPU time of this thread, which other programs do not affect.
double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

long peak_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

/// Returns a random YAML value, sensible or not.
std::vector<std::string> hostile_values() {
  const auto many = [](std::size_t count, const std::string& text) {
    std::string all;
    for (std::size_t i = 0; i < count; ++i) all += text;
    return all;
  };
  return {"-.inf",
          ".inf",
          ".nan",
          "-inf",
          "1e999",
          "-1e-999",
          "0x10",
          "1_000",
          "9223372036854775807",
          "-9223372036854775808",
          many(5000, "9"),
          "~",
          "null",
          "!!binary aGk=",
          "!!float 1",
          "&a [1]",
          "*a",
          "&a [*a, *a]",
          "[&a [1], *a, *a]",
          "{a: {b: {c: 1}}}",
          "[[[[]]]]",
          many(3000, "["),
          many(3000, "{a: "),
          "'",
          "\"",
          "\"\\x00\"",
          "\"\\uD800\"",
          "|",
          ">",
          "? x",
          "- - -",
          "%",
          "100%",
          "1e400%",
          "-5%",
          "@",
          "`",
          "\t",
          "\xff\xfe",
          "\xc3\x28",
          "\u202e",
          many(20000, "a"),
          "[" + many(8000, "1,") + "1]",
          "{" + many(4000, "k: 1,") + "}",
          "<<: *a",
          "yes",
          "no",
          "on",
          "2001-01-01",
          "#",
          "--- 1",
          "... ",
          "${HOME}",
          "../../../etc/passwd",
          "/dev/zero",
          ""};
}

class Generator {
 public:
  explicit Generator(std::uint64_t seed) : random_(seed) {
    std::istringstream text(run::to_yaml(run::Config()));
    for (std::string line; std::getline(text, line);) whole_.push_back(line);
  }

  std::string next() {
    std::vector<std::string> lines = whole_;
    const std::size_t changes = 1 + below(6);
    for (std::size_t i = 0; i < changes && !lines.empty(); ++i) change(lines);
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    if (below(8) == 0) text = nested();
    if (below(8) == 0) text.resize(below(text.size() + 1));
    if (text.size() > 1 << 16) text.resize(1 << 16);
    return text;
  }

 private:
  std::size_t below(std::size_t bound) { return random_() % bound; }

  void change(std::vector<std::string>& lines) {
    std::string& line = lines[below(lines.size())];
    const std::size_t colon = line.find(':');
    switch (below(9)) {
      case 0:
        line = line.substr(0, colon) + ": " + values_[below(values_.size())];
        break;
      case 1:
        line.insert(below(line.size() + 1), 1, static_cast<char>(below(256)));
        break;
      case 2:
        line.insert(0, below(5), ' ');
        break;
      case 3:
        line = std::string(below(40), ' ') + line;
        break;
      case 4:
        std::swap(line, lines[below(lines.size())]);
        break;
      case 5:
        lines.insert(lines.begin() + static_cast<std::ptrdiff_t>(below(lines.size())),
                     std::string(line));
        break;
      case 6:
        if (colon != std::string::npos) line = line.substr(0, colon) + "x" + line.substr(colon);
        break;
      case 7:
        for (std::size_t i = below(4000); i > 0; --i)
          lines.push_back(std::to_string(random_()) + ": " + std::to_string(i));
        break;
      default:
        line = values_[below(values_.size())] + line;
    }
  }

  /// Aliases of aliases, or maps and lists within each other.
  std::string nested() {
    std::string text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n";
    if (below(2) == 0) {
      for (int i = 1; i < 40; ++i) {
        text += fmt::format("a{}: &a{} [", i, i);
        for (int k = 0; k < 9; ++k) text += fmt::format("*a{}, ", i - 1);
        text += "x]\n";
      }
      return text;
    }
    text.clear();
    const std::size_t depth = below(600);
    for (std::size_t i = 0; i < depth; ++i)
      text += std::string(i % 200, ' ') + (below(3) == 0 ? "- " : "k: ") + (i % 2 ? "\n" : "");
    return text;
  }

  std::mt19937_64 random_;
  std::vector<std::string> whole_, values_ = hostile_values();
};

TEST(MalformedConfig, is_accepted_or_rejected_within_0_1_s_and_little_memory) {
  Generator generator(6);
  const ScratchDir dir;
  const int count = torture() ? 10000 : 300;
  const long before = peak_kib();
  int refused = 0;
  double longest = 0;
  std::string slowest;
  for (int i = 0; i < count; ++i) {
    const std::string text = generator.next();
    put(dir / "a.yaml", text);
    const double begin = cpu_seconds();
    try {
      run::load_config((dir / "a.yaml").string());
    } catch (const Error& error) {
      ++refused;
      EXPECT_LT(std::string(error.what()).size(), 100000u);
    }
    const double seconds = cpu_seconds() - begin;
    if (seconds <= longest) continue;
    longest = seconds;
    slowest = text;
  }
  EXPECT_GT(refused, count / 2);
  EXPECT_LT(longest, kMostSeconds) << slowest.substr(0, 2000);
  EXPECT_LT(peak_kib() - before, 64 << 10);
  say(fmt::format("{} malformed configurations, {} refused, the slowest in {:.0f} ms", count,
                  refused, 1000 * longest));
}

TEST(MalformedConfig, of_many_errors_shows_the_first_and_counts_the_others) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += fmt::format("key{}: 1\n", i);
  const std::string all = message_of<ConfigError>([&] { run::config_from_yaml(text, "a.yaml"); });
  EXPECT_EQ(std::ranges::count(all, '\n'), 50);
  EXPECT_TRUE(all.starts_with("a.yaml:1:1: error: unknown key 'key0'")) << all.substr(0, 100);
  EXPECT_TRUE(all.ends_with("\nand 950 more"));
}

TEST(MalformedConfig, with_a_value_of_any_length_has_a_message_without_its_middle) {
  std::string value = "ab";
  for (int i = 0; i < 10000; ++i) value += "é";
  const std::string all = message_of<ConfigError>(
      [&] { run::config_from_yaml("train.precision: " + value, "a.yaml"); });
  EXPECT_LT(all.size(), 1100u);
  EXPECT_THAT(all, HasSubstr("é ... é"));
}

}  // namespace
}  // namespace difftape::test
