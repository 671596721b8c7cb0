// A run that recomputes blocks is the run that keeps them, bit for bit.
#include "optim/optimizer.h"
#include "tests/train/run/loop/tiny.h"

namespace difftape::run {
namespace {

using test::measured;
using test::TinyProject;

/// Weights and both moments of every parameter in the last checkpoint of a run.
std::vector<Tensor> trained(const Config& config, const std::filesystem::path& run) {
  LanguageModel model(config.model);
  model.parameters().initialize(99);
  Optimizer optimizer(model.parameters(), config.optim);
  Checkpoint(find_checkpoint(run)).load(model.parameters(), &optimizer);
  std::vector<Tensor> tensors;
  for (const Optimizer::State& state : optimizer.states()) {
    tensors.push_back(state.parameter->value);
    for (const StateTensor& tensor : state.tensors) tensors.push_back(tensor.value);
  }
  return tensors;
}

TEST(Recompute, of_blocks_changes_no_metric_and_no_weight_of_a_run) {
  for (const std::string& kind : attention_kinds()) {
    TinyProject project(kind);
    project.config.model.tie_word_embeddings = project.config.model.attention.qk_norm = true;
    project.config.data.eos_token_id = '\n';
    project.config.train.gradient_accumulation_steps = 2;
    project.config.log.param_grad_norms_interval = 1;
    ASSERT_EQ(project.train("kept"), system::Exit::ok);
    project.config.train.activation_checkpointing = ActivationCheckpointing::blocks;
    ASSERT_EQ(project.train("recomputed"), system::Exit::ok);
    EXPECT_EQ(measured(project / "kept"), measured(project / "recomputed")) << kind;
    const std::vector<Tensor> kept = trained(project.config, project / "kept"),
                              recomputed = trained(project.config, project / "recomputed");
    ASSERT_EQ(kept.size(), recomputed.size());
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_TRUE(std::ranges::equal(kept[i].values(), recomputed[i].values())) << kind << i;
    }
  }
}

}  // namespace
}  // namespace difftape::run
