#pragma once
// Every combination of the attention fields that a configuration can set.

#include "layers/model_config.h"
#include "tests/support/test.h"

namespace difftape::test {

/// One combination: for each field 0 if it is not set, else 1 + the position of its value.
using Combination = std::array<std::size_t, 6>;

/// Calls f(i, field) for each field that can be set, an optional member of `config`.
template <class F>
void for_each_field(AttentionConfig& config, F&& f) {
  f(std::size_t{0}, config.pairing);
  f(std::size_t{1}, config.lambda);
  f(std::size_t{2}, config.lambda_init);
  f(std::size_t{3}, config.softmax_denominator);
  f(std::size_t{4}, config.subln);
  f(std::size_t{5}, config.gate);
}

template <class T>
std::vector<T> values_of(const std::optional<T>&) {
  std::vector<T> values;
  for (const Named<T>& each : kNames<T>) values.push_back(each.value);
  return values;
}
inline std::vector<bool> values_of(const std::optional<bool>&) { return {false, true}; }

/// Returns the number of values of each field, including "not set".
inline Combination sizes() {
  Combination counts{};
  AttentionConfig config;
  for_each_field(config,
                 [&](std::size_t i, auto& field) { counts[i] = 1 + values_of(field).size(); });
  return counts;
}

/// `config` with the fields of a combination.
inline AttentionConfig with(AttentionConfig config, const Combination& choice) {
  for_each_field(config, [&](std::size_t i, auto& field) {
    field.reset();
    if (choice[i] > 0) field = values_of(field)[choice[i] - 1];
  });
  return config;
}

inline std::vector<Combination> all_combinations() {
  const Combination counts = sizes();
  std::vector<Combination> all{{}};
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::vector<Combination> before = all;
    for (std::size_t value = 1; value < counts[i]; ++value) {
      for (Combination choice : before) {
        choice[i] = value;
        all.push_back(choice);
      }
    }
  }
  return all;
}

}  // namespace difftape::test
