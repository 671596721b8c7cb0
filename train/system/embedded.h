#pragma once
// Files that the assembler reads into read-only data of the program. Outside all namespaces
//   DIFFTAPE_ASSET(page_html, DIFFTAPE_PAGE_DIR "/page.html")
// puts one between the symbols page_html_begin and page_html_end. CMake says where the files are,
// and that the object depends on them.

#define DIFFTAPE_FILE(path) ".incbin \"" path "\"\n"
/// Several files, one after another.
#define DIFFTAPE_ASSETS(name, files)                                                \
  asm(".pushsection .rodata\n" #name "_begin:\n" files #name "_end:\n.popsection"); \
  extern "C" const char name##_begin[];                                             \
  extern "C" const char name##_end[];
#define DIFFTAPE_ASSET(name, path) DIFFTAPE_ASSETS(name, DIFFTAPE_FILE(path))
