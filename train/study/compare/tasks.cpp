#include "train/study/compare/tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

namespace difftape::study {

namespace {

using Keys = std::map<std::string, std::string>;

constexpr const char* kDigest = "data";  ///< sorts before the keys "data.<...>"

Keys keys_of(const RunRecord& run) {
  Keys keys;
  for (const auto& [key, value] : run.env.at("config").items()) {
    if (is_of_task(key)) keys[key] = run.config(key);
  }
  const auto data = run.env.find("data");
  if (data != run.env.end() && data->contains("xxh3_128"))
    keys[kDigest] = data->at("xxh3_128").get<std::string>();
  return keys;
}

/// A key in which two tasks differ; the end of `a` if they are one.
Keys::const_iterator difference(const Keys& a, const Keys& b) {
  return std::ranges::find_if(a, [&](const auto& key) {
    const auto other = b.find(key.first);
    return other != b.end() && other->second != key.second;
  });
}

std::string in_words(const std::string& key, const std::string& value) {
  constexpr std::size_t kDigits = 8;  // of the digest; enough to tell files apart
  if (value.empty()) return "unknown " + key;
  if (key == "data.kind") return value;
  if (key == kDigest) return "data " + value.substr(0, kDigits);
  if (key == "train.steps") return value + " steps";
  if (key == "data.batch_size") return "batches of " + value;
  if (key == "data.seq_len") return "sequences of " + value;
  return fmt::format("{}={}", key, value);
}

/// The keys in the order in which they are tried: what says most to a reader first, the digest
/// last.
std::vector<std::string> ordered_keys(const std::vector<Keys>& tasks) {
  std::vector<std::string> order = {"data.kind", "train.steps", "data.batch_size", "data.seq_len"};
  std::set<std::string> others;
  for (const Keys& task : tasks) {
    for (const auto& [key, value] : task) others.insert(key);
  }
  for (const std::string& key : order) others.erase(key);
  others.erase(kDigest);
  order.insert(order.end(), others.begin(), others.end());
  order.emplace_back(kDigest);
  return order;
}

/// What each task says of a key, "" if nothing.
std::vector<std::string> values_of(const std::vector<Keys>& tasks, const std::string& key) {
  std::vector<std::string> values;
  for (const Keys& task : tasks) {
    const auto found = task.find(key);
    values.push_back(found == task.end() ? "" : found->second);
  }
  return values;
}

std::vector<std::string> words_of(const std::vector<Keys>& tasks) {
  std::vector<std::vector<std::string>> told(tasks.size());  // values of the keys taken so far
  std::vector<std::vector<std::string>> words(tasks.size());
  const auto classes = [&] { return std::set(told.begin(), told.end()).size(); };
  for (const std::string& key : ordered_keys(tasks)) {
    const std::size_t before = classes();
    if (before == tasks.size()) break;
    const std::vector<std::string> values = values_of(tasks, key);
    for (std::size_t i = 0; i < tasks.size(); ++i) told[i].push_back(values[i]);
    const bool helps = classes() > before;
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      if (helps) {
        words[i].push_back(in_words(key, values[i]));
      } else {
        told[i].pop_back();
      }
    }
  }
  std::vector<std::string> texts;
  for (const auto& each : words) texts.push_back(fmt::format("{}", fmt::join(each, ", ")));
  return texts;
}

}  // namespace

bool is_of_task(const std::string& key) {
  return (key.starts_with("data.") && key != "data.path") || key == "model.vocab_size" ||
         key == "train.steps" || key == "train.grad_accumulation";
}

Tasks find_tasks(std::span<const RunRecord> runs) {
  Tasks tasks;
  std::vector<Keys> firsts;
  for (const RunRecord& run : runs) {
    const Keys keys = keys_of(run);
    const auto same = std::ranges::find_if(
        firsts, [&](const Keys& first) { return difference(first, keys) == first.end(); });
    tasks.of_run.push_back(static_cast<std::size_t>(same - firsts.begin()));
    if (same == firsts.end()) firsts.push_back(keys);
  }
  tasks.words = words_of(firsts);
  return tasks;
}

std::string task_difference(const RunRecord& a, const RunRecord& b) {
  const Keys of_a = keys_of(a), of_b = keys_of(b);
  const auto found = difference(of_a, of_b);
  if (found == of_a.end()) return "";
  const auto& [key, value] = *found;
  return fmt::format("{} and {} do not compare: {} is {} and {}", a.arm, b.arm, key, value,
                     of_b.at(key));
}

}  // namespace difftape::study
