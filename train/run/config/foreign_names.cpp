#include "train/run/config/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace difftape::run {
namespace {

constexpr std::string_view kShare = "a number of steps, or a fraction of them such as 10%";
constexpr std::string_view kPasses = "steps are counted, not passes over the data";
constexpr std::string_view kBetas = "both betas in one list, [0.9, 0.95]";

constexpr auto kForeign = std::to_array<ForeignName>({
    {"learning_rate", "optim.lr", ""},
    {"lr_scheduler_type", "optim.schedule", ""},
    {"warmup_iters", "optim.warmup_steps", kShare},
    {"warmup_ratio", "optim.warmup_steps", kShare},
    {"beta1", "optim.betas", kBetas},
    {"beta2", "optim.betas", kBetas},
    {"grad_clip", "optim.max_grad_norm", ""},
    {"max_iters", "train.steps", ""},
    {"max_steps", "train.steps", ""},
    {"epochs", "train.steps", kPasses},
    {"num_train_epochs", "train.steps", kPasses},
    {"eval_iters", "train.eval_batches", ""},
    {"dtype", "train.precision", "full, bf16 or bf16_emulated"},
    {"n_embd", "model.d_model", ""},
    {"hidden_size", "model.d_model", ""},
    {"n_layer", "model.num_layers", ""},
    {"num_hidden_layers", "model.num_layers", ""},
    {"n_head", "model.num_heads", ""},
    {"num_attention_heads", "model.num_heads", ""},
    {"num_key_value_heads", "model.num_kv_heads", ""},
    {"intermediate_size", "model.d_ff", ""},
    {"max_position_embeddings", "model.max_seq_len", ""},
    {"rms_norm_eps", "model.norm_eps", ""},
    {"dropout", "", "there is no dropout; leave it out"},
    {"bias", "", "no projection has a bias; leave it out"},
    {"block_size", "data.seq_len", ""},
    {"per_device_train_batch_size", "data.batch_size", ""},
    {"dataset", "data.path", "files or globs"},
    {"device", "", "training is on the CPU; leave it out"},
    {"optimizer", "optim", "", true},
});

}  // namespace

std::string ForeignName::description() const {
  if (key.empty()) return std::string(note);
  return fmt::format("it is {} here{}{}", key, note.empty() ? "" : ": ", note);
}

std::span<const ForeignName> foreign_names() { return kForeign; }

const ForeignName* find_foreign_name(std::string_view key, bool section) {
  const std::string name = normalised(last_part(key));
  const auto found = std::ranges::find_if(kForeign, [&](const ForeignName& foreign) {
    return foreign.name == name && foreign.section == section;
  });
  return found == kForeign.end() ? nullptr : &*found;
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::string normalised(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  return text;
}

}  // namespace difftape::run
