#include "train/run/config/fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "train/run/config/field_access.h"

namespace difftape::run {
namespace {

using detail::field;
using detail::kMaxSize;

std::vector<Field> run_fields() {
  constexpr auto at = &Config::run;
  using R = RunConfig;
  return {
      field<at, &R::name>("run.name", any_value(), "",
                          "Name of the run in logs and reports: one word, used as a folder name.",
                          kOfResult | kOfSweep | kNamesRun),
      field<at, &R::arm>("run.arm", any_value(), "",
                         "Arm of the sweep that the run belongs to; empty means run.name.",
                         kOfResult | kOfSweep | kNamesRun),
      field<at, &R::seed>("run.seed", at_least(0), "",
                          "Seed of the initialization and the data order.",
                          kOfResult | kOfNumbers | kOfSweep),
      field<at, &R::out>("run.out", any_value(), "", "Run directory; empty means runs/<run.name>.",
                         kOfSweep | kNamesRun),
      field<at, &R::claims>(
          "run.claims", any_value(), "",
          "Digest of the preregistered claims; a sweep with sweep.claims sets it.", kOfSweep),
  };
}

std::vector<Field> data_fields() {
  constexpr auto at = &Config::data;
  using D = DataConfig;
  return {
      field<at, &D::type>("data.type", any_value(), "",
                          "Data source: bytes of text files, token files, or a generated task."),
      field<at, &D::path>("data.path", paths(), "",
                          "Files, folders or globs, relative to the file that names them; empty "
                          "means the Eigen headers.",
                          kOfResult | kNamesData | kBesideModel),
      field<at, &D::val_path>("data.val_path", paths(), "",
                              "Validation files, folders or globs, each reported as a domain; "
                              "empty means a split of data.path.",
                              kOfResult | kNamesData | kBesideModel),
      field<at, &D::seq_len>("data.seq_len", between(1, kMaxSize), "tokens",
                             "Sequence length in training."),
      field<at, &D::batch_size>("data.batch_size", between(1, kMaxSize), "sequences",
                                "Number of sequences in one micro-batch."),
      field<at, &D::eos_token_id>(
          "data.eos_token_id", between(-1, kMaxSize), "",
          "Token that ends a document; attention stays within each document. -1 disables it."),
      field<at, &D::val_fraction>(
          "data.val_fraction", strictly_between(0, 1), "",
          "Fraction of the data held out for validation without data.val_path: whole text files if "
          "there are enough of them, else blocks."),
  };
}

std::vector<Field> task_fields() {
  constexpr auto at = &Config::data;
  constexpr auto needles = &DataConfig::needles;
  constexpr auto mqar = &DataConfig::mqar;
  constexpr auto backcopy = &DataConfig::backcopy;
  using N = NeedlesConfig;
  using M = MqarConfig;
  using B = BackcopyConfig;
  const Constraint size = between(1, kMaxSize);
  return {
      field<at, needles, &N::cities>("data.needles.cities", size, "tokens",
                                     "Number of different cities."),
      field<at, needles, &N::facts>(
          "data.needles.facts", size, "facts",
          "Numbers of facts per sequence. Each sequence uses one entry, with the entry of "
          "data.needles.queries at the same position."),
      field<at, needles, &N::queries>("data.needles.queries", size, "queries",
                                      "Numbers of queries per sequence, one per entry of "
                                      "data.needles.facts."),
      field<at, needles, &N::digits>("data.needles.digits", between(1, 16), "tokens",
                                     "Number of digits in the number of a city, one token each."),
      field<at, needles, &N::filler>("data.needles.filler", size, "tokens",
                                     "Number of different filler tokens."),
      field<at, mqar, &M::keys>("data.mqar.keys", size, "tokens", "Number of different keys."),
      field<at, mqar, &M::values>("data.mqar.values", size, "tokens",
                                  "Number of different values."),
      field<at, mqar, &M::pairs>("data.mqar.pairs", size, "pairs",
                                 "Number of key-value pairs D, each queried once."),
      field<at, mqar, &M::gap_power>("data.mqar.gap_power", above(0), "",
                                     "Exponent a: a query follows its pair after a gap g with "
                                     "probability proportional to (g + 1)^(a - 1)."),
      field<at, backcopy, &B::symbols>("data.backcopy.symbols", between(2, 1024), "tokens",
                                       "Number of different tokens after the first."),
      field<at, backcopy, &B::triggers>(
          "data.backcopy.triggers", between(1, 1023), "tokens",
          "Number of trigger tokens, after which the previous token is repeated."),
  };
}

std::vector<Field> optim_fields() {
  constexpr auto at = &Config::optim;
  using O = OptimConfig;
  return {
      field<at, &O::lr>("optim.lr", above(0), "", "Peak learning rate.", kOfResult | kOfNumbers),
      field<at, &O::name>(
          "optim.name", any_value(), "",
          "Optimizer; muon updates the projections of the blocks and leaves the rest to AdamW."),
      field<at, &O::min_lr>("optim.min_lr", at_least(0).or_share_of("optim.lr", 0), "",
                            "Learning rate at the last step.", kOfResult | kOfNumbers),
      field<at, &O::schedule>("optim.schedule", any_value(), "",
                              "Learning-rate schedule after warm-up (wsd: warmup-stable-decay)."),
      field<at, &O::warmup_steps>("optim.warmup_steps", at_least(0).or_share_of("train.steps", 5),
                                  "steps",
                                  "Number of steps in which the learning rate rises to its peak."),
      field<at, &O::decay_fraction>("optim.decay_fraction", between(0, 1), "",
                                    "Fraction of the steps in the final decay of wsd."),
      field<at, &O::weight_decay>("optim.weight_decay", at_least(0), "",
                                  "Decoupled weight decay of the projections."),
      field<at, &O::independent_weight_decay>("optim.independent_weight_decay", any_value(), "",
                                              "Scale weight decay by lr / peak lr instead of lr."),
      field<at, &O::decay_embeddings>("optim.decay_embeddings", any_value(), "",
                                      "Apply weight decay to the embeddings too."),
      field<at, &O::betas>("optim.betas", from_to_below(0, 1), "",
                           "AdamW decay rates of the averages of the gradient and of its square; "
                           "for lion, the rates of the update and of the momentum."),
      field<at, &O::eps>("optim.eps", at_least(1e-30), "",
                         "AdamW epsilon, added to the denominator for numerical stability."),
      field<at, &O::momentum>("optim.momentum", from_to_below(0, 1), "",
                              "Momentum of muon and sgd."),
      field<at, &O::max_grad_norm>(
          "optim.max_grad_norm", at_least(0), "",
          "Global L2 norm to which gradients are clipped; 0 disables clipping."),
  };
}

std::vector<Field> train_fields() {
  constexpr double kMostSteps = 1e12;  // their tokens are a 64-bit integer
  constexpr auto at = &Config::train;
  using T = TrainConfig;
  return {
      field<at, &T::steps>("train.steps", between(1, kMostSteps), "steps",
                           "Number of optimizer steps.", kDecides | kOfTask | kBesideModel),
      field<at, &T::eval_interval>("train.eval_interval", at_least(0), "steps",
                                   "Steps between validations; 0 means only at the end."),
      field<at, &T::eval_batches>(
          "train.eval_batches", between(1, kMaxSize), "batches",
          "Number of batches in one validation; every domain of text or tokens gives "
          "about the same fraction of its sequences."),
      field<at, &T::final_eval_batches>(
          "train.final_eval_batches", between(0, kMaxSize), "batches",
          "Number of batches in the final validation; 0 means all held-out text or tokens, or "
          "train.eval_batches of a generated task."),
      field<at, &T::checkpoint_interval>(
          "train.checkpoint_interval", at_least(0), "steps",
          "Steps between checkpoints that are kept; 0 means none. Besides these, the newest one is "
          "kept, written after 5 minutes without one and at the end.",
          kBesideModel),
      field<at, &T::keep_last>("train.keep_last", at_least(0), "checkpoints",
                               "Number of newest checkpoints to keep; 0 keeps all of "
                               "train.checkpoint_interval.",
                               kOfArm | kBesideModel),
      field<at, &T::init_from>("train.init_from", paths(), "",
                               "Checkpoint or run directory whose weights the run starts with; "
                               "empty means a random initialization from run.seed."),
      field<at, &T::gradient_accumulation_steps>(
          "train.gradient_accumulation_steps", between(1, kMaxSize), "batches",
          "Number of micro-batches whose gradients are averaged in one step.",
          kDecides | kOfTask | kBesideModel),
      field<at, &T::activation_checkpointing>(
          "train.activation_checkpointing", any_value(), "",
          "Activations that backward recomputes instead of storing: none, or all within each "
          "block. Results are bitwise identical.",
          kOfArm | kBesideModel),
      field<at, &T::precision>(
          "train.precision", any_value(), "",
          "Precision of matmul operands: f32 (full), or rounded to bfloat16, with weights, "
          "moments, "
          "norms, softmax and losses in f32. bf16 needs a processor with bfloat16 instructions; "
          "bf16_emulated rounds in the same way on any processor."),
      field<at, &T::gemm>(
          "train.gemm", any_value(), "",
          "Matrix multiplication: the fastest on this machine (auto), or loops with the same bits "
          "on every processor with fused multiply-add (portable; not with train.precision bf16)."),
      field<at, &T::flush_subnormals>("train.flush_subnormals", any_value(), "",
                                      "Treat f32 numbers below 1.2e-38 as 0, which is faster at "
                                      "large learning rates; no effect in f64."),
      field<at, &T::gradient_ramp>(
          "train.gradient_ramp", above(0), "",
          "Positive control for claims about late gradients; 1 in any other run. The loss and its "
          "gradient are multiplied by a factor that grows from 1 at half of the steps to this "
          "value at the last step."),
  };
}

std::vector<Field> log_fields() {
  constexpr auto at = &Config::log;
  using L = LogConfig;
  return {
      field<at, &L::param_grad_norms_interval>(
          "log.param_grad_norms_interval", at_least(0), "steps",
          "Steps between logs of the gradient norm of every parameter; 0 means only at the end.",
          kOfResult),
      field<at, &L::diagnostics_interval>(
          "log.diagnostics_interval", at_least(0), "steps",
          "Steps between per-layer measurements of attention, activations and updates, also made "
          "after the first step; 0 means only at the end."),
      field<at, &L::diagnostics_sequences>("log.diagnostics_sequences", between(1, kMaxSize),
                                           "sequences",
                                           "Number of validation sequences that diagnostics read."),
      field<at, &L::tensorboard>("log.tensorboard", any_value(), "",
                                 "Also write TensorBoard event files with all metrics.", 0),
  };
}

}  // namespace

const std::vector<Field>& fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> joined;
    for (const auto& section : {run_fields(), model_fields(), data_fields(), task_fields(),
                                optim_fields(), train_fields(), log_fields()})
      joined.insert(joined.end(), section.begin(), section.end());
    return joined;
  }();
  return all;
}

const Field* find_field(const std::string& key) {
  const auto found = std::find_if(fields().begin(), fields().end(),
                                  [&](const Field& field) { return field.key == key; });
  return found == fields().end() ? nullptr : &*found;
}

unsigned usual_flags(std::string_view key) {
  const std::string_view section = key.substr(0, key.find('.'));
  if (section == "run" || section == "sweep") return kOfSweep;
  if (section == "data") return kDecides | kOfTask | kBesideModel;
  if (section == "train") return kDecides | kBesideModel;
  if (section == "log") return kOfResult | kOfNumbers;
  if (key.starts_with("model.attention.")) return kDecides | kOfAttention;
  return kDecides | (key.starts_with("model.rope_scaling") ? kBesideModel : 0U);
}

bool has_flag(const std::string& key, unsigned flags) {
  const Field* field = find_field(key);
  return ((field ? field->flags : usual_flags(key)) & flags) != 0;
}

namespace {

constexpr std::string_view kShare = "a number of steps, or a fraction of them such as 10%";
constexpr std::string_view kPasses = "give steps, not passes over the data";
constexpr std::string_view kBetas = "both betas in one list, [0.9, 0.95]";

constexpr auto kForeign = std::to_array<FrameworkAlias>({
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
    {"num_local_experts", "model.moe.num_experts", ""},
    {"n_routed_experts", "model.moe.num_experts", ""},
    {"n_shared_experts", "model.moe.num_shared_experts", ""},
    {"max_position_embeddings", "model.max_seq_len", ""},
    {"rms_norm_eps", "model.norm_eps", ""},
    {"dropout", "", "there is no dropout; leave it out"},
    {"bias", "", "no projection has a bias; leave it out"},
    {"block_size", "data.seq_len", ""},
    {"per_device_train_batch_size", "data.batch_size", ""},
    {"dataset", "data.path", "files or globs"},
    {"device", "", "difftape trains on the CPU; leave it out"},
    {"optimizer", "optim", "", true},
});

}  // namespace

std::string FrameworkAlias::description() const {
  if (key.empty()) return std::string(note);
  return fmt::format("it is {} here{}{}", key, note.empty() ? "" : ": ", note);
}

std::span<const FrameworkAlias> framework_aliases() { return kForeign; }

const FrameworkAlias* find_framework_alias(std::string_view key, bool section) {
  const std::string name = normalized(last_part(key));
  const auto found = std::ranges::find_if(kForeign, [&](const FrameworkAlias& foreign) {
    return foreign.name == name && foreign.section == section;
  });
  return found == kForeign.end() ? nullptr : &*found;
}

std::string_view last_part(std::string_view key) { return key.substr(key.rfind('.') + 1); }

std::string normalized(std::string_view name) {
  std::string text(name);
  std::ranges::transform(text, text.begin(), [](unsigned char c) {
    return c == '-' ? '_' : static_cast<char>(std::tolower(c));
  });
  return text;
}

}  // namespace difftape::run
