#pragma once
// The program as one call, for main() of difftape, of difftape-f64, and of programs with additional
// attention kinds (register_attention of layers/attention/kinds.h).

#include <string>

/// Folder of the configurations installed with the library; find_package(difftape) sets it.
#ifndef DIFFTAPE_SHARED
#define DIFFTAPE_SHARED ""
#endif

namespace difftape::app {

/// Parses the command line, runs its command, and prints errors to stderr. Returns the exit code.
/// In double precision, only commands for a single model exist. Missing configurations are also
/// searched in `shared` (train/system/files.h).
int main(int argc, char** argv, const std::string& shared = DIFFTAPE_SHARED);

}  // namespace difftape::app
