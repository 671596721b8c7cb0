#include "train/study/page/html.h"

#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>

namespace difftape::study {

std::string json_for_script(const nlohmann::ordered_json& json) {
  const std::string plain = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  std::string safe;
  for (const char c : plain) {
    if (c == '<') {
      safe += "\\u003c";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string fill_template(std::string_view text, const std::map<std::string, std::string>& values) {
  std::string filled;
  std::set<std::string> used;
  std::size_t begin = 0;
  for (std::size_t open; (open = text.find("{{", begin)) != std::string_view::npos;) {
    const std::size_t close = text.find("}}", open);
    if (close == std::string_view::npos) throw std::logic_error("template: {{ without }}");
    const std::string key(text.substr(open + 2, close - open - 2));
    const auto value = values.find(key);
    if (value == values.end()) throw std::logic_error("template: unknown key " + key);
    filled += text.substr(begin, open - begin);
    filled += value->second;
    used.insert(key);
    begin = close + 2;
  }
  for (const auto& [key, value] : values) {
    if (!used.contains(key)) throw std::logic_error("template: unused key " + key);
  }
  return filled.append(text.substr(begin));
}

std::string shell_command(std::span<const std::string> words) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,+@%";
  std::string command;
  for (const std::string& word : words) {
    if (!command.empty()) command += ' ';
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) {
      command += word;
      continue;
    }
    command += '\'';
    for (const char c : word) {
      if (c == '\'') {
        command += "'\\''";
      } else {
        command += c;
      }
    }
    command += '\'';
  }
  return command;
}

}  // namespace difftape::study
