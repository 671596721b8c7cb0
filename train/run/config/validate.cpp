#include "train/run/config/reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.h"
#include "layers/model_config.h"

namespace difftape::run {
namespace {

class Rules {
 public:
  Rules(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
        ConfigErrors& errors)
      : resolved_(resolved), unreadable_(unreadable), errors_(errors) {}

  /// Adds an error unless `holds`. It is at the key among `keys` that was given last, or at the
  /// first if all have their defaults.
  template <class... Args>
  void check(bool holds, const std::vector<std::string>& keys, fmt::format_string<Args...> message,
             Args&&... args) const {
    const bool readable = std::none_of(keys.begin(), keys.end(), [&](const std::string& key) {
      return unreadable_.contains(key);
    });
    if (holds || !readable) return;
    const std::string& blamed =
        *std::max_element(keys.begin(), keys.end(), [&](const auto& a, const auto& b) {
          return resolved_.origin(a).rank < resolved_.origin(b).rank;
        });
    errors_.add(resolved_.origin(blamed).location,
                fmt::format("{}: {}", blamed, fmt::format(message, std::forward<Args>(args)...)));
  }

 private:
  const ResolvedConfig& resolved_;
  const std::set<std::string>& unreadable_;
  ConfigErrors& errors_;
};

/// Selected blocks of keys must fit in the sequences of training.
void validate_blocks(const Config& c, const Rules& rules) {
  const std::string size = "model.attention.block_size", seq = "data.seq_len",
                    count = "model.attention.num_selected_blocks";
  const Index block = c.model.attention.block_size,
              selected = c.model.attention.num_selected_blocks;
  if (block == 0) return;
  rules.check(block <= c.data.seq_len, {size, seq},
              "block_size {} is longer than data.seq_len {}; lower block_size, or set it to 0 for "
              "dense attention",
              block, c.data.seq_len);
  const Index blocks = ceil_div(c.data.seq_len, block);
  rules.check(
      block > c.data.seq_len || selected <= blocks, {count, size, seq},
      "num_selected_blocks is {}, but data.seq_len {} has {} blocks of {}; lower it, or set "
      "block_size: 0 for dense attention",
      selected, c.data.seq_len, blocks, block);
}

void validate_softcaps(const ModelConfig& m, const Rules& rules) {
  constexpr double kLeast = 1e-3;  // smaller caps flatten all logits, or divide by 0 in f32
  const auto check = [&](const std::string& key, double cap) {
    rules.check(cap == 0 || cap >= kLeast, {key}, "{} is too small; need 0 (no cap) or at least {}",
                cap, kLeast);
  };
  check("model.final_logit_softcap", m.final_logit_softcap);
  check("model.attention.attn_logit_softcap", m.attention.attn_logit_softcap);
}

void validate_needles(const Config& c, const Rules& rules) {
  const NeedlesConfig& task = c.data.needles;
  const std::string all_facts = "data.needles.facts", all_queries = "data.needles.queries";
  const bool paired = task.facts.size() == task.queries.size() && !task.facts.empty();
  rules.check(paired, {all_facts, all_queries},
              "facts lists {} numbers, but queries lists {}; write equally many, one pair of facts "
              "and queries per setting of the task",
              task.facts.size(), task.queries.size());
  for (size_t i = 0; paired && i < task.facts.size(); ++i) {
    const Index facts = task.facts[i], queries = task.queries[i];
    rules.check(queries <= facts, {all_facts, all_queries},
                "{} queries of {} facts; each fact is queried at most once: lower {} or raise {}",
                queries, facts, all_queries, all_facts);
    rules.check(facts <= task.cities, {"data.needles.cities", all_facts},
                "{} facts need as many different cities, but there are {}; raise "
                "data.needles.cities",
                facts, task.cities);
    const Index needed = facts * task.fact_tokens() + queries * task.question_tokens();
    rules.check(needed <= c.data.seq_len + 1,
                {"data.seq_len", all_facts, all_queries, "data.needles.digits"},
                "{} facts and {} queries take {} tokens, but a sequence has {}; raise data.seq_len",
                facts, queries, needed, c.data.seq_len + 1);
  }
  constexpr Index kAll = std::numeric_limits<Index>::max();
  const Index batches = std::min(batches_to_validate(c, 0, kAll),  // before the last step
                                 batches_to_validate(c, c.train.steps, kAll));
  const Index read = batches * c.data.batch_size;
  const Index least = NeedlesConfig::kDepths * std::ssize(task.facts);
  rules.check(read >= least,
              {"train.eval_batches", "train.final_eval_batches", "data.batch_size", all_facts},
              "one validation reads {} sequences, but needles needs at least {}, one at each depth "
              "for each of {} settings; raise train.eval_batches or data.batch_size",
              read, least, task.facts.size());
}

void validate_mqar(const Config& c, const Rules& rules) {
  const MqarConfig& task = c.data.mqar;
  const std::string pairs = "data.mqar.pairs", keys = "data.mqar.keys", values = "data.mqar.values";
  rules.check(4 * task.pairs <= c.data.seq_len, {"data.seq_len", pairs},
              "{} pairs and their queries take {} tokens, but seq_len is {}; lower {} or raise "
              "data.seq_len",
              task.pairs, 4 * task.pairs, c.data.seq_len, pairs);
  rules.check(task.pairs <= task.keys, {keys, pairs},
              "{} pairs need as many different keys, but there are {}; raise {}", task.pairs,
              task.keys, keys);
  rules.check(task.pairs <= task.values, {values, pairs},
              "{} pairs need as many different values, but there are {}; raise {}", task.pairs,
              task.values, values);
}

/// Checks the rules of one data.type, and that the vocabulary is large enough for a task.
void validate_kind(const Config& c, const Rules& rules) {
  const auto needs = [&](Index tokens) {
    rules.check(tokens <= c.model.vocab_size, {"model.vocab_size", "data.type"},
                "vocab_size is {}, but data.type '{}' with these sizes needs at least {}; raise it",
                c.model.vocab_size, to_string(c.data.type), tokens);
  };
  switch (c.data.type) {
    case DataKind::text:
      return;
    case DataKind::tokens:
      return rules.check(
          !c.data.path.empty(), {"data.path", "data.type"},
          "data.type tokens needs token files; set data.path to .bin files of nanoGPT or llm.c, or "
          "to .h5 files");
    case DataKind::needles:
      validate_needles(c, rules);
      return needs(c.data.needles.vocab_size());
    case DataKind::mqar:
      validate_mqar(c, rules);
      return needs(c.data.mqar.vocab_size());
    case DataKind::backcopy:
      rules.check(c.data.backcopy.triggers < c.data.backcopy.symbols,
                  {"data.backcopy.symbols", "data.backcopy.triggers"},
                  "{} triggers of {} symbols leave nothing to copy; lower data.backcopy.triggers",
                  c.data.backcopy.triggers, c.data.backcopy.symbols);
      return needs(c.data.backcopy.vocab_size());
  }
}

void validate_data(const Config& c, const Rules& rules) {
  const DataConfig& data = c.data;
  const ModelConfig& model = c.model;
  rules.check(data.seq_len <= model.max_seq_len, {"data.seq_len", "model.max_seq_len"},
              "seq_len {} is longer than model.max_seq_len {}; lower data.seq_len or raise "
              "model.max_seq_len",
              data.seq_len, model.max_seq_len);
  rules.check(model.yoco_self_layers == 0 || model.attention.sliding_window <= data.seq_len,
              {"model.attention.sliding_window", "data.seq_len", "model.yoco_self_layers"},
              "the self-decoder's window of {} tokens is longer than data.seq_len {}; write a "
              "shorter window, such as {}, or raise data.seq_len",
              model.attention.sliding_window, data.seq_len, std::max<Index>(data.seq_len / 8, 1));
  rules.check(data.eos_token_id < model.vocab_size, {"data.eos_token_id", "model.vocab_size"},
              "eos_token_id {} is not a token; need one below model.vocab_size, {}",
              data.eos_token_id, model.vocab_size);
  rules.check(data.val_path.empty() || !is_task(data.type), {"data.val_path", "data.type"},
              "data.type {} generates its validation data; remove data.val_path",
              to_string(data.type));
  validate_kind(c, rules);
}

void validate_training(const Config& c, const Rules& rules) {
  const OptimConfig& optim = c.optim;
  rules.check(!optim.independent_weight_decay || optim.weight_decay < 1,
              {"optim.weight_decay", "optim.independent_weight_decay"},
              "weight_decay {} is the fraction of each weight that one step removes, since it is "
              "independent of the learning rate; need less than 1, such as 1e-4",
              optim.weight_decay);
  rules.check(optim.min_lr <= optim.lr, {"optim.lr", "optim.min_lr"},
              "min_lr {} is above the peak lr {}; lower optim.min_lr or raise optim.lr",
              optim.min_lr, optim.lr);
  rules.check(
      optim.warmup_steps <= c.train.steps, {"train.steps", "optim.warmup_steps"},
      "warm-up takes {} steps, but the run has {}; lower optim.warmup_steps, for example to "
      "10%, or raise train.steps",
      optim.warmup_steps, c.train.steps);
}

}  // namespace

std::vector<std::string> warnings_of(const Config& config) {
  std::vector<std::string> warnings;
  const Index window = config.model.attention.sliding_window, seq = config.data.seq_len;
  if (window > seq) {
    warnings.push_back(fmt::format(
        "model.attention.sliding_window is {}, longer than data.seq_len {}, so training hides no "
        "token; write a shorter window, or 0",
        window, seq));
  }
  const MoeConfig& moe = config.model.moe;
  if (moe.num_experts > 0 && moe.num_experts_per_tok == 1 && moe.norm_topk_prob) {
    warnings.push_back(
        "model.moe.num_experts_per_tok is 1: the weight of a single expert is 1 after "
        "normalization, so the router does not learn from the loss; write 2 or more");
  }
  constexpr double kUsualDecay = 0.01;
  const OptimConfig& optim = config.optim;
  if (optim.independent_weight_decay && optim.weight_decay > kUsualDecay) {
    warnings.push_back(fmt::format(
        "optim.weight_decay is {0}, so each step at the peak learning rate removes {1:g} % of "
        "every weight; write about 1e-4, or optim.independent_weight_decay: false, with which a "
        "step removes lr times {0}, as in PyTorch",
        optim.weight_decay, 100 * optim.weight_decay));
  }
  return warnings;
}

bool can_name_folder(const std::string& name) {
  const bool plain =
      std::none_of(name.begin(), name.end(), [](unsigned char c) { return c == '/' || c < ' '; });
  return plain && !name.empty() && name != "." && name != "..";
}

void validate(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
              ConfigErrors& errors) {
  const Rules rules(resolved, unreadable, errors);
  const Config& config = resolved.config;
  rules.check(
      can_name_folder(config.run.name), {"run.name"},
      "'{}' is not a valid folder name; need one word without '/'; set the path with run.out",
      config.run.name);
  for (const auto& [keys, message] : model_conflicts(config.model))
    rules.check(false, keys, "{}", message);
  validate_softcaps(config.model, rules);
  validate_blocks(config, rules);
  validate_data(config, rules);
  validate_training(config, rules);
}

Precision precision_of(const Config& config) {
  const Precision precision = config.train.precision;
  const std::string unsupported = unsupported_reason(precision);
  if (!unsupported.empty()) {
    const bool emulated = unsupported_reason(Precision::bf16_emulated).empty();
    throw ConfigError(fmt::format(
        "train.precision: {} is not supported here: {}; use full{}", to_string(precision),
        unsupported, emulated ? fmt::format(" or {}_emulated", to_string(precision)) : ""));
  }
  return precision;
}

Engine engine_of(const Config& config) {
  const Engine engine = config.train.gemm;
  const std::string unsupported = unsupported_reason(engine);
  throw_if<ConfigError>(!unsupported.empty(),
                        "train.gemm: {} is not supported here: {}; or use auto", to_string(engine),
                        unsupported);
  const Precision precision = config.train.precision;
  throw_if<ConfigError>(
      engine == Engine::portable && precision == Precision::bf16,
      "train.gemm: portable does not support bfloat16 instructions, which take subnormals for 0; "
      "set train.precision to {}_emulated or full, or train.gemm to auto",
      to_string(precision));
  return engine;
}

}  // namespace difftape::run
