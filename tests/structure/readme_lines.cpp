#include "tests/structure/readme_lines.h"

#include <wordexp.h>

namespace difftape::test {

namespace {

const std::string kCommand =
    "difftape "
    "((?:train|sweep|report|eval|generate|plan|config|dump-grads|verify|gradcheck|"
    "doctor|data|export|import|init|runs|diff)\\b";

/// Appends the command lines in backquotes that name a file; a synopsis does not.
void add_quoted(const fs::path& file, const std::string& paragraph,
                std::vector<CommandLine>& found) {
  static const std::regex quoted("`" + kCommand + "[^`]*[/.][^`]*)`");
  static const std::regex synopsis(R"(\[|\.\.\.|\b[A-Z_]{4,}\b)");
  for (std::sregex_iterator each(paragraph.begin(), paragraph.end(), quoted), end; each != end;
       ++each) {
    const std::string text = (*each)[1];
    if (!std::regex_search(text, synopsis)) found.push_back({file, text});
  }
}

}  // namespace

Words lines_of(const fs::path& file) {
  std::ifstream stream(file);
  Words lines;
  std::string before;
  for (std::string line; std::getline(stream, line);) {
    line = before + line;
    before.clear();
    if (line.ends_with('\\')) {
      before = line.substr(0, line.size() - 1);
    } else {
      lines.push_back(line);
    }
  }
  return lines;
}

std::vector<CommandLine> command_lines(const fs::path& file) {
  static const std::regex fenced("^(?:\\$ )?(?:build/release/bin/)?" + kCommand + ".*)");
  std::vector<CommandLine> found;
  std::string paragraph;
  bool inside = false;
  for (const std::string& line : lines_of(kRoot / file)) {
    std::smatch match;
    if (line.starts_with("```")) {
      inside = !inside;
    } else if (inside && std::regex_match(line, match, fenced)) {
      found.push_back({file, match[1]});
    } else if (!inside && !line.empty()) {
      if (line.starts_with("|")) paragraph += "\n";
      paragraph += " " + line;
      continue;
    }
    add_quoted(file, std::exchange(paragraph, ""), found);
  }
  add_quoted(file, paragraph, found);
  return found;
}

std::vector<fs::path> pages() {
  std::vector<fs::path> found;
  fs::recursive_directory_iterator entry(kRoot), end;
  for (; entry != end; ++entry) {
    const fs::path path = entry->path().lexically_relative(kRoot);
    if (path == "build" || path == "runs" || path == "data" || path == ".git")
      entry.disable_recursion_pending();
    if (path.extension() == ".md") found.push_back(path);
  }
  return found;
}

std::vector<CommandLine> all_command_lines() {
  std::vector<CommandLine> found;
  for (const fs::path& page : pages())
    for (CommandLine& line : command_lines(page)) found.push_back(std::move(line));
  return found;
}

Words words_of(const std::string& text) {
  static const std::regex rest("( +#| *\\|| *>).*");
  wordexp_t expanded{};
  const std::string command =
      std::regex_replace(text, rest, "", std::regex_constants::format_first_only);
  EXPECT_EQ(wordexp(command.c_str(), &expanded, WRDE_NOCMD | WRDE_UNDEF), 0) << text;
  Words words;
  for (size_t i = 0; i < expanded.we_wordc; ++i) words.emplace_back(expanded.we_wordv[i]);
  wordfree(&expanded);
  return words;
}

}  // namespace difftape::test
