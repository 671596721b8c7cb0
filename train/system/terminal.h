#pragma once
// What is known of the terminal that a program prints to.

#include <cstddef>

namespace difftape::system {

/// Columns of the terminal of a file descriptor; first of all what the variable COLUMNS says, and
/// `otherwise` if there is neither.
std::size_t terminal_width(int descriptor, std::size_t otherwise);

}  // namespace difftape::system
