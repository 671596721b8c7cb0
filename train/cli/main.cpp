#include "train/cli/commands.h"

int main(int argc, char** argv) { return difftape::cli::run(argc, argv); }
