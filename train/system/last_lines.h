#pragma once
// The end of a text file of any size, without a look at its beginning.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>

namespace difftape::system {

/// Calls f(line, end) for the lines that end in a newline, without it, the last one first, until f
/// returns false; `end` is the offset behind the line. Takes time and memory for the lines that f
/// saw. Throws MissingInput with the path and the reason if the file cannot be read, and what f
/// throws.
void for_each_line_from_the_end(const std::filesystem::path& path,
                                const std::function<bool(std::string_view, std::size_t)>& f);

}  // namespace difftape::system
