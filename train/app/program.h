#pragma once
// The program as one call: what main() of difftape and difftape-f64 does, and that of a program
// with attention kinds of its own (register_attention of layers/attention/kinds.h).

#include <string>

/// Where the configurations are that were installed with the library; find_package(difftape) says.
#ifndef DIFFTAPE_SHARED
#define DIFFTAPE_SHARED ""
#endif

namespace difftape::app {

/// Parses the command line and runs its command; prints errors to stderr. Returns the exit code.
/// In double precision the commands are those of one model. A configuration that is not there is
/// also looked for in `shared` (train/system/files.h).
int main(int argc, char** argv, const std::string& shared = DIFFTAPE_SHARED);

}  // namespace difftape::app
