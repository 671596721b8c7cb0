// What users train is what `difftape gradcheck` proves.
#include <algorithm>

#include "tests/train/run/config/config_files.h"
#include "train/app/gradcheck/cases.h"

namespace difftape::app {
namespace {

/// The fields of what is configured, whatever the number in lambda_init_value.
AttentionFields layer_of(const AttentionConfig& attention) {
  AttentionFields fields = fields_of(attention);
  fields.lambda_init_value = 0;
  return fields;
}

TEST(GradcheckedConfigs, hold_the_attention_of_every_shipped_variant_and_ablation) {
  const std::vector<AttentionVariant> checked = attention_variants();
  int count = 0;
  for (const char* folder : {"variants", "ablations"}) {
    const auto path = std::filesystem::path(DIFFTAPE_TEST_SOURCE_DIR) / "configs" / folder;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const AttentionConfig attention = run::load_config(entry.path()).config.model.attention;
      EXPECT_TRUE(std::any_of(checked.begin(), checked.end(),
                              [&](const AttentionVariant& variant) {
                                return layer_of(variant.attention) == layer_of(attention);
                              }))
          << entry.path() << " has no variant in train/app/gradcheck/cases.h";
      ++count;
    }
  }
  EXPECT_GE(count, 14);
}

}  // namespace
}  // namespace difftape::app
