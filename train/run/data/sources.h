#pragma once
// Which files data.path means, and what they hold.

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace difftape::run {

/// The files that `entries` name, each once, in byte order of their paths whatever the order of the
/// entries. An entry is a file, a directory (every file below it; names that begin with a dot are
/// skipped), or a POSIX glob pattern of these, in which `~` is the home directory. Without entries:
/// the headers of Eigen, default_text().
/// Throws MissingInput for an entry that matches nothing, DataError for one that is no file.
std::vector<std::filesystem::path> find_sources(std::span<const std::string> entries);

/// The bytes of all files, one after the other. Throws MissingInput if one cannot be read.
std::string read_sources(std::span<const std::filesystem::path> files);

/// The directories whose files are the text of a run that names none: real C++, about 8.7 MB, on
/// every machine that built difftape. Throws MissingInput if they are gone.
std::vector<std::string> default_text();

}  // namespace difftape::run
