#include "train/run/config/foreign_names.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "train/run/config/fields.h"

namespace difftape::run {
namespace {

constexpr std::string_view kShare = "a number of steps, or a fraction of them such as 10%";
constexpr std::string_view kAlways = "it is always so; leave it out";
constexpr std::string_view kEveryStep = "every step is logged; leave it out";
constexpr std::string_view kCpu = "training is on the CPU; leave it out";
constexpr std::string_view kNoDropout = "there is no dropout; leave it out";
constexpr std::string_view kPasses = "steps are counted, not passes over the data";
constexpr std::string_view kBetas = "both betas in one list, [0.9, 0.95]";
constexpr std::string_view kBf16 = "full, bf16 or bf16_emulated";

constexpr auto kForeign = std::to_array<ForeignName>({
    {"learning_rate", "optim.lr", ""},
    {"max_lr", "optim.lr", ""},
    {"lr_min", "optim.min_lr", ""},
    {"optimizer", "optim.name", ""},
    {"optim", "optim.name", ""},
    {"scheduler", "optim.schedule", ""},
    {"lr_scheduler", "optim.schedule", ""},
    {"lr_scheduler_type", "optim.schedule", ""},
    {"decay_lr", "optim.schedule", "constant, cosine, linear or wsd"},
    {"lr_decay_iters", "train.steps", "the rate falls until the last step"},
    {"warmup", "optim.warmup_steps", kShare},
    {"warmup_iters", "optim.warmup_steps", kShare},
    {"warmup_ratio", "optim.warmup_steps", kShare},
    {"num_warmup_steps", "optim.warmup_steps", kShare},
    {"wd", "optim.weight_decay", ""},
    {"beta1", "optim.betas", kBetas},
    {"beta2", "optim.betas", kBetas},
    {"adam_beta1", "optim.betas", kBetas},
    {"adam_beta2", "optim.betas", kBetas},
    {"adam_epsilon", "optim.eps", ""},
    {"epsilon", "optim.eps", ""},
    {"grad_clip", "optim.max_grad_norm", ""},
    {"gradient_clip_val", "optim.max_grad_norm", ""},
    {"max_iters", "train.steps", ""},
    {"max_steps", "train.steps", ""},
    {"num_steps", "train.steps", ""},
    {"train_steps", "train.steps", ""},
    {"iterations", "train.steps", ""},
    {"num_iterations", "train.steps", ""},
    {"iters", "train.steps", ""},
    {"epochs", "train.steps", kPasses},
    {"num_epochs", "train.steps", kPasses},
    {"max_epochs", "train.steps", kPasses},
    {"num_train_epochs", "train.steps", kPasses},
    {"eval_steps", "train.eval_interval", ""},
    {"eval_iters", "train.eval_batches", ""},
    {"save_steps", "train.checkpoint_interval", ""},
    {"save_interval", "train.checkpoint_interval", ""},
    {"save_total_limit", "train.keep_last", ""},
    {"accumulate_grad_batches", "train.gradient_accumulation_steps", ""},
    {"gradient_checkpointing", "train.activation_checkpointing", "none or blocks"},
    {"dtype", "train.precision", kBf16},
    {"torch_dtype", "train.precision", kBf16},
    {"bf16", "train.precision", kBf16},
    {"fp16", "train.precision", kBf16},
    {"log_interval", "", kEveryStep},
    {"logging_steps", "", kEveryStep},
    {"n_embd", "model.d_model", ""},
    {"n_embed", "model.d_model", ""},
    {"embed_dim", "model.d_model", ""},
    {"dim", "model.d_model", ""},
    {"hidden_size", "model.d_model", ""},
    {"n_layer", "model.num_layers", ""},
    {"n_layers", "model.num_layers", ""},
    {"num_hidden_layers", "model.num_layers", ""},
    {"depth", "model.num_layers", ""},
    {"n_head", "model.num_heads", ""},
    {"n_heads", "model.num_heads", ""},
    {"num_attention_heads", "model.num_heads", ""},
    {"n_kv_heads", "model.num_kv_heads", ""},
    {"num_key_value_heads", "model.num_kv_heads", ""},
    {"intermediate_size", "model.d_ff", ""},
    {"ffn_dim", "model.d_ff", ""},
    {"max_position_embeddings", "model.max_seq_len", ""},
    {"n_positions", "model.max_seq_len", ""},
    {"rms_norm_eps", "model.norm_eps", ""},
    {"layer_norm_eps", "model.norm_eps", ""},
    {"initializer_range", "model.init.projection_std", ""},
    {"attn_implementation", "model.attention.kind", ""},
    {"window_size", "model.attention.sliding_window", ""},
    {"dropout", "", kNoDropout},
    {"attn_dropout", "", kNoDropout},
    {"resid_pdrop", "", kNoDropout},
    {"embd_pdrop", "", kNoDropout},
    {"attn_pdrop", "", kNoDropout},
    {"attention_dropout", "", kNoDropout},
    {"hidden_dropout", "", kNoDropout},
    {"bias", "", "no projection has a bias; leave it out"},
    {"flash", "", kAlways},
    {"block_size", "data.seq_len", ""},
    {"context_length", "data.seq_len", ""},
    {"sequence_length", "data.seq_len", ""},
    {"max_length", "data.seq_len", ""},
    {"bs", "data.batch_size", ""},
    {"micro_batch_size", "data.batch_size", ""},
    {"train_batch_size", "data.batch_size", ""},
    {"per_device_train_batch_size", "data.batch_size", ""},
    {"dataset", "data.path", "files or globs"},
    {"data_dir", "data.path", "files or globs"},
    {"train_file", "data.path", "files or globs"},
    {"validation_file", "data.val_path", "files or globs"},
    {"val_split", "data.val_fraction", ""},
    {"random_seed", "run.seed", ""},
    {"out_dir", "run.out", ""},
    {"output_dir", "run.out", ""},
    {"run_name", "run.name", ""},
    {"wandb_run_name", "run.name", ""},
    {"device", "", kCpu},
    {"backend", "", kCpu},
    {"compile", "", "nothing is compiled at run time; leave it out"},
    {"wandb_log", "", "'difftape report' draws the curves; leave it out"},
    {"optimizer", "optim", "", true},
    {"optimization", "optim", "", true},
    {"training", "train", "", true},
    {"trainer", "train", "", true},
    {"dataset", "data", "", true},
    {"logging", "log", "", true},
});

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

/// As names of Python are written.
std::string normalised(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  return text;
}

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

std::string advice_for_option(const std::string& option, const std::string& value,
                              const WriteKey& write) {
  const auto begin = option.find_first_not_of('-');
  if (begin == option.npos) return "";
  const std::string name = normalised(option.substr(begin));
  const std::string shown = value.empty() ? "VALUE" : value;
  if (name == "arm") {  // run.arm only labels a run
    return fmt::format(
        "'difftape sweep SWEEP --arms {0}' trains the runs of an arm, 'difftape config show SWEEP "
        "--arm {0} > {0}.yaml' makes a configuration of it",
        shown);
  }
  std::vector<std::string> keys;
  for (const Field& field : fields()) {
    if (field.key == name || last_part(field.key) == name) keys.push_back(field.key);
  }
  if (const ForeignName* foreign = find_foreign_name(name, false); foreign && keys.empty()) {
    if (foreign->key.empty()) return std::string(foreign->note);
    const std::string key(foreign->key);
    // What there has another meaning or form is not a value here.
    if (!foreign->note.empty())
      return fmt::format("{}; write {}", foreign->description(), write(key, "VALUE"));
    keys.push_back(key);
  }
  if (keys.size() != 1) return "";
  return "write " + write(keys.front(), shown);
}

}  // namespace difftape::run
