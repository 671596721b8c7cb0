// Dependencies point one way, and each external library has one door.
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace difftape {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

const fs::path kRoot = DIFFTAPE_TEST_SOURCE_DIR;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Every include of every source below the folders: {file relative to the root, included name}.
std::vector<std::pair<std::string, std::string>> includes() {
  static const std::regex include("#include +[<\"]([^>\"]+)[>\"]");
  std::vector<std::pair<std::string, std::string>> result;
  for (const char* folder : {"core", "autograd", "layers", "optim", "train"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      const std::string extension = entry.path().extension();
      if (extension != ".cpp" && extension != ".h") continue;
      const std::string text = text_of(entry.path());
      for (auto match = std::sregex_iterator(text.begin(), text.end(), include);
           match != std::sregex_iterator(); ++match) {
        result.emplace_back(fs::relative(entry.path(), kRoot), (*match)[1]);
      }
    }
  }
  return result;
}

TEST(Layering, includes_point_from_train_to_core_and_never_back) {
  const std::map<std::string, Names> allowed{
      {"core", {"core"}},
      {"autograd", {"autograd", "core"}},
      {"layers", {"layers", "autograd", "core"}},
      {"optim", {"optim", "autograd", "core"}},
      {"train", {"train", "layers", "optim", "autograd", "core"}}};
  int edges = 0;
  for (const auto& [file, included] : includes()) {
    const std::string from = file.substr(0, file.find('/')),
                      to = included.substr(0, included.find('/'));
    if (!allowed.contains(to)) continue;
    EXPECT_TRUE(allowed.at(from).contains(to)) << file << " includes " << included;
    ++edges;
  }
  EXPECT_GT(edges, 200);
}

TEST(Layering, each_external_library_is_included_behind_its_door_only) {
  struct Door {
    std::regex header, files;
  };
  const std::vector<Door> doors{
      {std::regex("omp\\.h"), std::regex("core/parallel\\.cpp")},
      {std::regex("libxsmm.*"), std::regex("core/tile_libxsmm\\.cpp")},
      {std::regex("dnnl.*|oneapi/.*"), std::regex("core/tile_onednn\\.cpp")},
      {std::regex("hdf5\\.h|H5.*"), std::regex("train/run/records/h5.*")},
      {std::regex("yaml-cpp/.*"), std::regex("train/run/config/.*")},
      {std::regex("CLI/.*"), std::regex("train/app/.*")},
      {std::regex("boost/.*"), std::regex("train/stats/interval\\.cpp")},
      {std::regex("png\\.h"), std::regex("train/study/figures/png\\.cpp")},
      {std::regex("Random123/.*"), std::regex("core/random\\.cpp")},
      {std::regex("xxhash\\.h"), std::regex("core/(random|digest)\\.cpp")}};
  std::vector<int> uses(doors.size());
  for (const auto& [file, included] : includes()) {
    for (size_t i = 0; i < doors.size(); ++i) {
      if (!std::regex_match(included, doors[i].header)) continue;
      EXPECT_TRUE(std::regex_match(file, doors[i].files)) << file << " includes " << included;
      ++uses[i];
    }
  }
  for (size_t i = 0; i < doors.size(); ++i) EXPECT_GT(uses[i], 0) << "door " << i << " is unused";
}

TEST(Layering, nothing_switches_on_the_attention_kind_outside_its_factory) {
  const std::regex comparison("kind *== *\"");
  for (const char* folder : {"core", "autograd", "layers", "optim", "train"}) {
    for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
      if (entry.path().extension() != ".cpp" && entry.path().extension() != ".h") continue;
      EXPECT_FALSE(std::regex_search(text_of(entry.path()), comparison)) << entry.path();
    }
  }
}

}  // namespace
}  // namespace difftape
