#pragma once
// The files that report.html is made of, compiled into the program, so that a report needs nothing
// but the run directories.

#include <string_view>

namespace difftape::study::assets {

std::string_view page_html();  ///< the template with its {{keys}}
std::string_view page_css();
std::string_view page_js();
std::string_view dygraph_js();  ///< dygraphs 2, MIT licence
std::string_view dygraph_css();
std::string_view synchronizer_js();  ///< its extra that links the zoom of several charts

}  // namespace difftape::study::assets
