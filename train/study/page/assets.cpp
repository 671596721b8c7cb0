#include "train/study/page/assets.h"

// Let the assembler read files, one after another, into read-only data between two symbols.
#define DIFFTAPE_FILE(path) ".incbin \"" path "\"\n"
#define DIFFTAPE_ASSETS(name, files)                                                \
  asm(".pushsection .rodata\n" #name "_begin:\n" files #name "_end:\n.popsection"); \
  extern "C" const char name##_begin[];                                             \
  extern "C" const char name##_end[];
#define DIFFTAPE_ASSET(name, path) DIFFTAPE_ASSETS(name, DIFFTAPE_FILE(path))
#define DIFFTAPE_PAGE_FILE(name) DIFFTAPE_FILE(DIFFTAPE_PAGE_DIR "/" name)

DIFFTAPE_ASSET(difftape_page_html, DIFFTAPE_PAGE_DIR "/page.html")
DIFFTAPE_ASSETS(difftape_page_css,
                DIFFTAPE_PAGE_FILE("css/base.css") DIFFTAPE_PAGE_FILE("css/tables.css")
                    DIFFTAPE_PAGE_FILE("css/figures.css") DIFFTAPE_PAGE_FILE("css/print.css"))
DIFFTAPE_ASSETS(difftape_page_js,
                DIFFTAPE_PAGE_FILE("js/data.js") DIFFTAPE_PAGE_FILE("js/marks.js")
                    DIFFTAPE_PAGE_FILE("js/chart.js") DIFFTAPE_PAGE_FILE("js/csv.js")
                        DIFFTAPE_PAGE_FILE("js/controls.js"))
DIFFTAPE_ASSET(difftape_dygraph_js, DIFFTAPE_DYGRAPHS_DIR "/dygraph.min.js")
DIFFTAPE_ASSET(difftape_dygraph_css, DIFFTAPE_DYGRAPHS_DIR "/dygraph.min.css")
DIFFTAPE_ASSET(difftape_synchronizer_js, DIFFTAPE_DYGRAPHS_DIR "/extras/synchronizer.js")

namespace difftape::study::assets {

namespace {

/// The text of an asset without the pointer to its source map, which would be a URL.
std::string_view text(const char* begin, const char* end) {
  const std::string_view all(begin, static_cast<std::size_t>(end - begin));
  const std::size_t map = all.find("# sourceMappingURL=");
  return map == std::string_view::npos ? all : all.substr(0, map - 2);
}

}  // namespace

std::string_view page_html() { return text(difftape_page_html_begin, difftape_page_html_end); }
std::string_view page_css() { return text(difftape_page_css_begin, difftape_page_css_end); }
std::string_view page_js() { return text(difftape_page_js_begin, difftape_page_js_end); }
std::string_view dygraph_js() { return text(difftape_dygraph_js_begin, difftape_dygraph_js_end); }
std::string_view dygraph_css() {
  return text(difftape_dygraph_css_begin, difftape_dygraph_css_end);
}
std::string_view synchronizer_js() {
  return text(difftape_synchronizer_js_begin, difftape_synchronizer_js_end);
}

}  // namespace difftape::study::assets
