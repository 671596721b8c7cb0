#include "bench/candidates.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "bench/measure.h"
#include "core/error.h"
#include "core/gemm_backend.h"
#include "core/parallel.h"
#include "layers/cost.h"
#include "train/app/plan.h"
#include "train/run/config/reader.h"
#include "train/run/config/writer.h"
#include "train/run/loop/step.h"

namespace difftape::bench {
namespace {

using Command = std::vector<std::string>;

run::Config resolved(const Training& training) {
  run::Config config = run::load_config(training.config, training.overrides).config;
  if (!training.kind.empty()) config.model = app::with_kind(config.model, training.kind);
  require_supported(training.config, config.model);
  return config;
}

bool runs(const Selection& selection, const std::string& name) {
  return std::find(selection.names.begin(), selection.names.end(), name) != selection.names.end();
}

Command operator+(Command first, const Command& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

struct TorchCandidate {
  const char *option, *name, *framework;
  Command flags;
};
const std::vector<TorchCandidate>& torch_candidates() {
  static const std::vector<TorchCandidate> candidates{
      {"torch", "PyTorch f32 eager", "PyTorch f32", {}},
      {"torch-compile", "PyTorch f32 compiled", "PyTorch f32", {"--compile"}},
      {"torch-bf16", "PyTorch bf16 eager", "PyTorch bf16", {"--precision", "bf16"}},
      {"torch-compile-bf16",
       "PyTorch bf16 compiled",
       "PyTorch bf16",
       {"--compile", "--precision", "bf16"}}};
  return candidates;
}

/// Returns the attention if it is a kind of the script without changed fields, else the default.
AttentionConfig torch_attention(const AttentionConfig& attention) {
  constexpr std::array kKinds{"softmax", "diff_v1", "diff_v2"};  // KINDS of torch_gpt.py
  if (std::ranges::find(kKinds, attention.kind.name()) == kKinds.end()) return {};
  const AttentionConfig plain{.kind = attention.kind};
  return fields_of(attention) == fields_of(plain) ? attention : plain;
}

/// Returns the configuration that torch_gpt.py trains: the sizes of `config`, which are its
/// options, and keys that do not change the time of a step (AdamW, data, validation, logs,
/// checkpoints). All others have their defaults.
run::Config torch_config(const run::Config& config) {
  const ModelConfig& model = config.model;
  const OptimConfig& optim = config.optim;
  const run::DataConfig& data = config.data;
  const run::TrainConfig& train = config.train;
  run::Config taken;
  taken.run = config.run;
  taken.log = config.log;
  taken.model = {.d_model = model.d_model,
                 .num_layers = model.num_layers,
                 .num_heads = model.num_heads,
                 .num_kv_heads = model.num_kv_heads,
                 .head_dim = model.head_dim,
                 .d_ff = model.d_ff,
                 .max_seq_len = model.max_seq_len,
                 .vocab_size = model.vocab_size,
                 .rope_theta = model.rope_theta,
                 .norm_eps = model.norm_eps,
                 .tie_word_embeddings = model.tie_word_embeddings,
                 .match_params = model.match_params,
                 .attention = torch_attention(model.attention)};
  taken.data = {.type = is_task(data.type) ? taken.data.type : data.type,  // it scores every token
                .path = data.path,
                .seq_len = data.seq_len,
                .batch_size = data.batch_size,
                .val_fraction = data.val_fraction};
  taken.optim = {.lr = optim.lr,
                 .min_lr = optim.min_lr,
                 .schedule = optim.schedule,
                 .warmup_steps = optim.warmup_steps,
                 .decay_fraction = optim.decay_fraction,
                 .weight_decay = optim.weight_decay,
                 .independent_weight_decay = optim.independent_weight_decay,
                 .decay_embeddings = optim.decay_embeddings,
                 .betas = optim.betas,
                 .eps = optim.eps,
                 .max_grad_norm = optim.max_grad_norm};
  taken.train = {.steps = train.steps,
                 .eval_interval = train.eval_interval,
                 .eval_batches = train.eval_batches,
                 .final_eval_batches = train.final_eval_batches,
                 .checkpoint_interval = train.checkpoint_interval,
                 .precision = train.precision,
                 .flush_subnormals = train.flush_subnormals};
  return taken;
}

/// Returns a key that torch_gpt.py does not support, such as "model.rope: false", or "".
std::string beyond_torch(const run::Config& config) {
  const run::FlatConfig asked = flat_config(config), taken = flat_config(torch_config(config));
  const auto [differs, other] = std::ranges::mismatch(asked, taken);
  return differs == asked.end() ? "" : fmt::format("{}: {}", differs->first, differs->second);
}

/// The sizes that the scripts of the peers take.
Command sizes(const run::Config& config) {
  const ModelConfig& m = config.model;
  const Index d_ff = model_cost(m, config.data.seq_len).mlp_width;
  Command options;
  const auto add = [&](const char* name, Index value) {
    options.insert(options.end(), {fmt::format("--{}", name), std::to_string(value)});
  };
  add("d-model", m.d_model);
  add("layers", m.num_layers);
  add("heads", m.num_heads);
  add("kv-heads", kv_heads_of(m));
  add("head-dim", head_dim_of(m));
  add("d-ff", d_ff);
  add("seq-len", config.data.seq_len);
  add("batch", config.data.batch_size);
  add("vocab", m.vocab_size);
  add("threads", num_threads());
  return options;
}

Command torch_model(const run::Config& config, const Selection& selection, const char* script) {
  const ModelConfig& m = config.model;
  const Command fixed{selection.python, std::string(DIFFTAPE_PEERS_DIR) + "/" + script,
                      "--kind",         std::string(m.attention.kind.name()),
                      "--rope-theta",   fmt::format("{}", m.rope_theta),
                      "--norm-eps",     fmt::format("{}", m.norm_eps)};
  return fixed + sizes(config) + (m.tie_word_embeddings ? Command{"--tied"} : Command{});
}

Command torch_training(const run::Config& config, const Selection& selection) {
  return torch_model(config, selection, "torch_gpt.py");
}

/// Adds the wanted candidates of PyTorch, or one line with the reason why there are none.
void add_torch(Entries& entries, const Selection& selection, const Command& command, double flops,
               const std::string& unsupported) {
  std::vector<std::string> wanted;
  for (const TorchCandidate& torch : torch_candidates()) {
    if (!runs(selection, torch.option)) continue;
    // PyTorch emulates bfloat16 where the processor has no units for it: minutes per step.
    const bool rounds = std::ranges::count(torch.flags, "bf16") > 0;
    if (const std::string why = unsupported_reason(Precision::bf16); rounds && !why.empty()) {
      entries.left_out.push_back(fmt::format("{}: {}", torch.name, why));
      continue;
    }
    wanted.emplace_back(torch.option);
    if (selection.python.empty() || !unsupported.empty()) continue;
    entries.candidates.push_back({torch.name, torch.framework, command + torch.flags, flops});
  }
  if (wanted.empty()) return;
  if (selection.python.empty())
    entries.left_out.push_back("PyTorch: set DIFFTAPE_PEER_PYTHON to a Python that has it");
  else if (!unsupported.empty())
    entries.left_out.push_back(fmt::format("PyTorch: its script has no {}", unsupported));
}

void add_llmc(Entries& entries, const Selection& selection, const run::Config& config) {
  if (!runs(selection, "llmc")) return;
  if (selection.llmc.empty()) {
    entries.left_out.push_back("llm.c: set --llmc (or DIFFTAPE_LLMC) to a checkout of it");
  } else if (selection.python.empty()) {
    entries.left_out.push_back("llm.c: set DIFFTAPE_PEER_PYTHON to a Python with NumPy");
  } else {
    const Command fixed{selection.python, std::string(DIFFTAPE_PEERS_DIR) + "/llmc_gpt.py",
                        "--llmc", selection.llmc};
    entries.candidates.push_back({"llm.c f32 (GPT-2)", "llm.c f32", fixed + sizes(config)});
  }
}

Command with_overrides(Command command, const Training& training) {
  for (const std::string& text : training.overrides) command = command + Command{"--set", text};
  return command;
}

}  // namespace

std::vector<std::string> candidate_names() {
  std::vector<std::string> names{"ours", "ours-bf16"};
  for (const TorchCandidate& torch : torch_candidates()) names.emplace_back(torch.option);
  names.emplace_back("llmc");
  return names;
}

Entries training_entries(const Training& training, const Selection& selection) {
  const run::Config config = resolved(training);
  const double flops = model_cost(config.model, config.data.seq_len).train_flops_per_token *
                       static_cast<double>(tokens_per_step(config));
  Command ours{selection.programs / "bench_serve", "step", training.config};
  if (!training.kind.empty()) ours = ours + Command{"--kind", training.kind};
  ours = with_overrides(ours, training);
  const std::string kind = training.kind.empty() ? "" : " " + training.kind;
  Entries entries;
  if (runs(selection, "ours"))
    entries.candidates.push_back({"difftape f32" + kind, "difftape f32" + kind, ours, flops});
  if (selection.processes > 1) {
    const std::string count = std::to_string(selection.processes),
                      threads =
                          std::to_string(std::max(1, num_threads() / int(selection.processes)));
    const Command mpirun{
        "env",      "OMP_NUM_THREADS=" + threads, "mpirun", "--allow-run-as-root", "-n", count,
        "--map-by", "slot:PE=" + threads};
    const std::string name = fmt::format("difftape f32, {} x {} threads", count, threads);
    entries.candidates.push_back({name, "difftape f32", mpirun + ours, flops});
    entries.candidates.back().processes = selection.processes;
  }
  if (runs(selection, "ours-bf16"))
    entries.candidates.push_back({"difftape bf16" + kind, "difftape bf16" + kind,
                                  ours + Command{"--set", "train.precision=bf16"}, flops});
  add_torch(entries, selection, torch_training(config, selection), flops, beyond_torch(config));
  for (Candidate& each : entries.candidates) {
    if (kind.empty() || each.name.ends_with(kind)) continue;
    each.name += kind;
    each.framework += kind;
  }
  add_llmc(entries, selection, config);
  return entries;
}

Entries attention_entries(const AttentionSize& size, const Selection& selection) {
  if (size.tokens % size.seq != 0)
    throw UsageError(
        fmt::format("attention: --seq {} does not divide --tokens {}", size.seq, size.tokens));
  const Command sizes{"--heads",    std::to_string(size.heads),
                      "--head-dim", std::to_string(size.head_dim),
                      "--batch",    std::to_string(size.tokens / size.seq),
                      "--seq",      std::to_string(size.seq)};
  const double flops =
      6.0 * static_cast<double>(size.heads * size.head_dim * size.seq * size.tokens);
  Entries entries;
  const Command ours = Command{selection.programs / "bench_serve", "attention"} + sizes;
  if (runs(selection, "ours"))
    entries.candidates.push_back({"difftape f32", "difftape f32", ours, flops});
  if (const std::string why = unsupported_reason(Precision::bf16); runs(selection, "ours-bf16")) {
    if (why.empty()) {
      entries.candidates.push_back(
          {"difftape bf16", "difftape bf16", ours + Command{"--bf16"}, flops});
    } else {
      entries.left_out.push_back("difftape bf16: " + why);
    }
  }
  const Command torch{selection.python, std::string(DIFFTAPE_PEERS_DIR) + "/torch_attention.py",
                      "--threads", std::to_string(num_threads())};
  add_torch(entries, selection, torch + sizes, flops, "");
  return entries;
}

Entries text_entries(const Training& training, Index tokens, const Selection& selection) {
  const run::Config config = resolved(training);
  const std::string kind(config.model.attention.kind.name());
  const Command length{"--tokens", std::to_string(tokens)};
  Command ours{selection.programs / "bench_serve", "generate", training.config, "--kind", kind};
  Entries entries;
  if (runs(selection, "ours"))
    entries.candidates.push_back(
        {"difftape f32 " + kind, "difftape f32", with_overrides(ours, training) + length});
  Selection eager = selection;
  std::erase_if(eager.names, [](const std::string& name) { return name != "torch"; });
  Entries torch;
  add_torch(torch, eager, torch_model(config, selection, "torch_generate.py") + length, 0,
            beyond_torch(config));
  entries.left_out = torch.left_out;
  for (Candidate& each : torch.candidates) {
    each.name += " " + kind;
    entries.candidates.push_back(each);
    each.name += ", 1 thread";
    each.command = each.command + Command{"--threads", "1"};
    entries.candidates.push_back(each);
  }
  return entries;
}

Entries start_entries(const Training& training, const Selection& selection,
                      const std::filesystem::path& scratch) {
  const run::Config config = resolved(training);
  Entries entries;
  if (runs(selection, "ours")) {
    Candidate ours{"difftape train", "difftape f32",
                   with_overrides({selection.programs / "difftape", "train", training.config,
                                   "--out", scratch},
                                  training)};
    ours.begins = "step ";
    ours.line = 1;
    entries.candidates.push_back(ours);
  }
  add_torch(entries, selection, torch_training(config, selection), 0, beyond_torch(config));
  return entries;
}

double tokens_of_step(const Training& training) {
  return static_cast<double>(tokens_per_step(resolved(training)));
}

}  // namespace difftape::bench
