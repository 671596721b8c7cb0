// Without libFuzzer: calls a target with each file of the folders that are named.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>

#include "tests/fuzz/contract.h"
#include "tests/support/sanitizer.h"
#include "tests/support/scratch.h"

int main(int argc, char** argv) {
  std::vector<std::filesystem::path> files;
  for (int i = 1; i < argc; ++i)
    for (const auto& entry : std::filesystem::directory_iterator(argv[i]))
      files.push_back(entry.path());
  std::ranges::sort(files);
  for (const std::filesystem::path& file : files) {
    const std::string bytes = difftape::test::contents(file);
    fmt::print("{}\n", file.string());  // before a crash
    std::fflush(stdout);
    LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const long most_kib = (difftape::test::kKeepsFreedMemory ? 2048 : 256) << 10;
  fmt::print("{} files, at most {} MiB\n", files.size(), usage.ru_maxrss >> 10);
  return files.size() < 10 || usage.ru_maxrss > most_kib ? EXIT_FAILURE : EXIT_SUCCESS;
}
