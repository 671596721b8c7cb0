// What users train is what `difftape gradcheck` proves.
#include <algorithm>

#include "layers/gradcheck_layer.h"
#include "tests/train/run/config/config_files.h"

namespace difftape::run {
namespace {

/// True if both make the same kind of layer, whatever the number in lambda_init_value.
bool same_layer(const AttentionConfig& a, const AttentionConfig& b) {
  const AttentionFields x = attention_fields(a), y = attention_fields(b);
  return x.wiring == y.wiring && x.query_multiple == y.query_multiple && x.pairing == y.pairing &&
         x.lambda == y.lambda && x.lambda_init == y.lambda_init && x.normaliser == y.normaliser &&
         x.head_norm == y.head_norm && x.gate == y.gate;
}

TEST(GradcheckedConfigs, hold_the_attention_of_every_shipped_variant_and_ablation) {
  const std::vector<AttentionVariant> checked = attention_variants();
  int count = 0;
  for (const char* folder : {"variants", "ablations"}) {
    const auto path = std::filesystem::path(DIFFTAPE_TEST_SOURCE_DIR) / "configs" / folder;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const AttentionConfig attention = load_config(entry.path()).config.model.attention;
      EXPECT_TRUE(std::any_of(checked.begin(), checked.end(),
                              [&](const AttentionVariant& variant) {
                                return same_layer(variant.attention, attention);
                              }))
          << entry.path() << " has no variant in layers/gradcheck_layer.cpp";
      ++count;
    }
  }
  EXPECT_GE(count, 14);
}

}  // namespace
}  // namespace difftape::run
