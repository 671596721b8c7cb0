#pragma once
// Embeds files in the read-only data of the program. Outside all namespaces,
//   DIFFTAPE_ASSET(page_html, DIFFTAPE_PAGE_DIR "/page.html")
// places a file between the symbols page_html_begin and page_html_end. CMake defines the folders
// and makes the object depend on the files.

#define DIFFTAPE_FILE(path) ".incbin \"" path "\"\n"
/// Embeds several files, one after another.
#define DIFFTAPE_ASSETS(name, files)                                                \
  asm(".pushsection .rodata\n" #name "_begin:\n" files #name "_end:\n.popsection"); \
  extern "C" const char name##_begin[];                                             \
  extern "C" const char name##_end[];
#define DIFFTAPE_ASSET(name, path) DIFFTAPE_ASSETS(name, DIFFTAPE_FILE(path))
