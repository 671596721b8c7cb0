#pragma once
// Names the domains of data files. Training and `data prepare` use the same names.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace difftape::run {

/// Returns a name for each path: its file name without the extension, or the name of a directory.
/// Different paths with equal names get their shortest distinct paths, such as "en/test" and
/// "de/test", or their extensions if nothing else differs. Paths of one file share a name. The
/// names stay distinct as domain_file_name().
std::vector<std::string> domain_names(std::span<const std::filesystem::path> paths);

/// Returns the name of a domain as a file name: "en-test" for "en/test".
std::string domain_file_name(std::string domain);

}  // namespace difftape::run
