#pragma once
// A fuzz target hands malformed bytes to one of the program's readers, which may throw an Error of
// core/error.h and nothing else, quickly and in little memory. Each file of this folder
// defines LLVMFuzzerTestOneInput once; libFuzzer calls it with bytes that it makes up (`./dev
// fuzz`), replay.cpp with the files of corpus/ (`./dev test`).

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace difftape::fuzz {

std::string_view text_of(const std::uint8_t* data, std::size_t size);

/// Splits an input into the contents of several files at the lines "%%%%"; missing ones are empty.
std::vector<std::string_view> parts_of(std::string_view input, std::size_t count);

/// Returns a folder of this process, which is removed at its end.
const std::filesystem::path& folder();
/// Replaces a file there.
std::filesystem::path put(const std::string& name, std::string_view bytes);

/// Calls `read`. Ends the process with a message if it throws anything but an Error, or takes more
/// seconds of the processor; ten times as many with sanitizers.
void expect_an_error_at_most(double seconds, const std::function<void()>& read);

}  // namespace difftape::fuzz
