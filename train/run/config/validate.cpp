#include "train/run/config/validate.h"

#include <fmt/format.h>

#include <algorithm>

#include "layers/attention/fields.h"
#include "train/run/config/task_errors.h"
#include "train/stats/spikes.h"

namespace difftape::run {
namespace {

class Rules {
 public:
  Rules(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
        ConfigErrors& errors)
      : resolved_(resolved), unreadable_(unreadable), errors_(errors) {}

  /// `keys` are those the rule binds; the first is to blame if all have their defaults.
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
    errors_.add(resolved_.origin(blamed).place,
                fmt::format("{}: {}", blamed, fmt::format(message, std::forward<Args>(args)...)));
  }

 private:
  const ResolvedConfig& resolved_;
  const std::set<std::string>& unreadable_;
  ConfigErrors& errors_;
};

void validate_run(const RunConfig& run, const Rules& rules) {
  rules.check(can_name_folder(run.name), {"run.name"},
              "'{}' cannot name a folder; need one word without '/'; run.out sets the path",
              run.name);
}

void validate_heads(const ModelConfig& m, const Rules& rules) {
  const std::string heads = "model.num_heads", kv = "model.num_kv_heads", dim = "model.head_dim";
  const Index kv_heads = kv_heads_of(m);
  const bool divides = m.head_dim != 0 || m.d_model % m.num_heads == 0;
  rules.check(divides, {heads, "model.d_model", dim},
              "num_heads {} does not divide d_model {}; change one of them, or set {}", m.num_heads,
              m.d_model, dim);
  const Index head_dim = head_dim_of(m);
  const std::vector<std::string> dim_keys =
      m.head_dim == 0 ? std::vector{heads, std::string("model.d_model"), dim} : std::vector{dim};
  rules.check(!divides || !m.rope || head_dim % 2 == 0, dim_keys,
              "head_dim is {}{}; need an even number, because RoPE turns pairs of features; or set "
              "model.rope: false",
              head_dim, m.head_dim == 0 ? " (d_model / num_heads)" : "");
  rules.check(m.num_heads % kv_heads == 0, {kv, heads},
              "num_kv_heads {} does not divide num_heads {}; need groups of equal size", kv_heads,
              m.num_heads);
  for (const FieldError& error : attention_errors(m))
    rules.check(false, error.keys, "{}", error.message);
}

void validate_data(const DataConfig& data, const ModelConfig& model, const Rules& rules) {
  rules.check(data.seq_len <= model.max_seq_len, {"data.seq_len", "model.max_seq_len"},
              "seq_len {} is longer than model.max_seq_len {}; lower data.seq_len or raise "
              "model.max_seq_len",
              data.seq_len, model.max_seq_len);
  rules.check(data.document_end < model.vocab_size, {"data.document_end", "model.vocab_size"},
              "document_end {} is no token; need one below model.vocab_size, {}", data.document_end,
              model.vocab_size);
}

void validate_task(const Config& c, const Rules& rules) {
  for (const FieldError& error : task_errors(c.data, c.model.vocab_size))
    rules.check(false, error.keys, "{}", error.message);
  const Index read = c.train.eval_batches * c.data.batch_size;
  const Index least = least_val_sequences(c.data);
  rules.check(read >= least, {"train.eval_batches", "data.batch_size", "data.facts"},
              "a validation reads {} sequences; needles needs {} for each of {} settings at each "
              "depth; raise train.eval_batches or data.batch_size",
              read, least, c.data.facts.size());
}

void validate_training(const Config& c, const Rules& rules) {
  const OptimConfig& optim = c.optim;
  rules.check(optim.min_lr <= optim.lr, {"optim.lr", "optim.min_lr"},
              "min_lr {} is above the peak lr {}; lower optim.min_lr or raise optim.lr",
              optim.min_lr, optim.lr);
  rules.check(optim.warmup_steps <= c.train.steps, {"train.steps", "optim.warmup_steps"},
              "warm-up takes {} steps, but the run has {}; lower optim.warmup_steps or raise "
              "train.steps",
              optim.warmup_steps, c.train.steps);
  const LogConfig& log = c.log;
  const std::string obstacle = stats::unsupported_reason(stats::make_spike_rule(
      log.spike_rule, log.spike_window, log.spike_threshold, log.spike_min_history));
  rules.check(
      obstacle.empty(),
      {"log.spike_window", "log.spike_threshold", "log.spike_min_history", "log.spike_rule"}, "{}",
      obstacle);
}

}  // namespace

bool can_name_folder(const std::string& name) {
  const bool plain =
      std::none_of(name.begin(), name.end(), [](unsigned char c) { return c == '/' || c < ' '; });
  return plain && !name.empty() && name != "." && name != "..";
}

void validate(const ResolvedConfig& resolved, const std::set<std::string>& unreadable,
              ConfigErrors& errors) {
  const Rules rules(resolved, unreadable, errors);
  const Config& config = resolved.config;
  validate_run(config.run, rules);
  validate_heads(config.model, rules);
  validate_data(config.data, config.model, rules);
  validate_task(config, rules);
  validate_training(config, rules);
}

}  // namespace difftape::run
