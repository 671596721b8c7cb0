// Checks the files in configs/.
#include "tests/train/run/config/config_files.h"
#include "train/run/loop/data_parallel.h"

namespace difftape::run {
namespace {

const fs::path kConfigs = fs::path(DIFFTAPE_TEST_SOURCE_DIR) / "configs";

long count_lines(const fs::path& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

/// Calls `f` with the configuration of every file, or of every run of a sweep; skips claims files.
template <class F>
void each_config(const fs::path& path, const std::vector<std::string>& overrides, F&& f) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.find("\nclaims:") != std::string::npos) return;
  if (text.find("\nsweep:") == std::string::npos) return f(load_config(path, overrides).config);
  for (const study::SweepRun& run : study::load_sweep(path, overrides).runs) f(run.config());
}

std::vector<fs::path> shipped_files() {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(kConfigs))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

TEST(ShippedConfigs, every_file_loads_and_trains_for_20_steps) {
  ASSERT_GE(shipped_files().size(), 6u);
  for (const auto& path : shipped_files()) {
    EXPECT_NO_THROW(each_config(path, {}, [](const Config&) {})) << path;
    const bool varies_steps = contents(path).find("train.steps: [") != std::string::npos;
    if (varies_steps) continue;
    EXPECT_NO_THROW(each_config(path, {"train.steps=20"}, [](const Config& config) {
      EXPECT_EQ(config.train.steps, 20);
      EXPECT_LE(config.optim.warmup_steps, 5);
    })) << path;
  }
}

TEST(ShippedConfigs, can_be_trained_by_8_processes_or_as_many_as_a_step_has_sequences) {
  for (const auto& path : shipped_files()) {
    if (path.parent_path().filename() == "bench") continue;  // includes large models
    EXPECT_NO_THROW(each_config(path, {}, [](const Config& config) {
      const Index sequences = config.data.batch_size * config.train.gradient_accumulation_steps;
      require_shares(config, std::min<Index>(8, sequences));
    })) << path;
  }
}

TEST(ShippedConfigs, a_variant_is_named_like_its_attention_kind_and_takes_at_most_12_lines) {
  for (const std::string kind : {"softmax", "diff_v1", "diff_v2"}) {
    const auto path = kConfigs / "variants" / (kind + ".yaml");
    const Config config = load_config(path).config;
    EXPECT_EQ(config.run.name, kind);
    EXPECT_EQ(config.model.attention.kind, kind);
    EXPECT_LE(count_lines(path), 12);
  }
}

TEST(ShippedConfigs, the_quickstart_compares_the_three_kinds_on_otherwise_equal_terms) {
  const study::SweepConfig sweep = study::load_sweep(kConfigs / "sweeps/quickstart.yaml");
  EXPECT_EQ(sweep.baseline, "softmax");
  ASSERT_EQ(sweep.runs.size(), 12u);
  std::set<std::string> kinds;
  for (const study::SweepRun& run : sweep.runs) {
    const Config& config = run.config();
    kinds.emplace(config.model.attention.kind.name());
    EXPECT_EQ(config.run.arm, config.model.attention.kind.name());
    EXPECT_GE(config.run.seed, 1u);
    EXPECT_LE(config.run.seed, 4u);
    EXPECT_EQ(config.train.steps, sweep.runs[0].config().train.steps);
    EXPECT_EQ(config.model.d_ff, sweep.runs[0].config().model.d_ff);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"softmax", "diff_v1", "diff_v2"}));
}

}  // namespace
}  // namespace difftape::run
