// The files in configs/ that users run.

#include <algorithm>

#include "tests/train/run/config/config_files.h"
#include "train/study/compare/claims/claims_file.h"

namespace difftape::run {
namespace {

const std::filesystem::path kConfigs = std::filesystem::path(DIFFTAPE_TEST_SOURCE_DIR) / "configs";

long count_lines(const std::filesystem::path& path) {
  std::ifstream file(path);
  return std::count(std::istreambuf_iterator<char>(file), {}, '\n');
}

TEST(ShippedConfigs, every_file_loads) {
  int count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".yaml") continue;
    std::ifstream file(entry.path());
    const std::string text(std::istreambuf_iterator<char>(file), {});
    if (text.find("\nclaims:") != std::string::npos) {
      EXPECT_NO_THROW(study::load_claims(entry.path())) << entry.path();
    } else if (text.find("\nsweep:") != std::string::npos) {
      EXPECT_NO_THROW(study::load_sweep(entry.path())) << entry.path();
    } else {
      EXPECT_NO_THROW(load_config(entry.path())) << entry.path();
    }
    ++count;
  }
  EXPECT_GE(count, 6);
}

/// Calls `f` with every configuration of a file, of a sweep those of its runs. Not with claims.
template <class F>
void each_config(const std::filesystem::path& path, const std::vector<std::string>& overrides,
                 F&& f) {
  std::ifstream file(path);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (text.find("\nclaims:") != std::string::npos) return;
  if (text.find("\nsweep:") == std::string::npos) return f(load_config(path, overrides).config);
  for (const study::SweepRun& run : study::load_sweep(path, overrides).runs) f(run.config());
}

std::vector<std::filesystem::path> shipped_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kConfigs))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// warmup_steps, min_lr and max_seq_len, which may be written as shares: what committed results
/// were computed with.
const std::map<std::string, std::set<std::string>> kFollowing{
    {"ablations/v1_lambda_init_05.yaml", {"50 0.0001 256"}},
    {"ablations/v1_lambda_init_08.yaml", {"50 0.0001 256"}},
    {"ablations/v1_no_subln.yaml", {"50 0.0001 256"}},
    {"ablations/v2_lambda_none.yaml", {"50 0.0001 256"}},
    {"ablations/v2_lambda_raw.yaml", {"50 0.0001 256"}},
    {"ablations/v2_split_half.yaml", {"50 0.0001 256"}},
    {"base/task_0.2m.yaml", {"50 0.0003 128"}},
    {"base/text_0.2m.yaml", {"80 1e-05 128"}},
    {"base/text_0.9m.yaml", {"50 0.0001 256"}},
    {"bench/d128.yaml", {"50 0.0001 256"}},
    {"bench/d384.yaml", {"50 0.0001 256"}},
    {"bench/d768.yaml", {"50 0.0001 256"}},
    {"plan/7b.yaml", {"50 0.0001 4096"}},
    {"studies/critical_lr/sweep.yaml", {"20 1e-05 128"}},
    {"studies/decide/cross_group.yaml", {"80 1e-05 128"}},
    {"studies/decide/loss.yaml", {"80 1e-05 128"}},
    {"studies/decide/screen.yaml", {"0 1e-05 128"}},
    {"studies/decide/screen_long.yaml", {"0 1e-05 128"}},
    {"studies/decide/stress.yaml", {"0 1e-05 128"}},
    {"studies/heads/sweep.yaml", {"50 1e-05 128"}},
    {"studies/init_norm/sweep.yaml", {"80 1e-05 128"}},
    {"studies/late_gradient/sweep.yaml", {"80 1e-05 128"}},
    {"studies/longer/sweep.yaml", {"80 1e-05 128"}},
    {"studies/loss/other_rates.yaml", {"80 1e-05 128"}},
    {"studies/loss/sweep.yaml", {"80 1e-05 128"}},
    {"studies/remedies/optimizers.yaml", {"0 1e-05 128"}},
    {"studies/remedies/sweep.yaml", {"0 1e-05 128", "40 1e-05 128"}},
    {"studies/sharing/sweep.yaml", {"80 1e-05 128"}},
    {"studies/sinks/sweep.yaml", {"50 0.0003 128"}},
    {"studies/spikes/sweep.yaml", {"0 1e-05 128"}},
    {"sweeps/ablations.yaml", {"80 1e-05 128"}},
    {"sweeps/needles.yaml", {"50 0.0003 128"}},
    {"sweeps/precision.yaml", {"50 0.0001 256"}},
    {"sweeps/quickstart.yaml", {"50 0.0001 256"}},
    {"sweeps/sinks.yaml", {"50 0.0003 128"}},
    {"sweeps/stability.yaml", {"80 1e-05 128"}},
    {"tasks/backcopy.yaml", {"50 0.0003 128"}},
    {"tasks/mqar.yaml", {"50 0.0003 128"}},
    {"tasks/needles.yaml", {"50 0.0003 128"}},
    {"tasks/noisy_recall.yaml", {"50 0.0003 128"}},
    {"variants/diff_v1.yaml", {"50 0.0001 256"}},
    {"variants/diff_v2.yaml", {"50 0.0001 256"}},
    {"variants/gated.yaml", {"50 0.0001 256"}},
    {"variants/gated_head.yaml", {"50 0.0001 256"}},
    {"variants/sink.yaml", {"50 0.0001 256"}},
    {"variants/softmax.yaml", {"50 0.0001 256"}},
    {"variants/softmax1.yaml", {"50 0.0001 256"}},
    {"variants/softmax_2h.yaml", {"50 0.0001 256"}}};

TEST(ShippedConfigs, what_follows_from_other_keys_is_what_results_were_computed_with) {
  int count = 0;
  for (const auto& [name, expected] : kFollowing) {
    std::set<std::string> found;
    each_config(kConfigs / name, {}, [&](const Config& c) {
      found.insert(
          fmt::format("{} {} {}", c.optim.warmup_steps, c.optim.min_lr, c.model.max_seq_len));
      ++count;
    });
    EXPECT_EQ(found, expected) << name;
  }
  EXPECT_GT(count, 1000);
}

TEST(ShippedConfigs, every_file_trains_for_20_steps) {
  for (const auto& path : shipped_files()) {
    EXPECT_NO_THROW(each_config(path, {"train.steps=20"}, [](const Config& config) {
      EXPECT_EQ(config.train.steps, 20);
      EXPECT_LE(config.optim.warmup_steps, 5);
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
  ASSERT_EQ(sweep.runs.size(), 3u);
  std::set<std::string> kinds;
  for (const study::SweepRun& run : sweep.runs) {
    const Config& config = run.config();
    kinds.emplace(config.model.attention.kind.name());
    EXPECT_EQ(config.run.name, config.model.attention.kind.name());
    EXPECT_EQ(config.run.seed, sweep.runs[0].config().run.seed);
    EXPECT_EQ(config.train.steps, sweep.runs[0].config().train.steps);
    EXPECT_EQ(config.model.d_ff, sweep.runs[0].config().model.d_ff);
  }
  EXPECT_EQ(kinds, (std::set<std::string>{"softmax", "diff_v1", "diff_v2"}));
}

}  // namespace
}  // namespace difftape::run
