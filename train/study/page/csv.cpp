#include "train/study/page/csv.h"

#include <fmt/format.h>

#include "train/study/page/html.h"

namespace difftape::study::page {

std::string csv_link(std::string_view name, std::string_view csv) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.,:/";
  std::string uri = "data:text/csv;charset=utf-8,";
  for (const char c : csv) {
    if (kPlain.find(c) != std::string_view::npos) {
      uri += c;
    } else {
      uri += fmt::format("%{:02X}", static_cast<unsigned char>(c));
    }
  }
  return fmt::format("<a class=\"csv\" download=\"{}\" href=\"{}\">CSV</a>", escape_html(name),
                     uri);
}

}  // namespace difftape::study::page
