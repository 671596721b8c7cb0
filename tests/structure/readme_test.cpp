// The table of files in a README lists the contents of its folder, no more and no less, and links
// of all pages are valid.

#include "tests/structure/readme_lines.h"

namespace difftape::test {
namespace {

using Names = std::set<std::string>;

/// "gemm" of gemm.cpp and gemm.h.
std::string stem(const std::string& name) { return name.substr(0, name.find('.')); }

/// Returns the contents of a folder: files by their full names, folders with a slash.
Names entries_of(const fs::path& folder) {
  Names found;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = entry.path().filename();
    if (name == "README.md" || name == "__pycache__") continue;
    found.insert(entry.is_directory() ? name + "/" : name);
  }
  return found;
}

/// The names in the first column of the table, each with the folder of the first in its row:
/// "attention/rows" and "attention/blocks" of | `attention/rows`, `blocks` |. A folder of which
/// files are named is a name too.
Names listed(const fs::path& readme) {
  static const std::regex head(
      R"(\| (file|folder|room) \| (what it (holds|does|proves)|content|purpose) \|.*)");
  static const std::regex first_column(R"(\| ([^|]*) \|.*)"), quoted("`([^`]+)`");
  std::ifstream text(readme);
  Names names;
  bool inside = false;
  for (std::string line; std::getline(text, line);) {
    std::smatch row;
    if (!std::regex_match(line, row, first_column) && !line.starts_with("|---")) inside = false;
    if (inside && !row.empty()) {
      const std::string cell = row[1];
      std::string prefix;
      for (std::sregex_iterator name(cell.begin(), cell.end(), quoted), end; name != end; ++name) {
        const std::string each = (*name)[1];
        const std::size_t slash = each.find('/');
        if (slash != std::string::npos && slash + 1 < each.size()) {
          prefix = each.substr(0, slash + 1);
          names.insert(prefix);
          names.insert(each);
        } else {
          names.insert(prefix + each);
        }
      }
    }
    if (std::regex_match(line, head)) inside = true;
  }
  return names;
}

/// One line for each thing in the folder that no name covers, and each name that covers nothing. A
/// name covers the file or folder of that name, or, without an ending, every file of that stem.
void expect_table_of(const fs::path& folder, const Names& names, const std::string& prefix = "") {
  const Names found = entries_of(folder);
  Names stems;
  for (const std::string& each : found) {
    stems.insert(stem(each));
    EXPECT_TRUE(names.contains(prefix + each) || names.contains(prefix + stem(each)))
        << folder.string() << ": README.md does not list " << prefix << each;
  }
  Names folders;
  for (const std::string& name : names) {
    if (!name.starts_with(prefix)) continue;
    const std::string own = name.substr(prefix.size());
    const std::size_t slash = own.find('/');
    if (slash != std::string::npos && slash + 1 < own.size()) {
      folders.insert(own.substr(0, slash + 1));
    } else if (!own.empty()) {
      EXPECT_TRUE(found.contains(own) || stems.contains(own))
          << folder.string() << ": README.md lists " << name << ", which is not there";
    }
  }
  for (const std::string& each : folders) expect_table_of(folder / each, names, prefix + each);
}

TEST(Readme, the_table_of_files_lists_the_files_of_the_folder) {
  const fs::path root = DIFFTAPE_TEST_SOURCE_DIR;
  int tables = 0;
  for (const char* top : {"autograd", "bench", "configs", "core", "examples", "layers", "optim",
                          "packaging", "results", "tests", "train"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / top)) {
      if (entry.path().filename() != "README.md") continue;
      const Names names = listed(entry.path());
      if (names.empty()) continue;
      expect_table_of(entry.path().parent_path(), names);
      ++tables;
    }
  }
  EXPECT_GE(tables, 25);
}

/// The anchors of a page's headings, as GitHub and Sphinx make them.
Names anchors(const fs::path& page) {
  static const std::regex heading("#+ (.*)"), left_out("[^a-z0-9_ -]"), space(" ");
  Names found;
  std::smatch match;
  for (std::string line : lines_of(page)) {
    std::ranges::transform(line, line.begin(), [](unsigned char c) { return std::tolower(c); });
    if (std::regex_match(line, match, heading))
      found.insert(
          std::regex_replace(std::regex_replace(match[1].str(), left_out, ""), space, "-"));
  }
  return found;
}

TEST(Readme, links_of_all_pages_lead_to_files_and_headings_that_exist) {
  static const std::regex link(R"(\]\(([^)#\s]*)(#([^)]+))?\))");
  int links = 0;
  for (const fs::path& page : pages()) {
    for (const std::string& line : lines_of(kRoot / page)) {
      for (std::sregex_iterator each(line.begin(), line.end(), link), end; each != end; ++each) {
        const std::string path = (*each)[1], anchor = (*each)[3];
        if (path.starts_with("http")) continue;
        const fs::path target = path.empty() ? kRoot / page : kRoot / page.parent_path() / path;
        EXPECT_TRUE(fs::exists(target)) << page << ": " << each->str();
        EXPECT_TRUE(anchor.empty() || anchors(target).contains(anchor))
            << page << ": " << each->str();
        ++links;
      }
    }
  }
  EXPECT_GE(links, 70);
}

}  // namespace
}  // namespace difftape::test
