// Names of other programs in place of ours.
#include "train/run/config/foreign_names.h"

#include "tests/train/run/config/config_files.h"
#include "train/run/config/fields.h"

namespace difftape::run {
namespace {

using testing::HasSubstr;

class ForeignNames : public ConfigFiles {};

TEST_F(ForeignNames, of_nanogpt_and_hugging_face_lead_to_our_keys_in_files_and_set) {
  EXPECT_EQ(error("learning_rate: 3e-4\nmodel: {n_embd: 64, dropout: 0.1}\nblock_size: 64\n",
                  {"max_iters=20", "model.n_layer=2"}),
            "a.yaml:1:1: error: unknown key 'learning_rate'; it is optim.lr here\n"
            "a.yaml:2:9: error: unknown key 'model.n_embd'; it is model.d_model here\n"
            "a.yaml:2:21: error: unknown key 'model.dropout'; there is no dropout; leave it out\n"
            "a.yaml:3:1: error: unknown key 'block_size'; it is data.seq_len here\n"
            "--set max_iters=20: error: unknown key 'max_iters'; it is train.steps here\n"
            "--set model.n_layer=2: error: unknown key 'model.n_layer'; it is model.num_layers "
            "here");
}

TEST_F(ForeignNames, say_what_differs) {
  EXPECT_EQ(error("train.epochs: 3\n"),
            "a.yaml:1:1: error: unknown key 'train.epochs'; it is train.steps here: steps are "
            "counted, not passes over the data");
  EXPECT_EQ(error("optimizer: {lr: 1}\n"),
            "a.yaml:1:1: error: unknown section 'optimizer'; it is optim here");
}

TEST_F(ForeignNames, our_own_name_in_another_section_is_found_too) {
  EXPECT_THAT(error("batch_size: 4\n"), HasSubstr("did you mean 'data.batch_size'?"));
  EXPECT_THAT(error("train: {batch_size: 4}\n"), HasSubstr("did you mean 'data.batch_size'?"));
}

TEST(ForeignNameTable, leads_to_keys_that_there_are_by_names_that_are_not_ours) {
  std::set<std::string> names;
  for (const ForeignName& foreign : foreign_names()) {
    const std::string key(foreign.key);
    EXPECT_TRUE(names.insert(std::string(foreign.name) + (foreign.section ? "/" : "")).second)
        << foreign.name;
    EXPECT_FALSE(foreign.description().empty()) << foreign.name;
    if (foreign.section) {
      EXPECT_TRUE(std::ranges::any_of(fields(), [&](const Field& field) {
        return field.key.starts_with(key + ".");
      })) << key;
      continue;
    }
    EXPECT_TRUE(key.empty() || find_field(key) != nullptr) << key;
    for (const Field& field : fields())
      EXPECT_FALSE(field.key.ends_with("." + std::string(foreign.name))) << field.key;
  }
  EXPECT_EQ(names.size(), 30u);
}

}  // namespace
}  // namespace difftape::run
