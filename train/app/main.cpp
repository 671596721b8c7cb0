#include "train/app/program.h"

int main(int argc, char** argv) { return difftape::app::main(argc, argv); }
