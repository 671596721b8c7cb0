#include "train/run/config/task_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace difftape::run {

namespace {

/// Collects what does not hold.
class Errors {
 public:
  template <class... Args>
  void check(bool holds, std::vector<std::string> keys, fmt::format_string<Args...> message,
             Args&&... args) {
    if (holds) return;
    found.push_back({std::move(keys), fmt::format(message, std::forward<Args>(args)...)});
  }
  std::vector<FieldError> found;
};

void token_errors(const DataConfig& data, Errors& errors) {
  errors.check(!data.path.empty(), {"data.path", "data.kind"},
               "kind tokens reads token files; name them: .bin of nanoGPT or llm.c, or .h5");
}

void needle_errors(const DataConfig& data, Errors& errors) {
  const bool paired = data.facts.size() == data.queries.size() && !data.facts.empty();
  errors.check(paired, {"data.facts", "data.queries"},
               "{} numbers of facts and {} of queries; need one of each for every setting (N, R)",
               data.facts.size(), data.queries.size());
  if (!paired) return;
  for (size_t i = 0; i < data.facts.size(); ++i) {
    const Index facts = data.facts[i], queries = data.queries[i];
    errors.check(queries <= facts, {"data.facts", "data.queries"},
                 "{} queries of {} facts; a fact is asked for once: lower data.queries or raise "
                 "data.facts",
                 queries, facts);
    errors.check(facts <= data.keys, {"data.keys", "data.facts"},
                 "{} facts are about different cities, but there are {}; raise data.keys", facts,
                 data.keys);
    const Index needed = facts * fact_tokens(data) + queries * question_tokens(data);
    errors.check(needed <= data.seq_len + 1,
                 {"data.seq_len", "data.facts", "data.queries", "data.digits"},
                 "{} facts and {} queries take {} tokens, a sequence has {}; raise data.seq_len",
                 facts, queries, needed, data.seq_len + 1);
  }
}

void recall_errors(const DataConfig& data, Errors& errors) {
  errors.check(4 * data.pairs <= data.seq_len, {"data.seq_len", "data.pairs"},
               "{} pairs and their queries take {} tokens, seq_len is {}; lower data.pairs or "
               "raise data.seq_len",
               data.pairs, 4 * data.pairs, data.seq_len);
  errors.check(data.pairs <= data.keys, {"data.keys", "data.pairs"},
               "{} pairs have different keys, but there are {}; raise data.keys", data.pairs,
               data.keys);
  errors.check(data.pairs <= data.values, {"data.values", "data.pairs"},
               "{} pairs have different values, but there are {}; raise data.values", data.pairs,
               data.values);
}

void noisy_recall_errors(const DataConfig& data, Errors& errors) {
  errors.check(data.seq_len >= 3, {"data.seq_len", "data.kind"},
               "noisy_recall needs room for two pairs; need a seq_len of at least 3");
}

void backcopy_errors(const DataConfig& data, Errors& errors) {
  errors.check(data.triggers < data.symbols, {"data.symbols", "data.triggers"},
               "{} triggers of {} symbols leave nothing to repeat; lower data.triggers",
               data.triggers, data.symbols);
}

Index needle_tokens(const DataConfig& data) { return 1 + 10 + data.keys + data.filler; }
Index recall_tokens(const DataConfig& data) { return data.keys + data.values; }
Index noisy_tokens(const DataConfig& data) { return data.keys + data.values + data.filler; }
Index backcopy_tokens(const DataConfig& data) { return 1 + data.symbols; }

struct Rules {
  DataKind kind;
  void (*check)(const DataConfig&, Errors&);
  Index (*vocab_size)(const DataConfig&);
};
constexpr std::array kRules{Rules{DataKind::tokens, token_errors, nullptr},
                            Rules{DataKind::needles, needle_errors, needle_tokens},
                            Rules{DataKind::recall, recall_errors, recall_tokens},
                            Rules{DataKind::noisy_recall, noisy_recall_errors, noisy_tokens},
                            Rules{DataKind::backcopy, backcopy_errors, backcopy_tokens}};

const Rules* rules_of(const DataConfig& data) {
  const auto found = std::ranges::find(kRules, data.kind, &Rules::kind);
  return found == kRules.end() ? nullptr : &*found;
}

}  // namespace

Index task_vocab_size(const DataConfig& data) {
  const Rules* rules = rules_of(data);
  return rules && rules->vocab_size ? rules->vocab_size(data) : 0;
}

std::vector<FieldError> task_errors(const DataConfig& data, Index vocab_size) {
  Errors errors;
  if (const Rules* rules = rules_of(data)) rules->check(data, errors);
  const Index needed = task_vocab_size(data);
  errors.check(needed <= vocab_size, {"model.vocab_size", "data.kind"},
               "vocab_size is {}; data.kind '{}' with these sizes needs at least {}", vocab_size,
               to_string(data.kind), needed);
  return errors.found;
}

Index least_val_sequences(const DataConfig& data) {
  return data.kind == DataKind::needles ? kDepths * static_cast<Index>(data.facts.size()) : 0;
}

}  // namespace difftape::run
