#pragma once
// What a fuzz target is: it hands bytes that nobody means to a reader of ours, which may throw an
// Error of core/error.h and nothing else, soon and without much memory. Each file of this folder
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

/// What several files hold, which an input has one after the other with lines "%%%%" between them.
/// Of missing ones nothing.
std::vector<std::string_view> parts_of(std::string_view input, std::size_t count);

/// A folder of this process, removed when it ends.
const std::filesystem::path& folder();
/// Replaces a file there.
std::filesystem::path put(const std::string& name, std::string_view bytes);

/// Calls `read`. Ends the process with a message if it throws anything but an Error, or takes more
/// seconds of the processor; ten times as many with sanitizers.
void expect_an_error_at_most(double seconds, const std::function<void()>& read);

}  // namespace difftape::fuzz
