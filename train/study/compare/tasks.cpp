#include "train/study/compare/tasks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "train/run/config/fields.h"

namespace difftape::study {

namespace {

using Keys = std::map<std::string, std::string>;

constexpr const char* kDigest = "data";  ///< sorts before the keys "data.<...>"

Keys keys_of(const RunRecord& run) {
  Keys keys;
  for (const auto& [key, value] : run::flat_config(run.config, run::kOfTask))
    keys[key] = run.value(key);
  const auto data = run.env.find("data");
  if (data != run.env.end() && data->contains("xxh3_128"))
    keys[kDigest] = data->at("xxh3_128").get<std::string>() + data->value("val_xxh3_128", "");
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
  if (key == "data.type") return value;
  if (key == kDigest) return "data " + value.substr(0, kDigits);
  if (key == "train.steps") return value + " steps";
  if (key == "data.batch_size") return "batches of " + value;
  if (key == "data.seq_len") return "sequences of " + value;
  return fmt::format("{}={}", key, value);
}

/// The keys in the order in which they are tried: what says most to a reader first, the digest
/// last.
std::vector<std::string> ordered_keys(const std::vector<Keys>& tasks) {
  std::vector<std::string> order = {"data.type", "train.steps", "data.batch_size", "data.seq_len"};
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

std::vector<std::string> words_of(const std::vector<Keys>& tasks) {
  const auto value_of = [&](std::size_t task, const std::string& key) {
    const auto found = tasks[task].find(key);
    return found == tasks[task].end() ? std::string() : found->second;
  };
  const auto keys = distinguishing_keys(ordered_keys(tasks), tasks.size(), value_of);
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    std::vector<std::string> words;
    for (const std::string& key : keys) words.push_back(in_words(key, value_of(i, key)));
    texts.push_back(fmt::format("{}", fmt::join(words, ", ")));
  }
  return texts;
}

}  // namespace

std::vector<std::string> distinguishing_keys(
    const std::vector<std::string>& keys, std::size_t items,
    const std::function<std::string(std::size_t, const std::string&)>& value_of) {
  std::vector<std::vector<std::string>> known(items);  // of each item, the values of the keys taken
  std::vector<std::string> taken;
  std::size_t classes = 1;
  for (const std::string& key : keys) {
    std::vector<std::vector<std::string>> more = known;
    for (std::size_t i = 0; i < items; ++i) more[i].push_back(value_of(i, key));
    const std::size_t now = std::set(more.begin(), more.end()).size();
    if (now <= classes) continue;
    classes = now;
    known = std::move(more);
    taken.push_back(key);
  }
  return taken;
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
