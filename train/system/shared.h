#pragma once
// What is installed with the program to be read by it: the folder `configs`.

#include <filesystem>
#include <string>

namespace difftape::system {

/// Where this program looks: <its folder>/../share/difftape if that is there, otherwise `fallback`;
/// empty: nowhere. Called once, before anything is read.
void set_shared_directory(const std::filesystem::path& fallback);

/// `name` seen from `folder` (empty: the working directory); if nothing is there, that of the same
/// name in the shared directory; if nothing is there either, the first.
std::string here_or_shared(const std::string& name, const std::filesystem::path& folder = {});

}  // namespace difftape::system
