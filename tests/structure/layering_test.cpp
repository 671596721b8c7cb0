// Dependencies point one way; each folder has its namespace and each external library one place.
#include "tests/structure/sources.h"

namespace difftape::test {
namespace {

using Names = std::set<std::string>;

/// Every include of every source: {file, included name}.
const std::vector<std::pair<std::string, std::string>>& includes() {
  static const auto all = [] {
    const std::regex include("#include +[<\"]([^>\"]+)[>\"]");
    std::vector<std::pair<std::string, std::string>> found;
    for (const auto& [path, text] : program_sources()) {
      for (std::sregex_iterator match(text.begin(), text.end(), include), end; match != end;
           ++match) {
        found.emplace_back(path, (*match)[1]);
      }
    }
    return found;
  }();
  return all;
}

/// Returns true if `path` is `place` or lies in it.
bool lies_in(const std::string& path, const std::string& place) {
  return path == place || path.starts_with(place + "/");
}

const Names kKernel{"core", "autograd", "layers", "optim"};
const Names kGround{"core", "autograd", "layers", "optim", "train/system", "train/stats"};

Names with(Names all, const Names& more) {
  all.insert(more.begin(), more.end());
  return all;
}

/// The folders and files that each place may include besides itself. A file belongs to the longest
/// place that contains it; a place not listed here may include nothing of the program.
const std::map<std::string, Names>& allowed() {
  static const Names run = with(kGround, {"train/run"});
  static const Names study = with(run, {"train/study/compare", "train/study/figures"});
  static const Names app = with(run, {"train/study"});
  static const Names config{"train/run/config"};
  static const Names records = with(config, {"train/run/records"});
  static const Names data_and_checkpoint{"train/run/data", "train/run/checkpoint"};
  static const std::map<std::string, Names> table{
      {"core", {}},
      {"autograd", {"core"}},
      {"layers", {"core", "autograd"}},
      {"optim", {"core", "autograd"}},
      // The ground floor knows errors; statistics also the names of enums and random numbers.
      {"train/system", {"core/error.h"}},
      {"train/stats", {"core/error.h", "core/names.h", "core/random.h", "core/real.h"}},
      // One run.
      {"train/run/config", {"core", "layers", "optim", "train/system", "train/stats"}},
      {"train/run/records", with(kGround, config)},
      {"train/run/data", with(kGround, records)},
      {"train/run/checkpoint", with(kGround, records)},
      {"train/run/diagnostics", with(with(kGround, records), data_and_checkpoint)},
      {"train/run/inference", with(with(kGround, records), data_and_checkpoint)},
      {"train/run/exchange", with(with(kGround, records), {"train/run/data", "train/run/checkpoint",
                                                           "train/run/inference"})},
      {"train/run/loop", run},
      // Many runs.
      {"train/study/compare", run},
      {"train/study/figures", {"core", "train/system", "train/stats", "train/study/compare"}},
      {"train/study/page", study},
      {"train/study/sweep", with(study, {"train/study/page"})},
      // The program: the commands, and what they are made of.
      {"train/app", app},
      {"train/app/gradcheck", with(kGround, config)}};
  return table;
}

std::string place_of(const std::string& file) {
  std::string longest;
  for (const auto& [place, included] : allowed()) {
    if (lies_in(file, place) && place.size() > longest.size()) longest = place;
  }
  return longest;
}

TEST(Layering, includes_point_from_the_program_down_to_core_and_never_back) {
  int edges = 0;
  for (const auto& [file, included] : includes()) {
    const std::string from = place_of(file), to = place_of(included);
    ASSERT_FALSE(from.empty()) << file << " lies in no place that layering_test.cpp knows";
    if (!included.ends_with(".h") || included.find('/') == std::string::npos || to.empty())
      continue;
    const auto may_be = [&included = included](const std::string& place) {
      return lies_in(included, place);
    };
    const bool parts_of_a_command = from == "train/app" && lies_in(to, from);
    EXPECT_TRUE(from == to || parts_of_a_command || std::ranges::any_of(allowed().at(from), may_be))
        << file << " includes " << included;
    ++edges;
  }
  EXPECT_GT(edges, 400);
}

TEST(Layering, statistics_know_no_files_and_kernels_no_processes) {
  const std::regex files("filesystem|fstream|cstdio|fcntl\\.h|unistd\\.h");
  const std::regex processes(
      "sys/wait\\.h|csignal|signal\\.h|filesystem|fcntl\\.h|unistd\\.h|spawn\\.h");
  for (const auto& [file, included] : includes()) {
    const std::string place = place_of(file);
    if (place == "train/stats") {
      EXPECT_FALSE(std::regex_match(included, files)) << file;
    }
    if (kKernel.contains(place)) {
      EXPECT_FALSE(std::regex_match(included, processes)) << file;
    }
  }
}

/// Returns the namespace of a source's folder.
std::string module_of(const std::string& path) {
  for (const char* name : {"system", "stats", "run", "study", "app"}) {
    if (lies_in(path, std::string("train/") + name)) return std::string("difftape::") + name;
  }
  return "difftape";
}

/// Returns the text without the blocks of namespace difftape that begin with a specialization.
std::string without_specialisations(const std::string& text) {
  static const std::regex block(
      "namespace (difftape|std|fmt) \\{\\s*(//[^\n]*\\s*)*template <>[^}]*(\\}[^}]*)*?\n\\}  // "
      "namespace \\1\n");
  return std::regex_replace(text, block, "");
}

/// The namespaces that a text opens at the outermost level.
std::vector<std::string> namespaces_in(const std::string& text) {
  static const std::regex opened("(?:^|\n)namespace (difftape[a-z_:]*) \\{");
  std::vector<std::string> names;
  for (std::sregex_iterator each(text.begin(), text.end(), opened), end; each != end; ++each) {
    names.push_back((*each)[1]);
  }
  return names;
}

TEST(Layering, the_namespace_of_a_file_matches_its_folder) {
  static const std::regex modules("difftape::(system|stats|run|study|app)\\b.*");
  Names seen;
  int found = 0;
  for (const Source& source : program_sources()) {
    const std::string module = module_of(source.path);
    for (const std::string& name : namespaces_in(without_specialisations(source.text))) {
      ++found;
      EXPECT_TRUE(name == module || name.starts_with(module + "::"))
          << source.path << " opens " << name << ", need " << module;
      EXPECT_EQ(std::regex_match(name, modules), module != "difftape")
          << source.path << " opens " << name;
    }
    seen.insert(module);
  }
  EXPECT_EQ(seen.size(), 6U) << "a module is empty";
  EXPECT_GT(found, 300);
}

TEST(Layering, each_external_library_is_included_only_where_allowed) {
  struct Door {
    std::regex header, files;
  };
  const std::vector<Door> doors{
      {std::regex("omp\\.h"), std::regex("core/parallel\\.cpp")},
      {std::regex("mpi\\.h"), std::regex("core/distributed\\.cpp")},
      {std::regex("libxsmm.*"), std::regex("core/tile_libxsmm\\.cpp")},
      {std::regex("hdf5\\.h|H5.*"), std::regex("train/run/records/h5.*")},
      {std::regex("yaml-cpp/.*"), std::regex("train/run/config/.*")},
      {std::regex("CLI/.*"), std::regex("train/app/command_line\\.h")},
      {std::regex("protozero/.*"), std::regex("train/run/data/prepare/tokenizer.*")},
      {std::regex("boost/.*"),
       std::regex("train/(stats/(interval|decision)|run/data/prepare/corpus)\\.cpp")},
      {std::regex("sentencepiece_.*"), std::regex("train/run/data/prepare/tokenizer\\.cpp")},
      {std::regex("simdjson\\.h"), std::regex("train/run/records/metrics\\.cpp")},
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
  const std::regex comparison("kind *[!=]= *\"");
  std::vector<Source> sources = sources_below({"bench"});
  ASSERT_GT(sources.size(), 10U);
  sources.insert(sources.end(), program_sources().begin(), program_sources().end());
  for (const Source& source : sources) {
    EXPECT_FALSE(std::regex_search(source.text, comparison)) << source.path;
  }
}

TEST(Layering, no_file_is_longer_than_400_lines) {
  for (const Source& source : program_sources()) {
    EXPECT_LE(std::ranges::count(source.text, '\n'), 400) << source.path;
  }
}

}  // namespace
}  // namespace difftape::test
