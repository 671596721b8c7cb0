#include "train/run/data/tasks/task.h"

#include <algorithm>
#include <numeric>

namespace difftape::run {
namespace {

constexpr std::uint64_t kAnySeed = 0;  // validation does not depend on the seed of the run
constexpr Index kValSequences = Index{1} << 20;  // more than any validation reads

/// Appends a row and sets the row index of its answers and queries.
void append(Batch& batch, Sequence sequence) {
  const auto join = [](auto& all, const auto& more) {
    all.insert(all.end(), more.begin(), more.end());
  };
  for (AnswerSpan& answer : sequence.answers) answer.row = batch.batch;
  for (RetrievalTarget& query : sequence.queries) query.row = batch.batch;
  join(batch.tokens, sequence.tokens);
  join(batch.scored, sequence.scored);
  join(batch.answers, sequence.answers);
  join(batch.queries, sequence.queries);
  ++batch.batch;
}

}  // namespace

std::vector<Index> Sampler::distinct(Index count, Index bound) {
  std::vector<Index> all(bound);
  std::iota(all.begin(), all.end(), Index{0});
  for (Index i = 0; i < count; ++i) std::swap(all[i], all[i + below(bound - i)]);
  all.resize(count);
  return all;
}

Task::Task(const DataConfig& config, Index vocab_size, std::uint64_t seed)
    : config_(config),
      vocab_size_(vocab_size),
      train_(seed, "data/train"),
      val_(kAnySeed, "data/val") {}

Batch Task::train_batch(Index step, Index micro) const {
  Batch batch{0, config_.seq_len, {}};
  for (Index b = 0; b < config_.batch_size; ++b) {
    const auto row = static_cast<std::uint64_t>(micro * config_.batch_size + b);
    Sampler sampler(train_.bits(static_cast<std::uint64_t>(step) << 32 | row));
    append(batch, train_sequence(sampler));
  }
  return batch;
}

Batch Task::val_batch(Index i) const {
  Batch batch{0, config_.seq_len, {}};
  for (Index b = 0; b < config_.batch_size; ++b) {
    const Index n = i * config_.batch_size + b;
    Sampler sampler(val_.bits(static_cast<std::uint64_t>(n)));
    append(batch, val_sequence(sampler, n));
  }
  return batch;
}

Index Task::val_batches() const { return std::max<Index>(1, kValSequences / config_.batch_size); }

nlohmann::ordered_json Task::base_info() const {
  return {{"type", to_string(config_.type)}, {"vocab_size", vocab_size()}};
}

}  // namespace difftape::run
