// What is said of a key that there is not.

#include <fmt/format.h>

#include <algorithm>

#include "train/run/config/foreign_names.h"
#include "train/run/config/reader.h"
#include "train/system/suggest.h"

namespace difftape::run {

void Assignments::unknown(const std::string& key, const YamlNode& value,
                          const SourceLocation& location) {
  if (errors_->full()) return errors_->add(location, fmt::format("unknown key '{}'", key));
  const bool of_sweep = key == "sweep" || key.starts_with("sweep.");
  if (of_sweep && !std::ranges::count(sections_, "sweep")) {
    errors_->add(location, location.line == 0
                               ? fmt::format("{}: only 'difftape sweep' knows this key", key)
                               : fmt::format("{}: this is a sweep; run it with 'difftape sweep {}'",
                                             key, location.source));
    complete_ = false;
    return;
  }
  const bool section = value.kind == YamlNode::Kind::map;
  if (const ForeignName* foreign = find_foreign_name(key, section)) {
    suspects_.emplace(foreign->key);
    errors_->add(location, fmt::format("unknown {} '{}'; {}", section ? "section" : "key", key,
                                       foreign->description()));
    return;
  }
  std::vector<std::string> candidates = section ? sections_ : keys_;
  if (section && of_sweep) candidates = keys_;  // some of them are maps
  if (!of_sweep) {
    std::erase_if(candidates, [](const std::string& k) { return k.starts_with("sweep."); });
  }
  candidates.push_back("base");
  const std::string guess = system::nearest_key(key, candidates);
  suspects_.insert(guess);
  errors_->add(location, fmt::format("unknown {} '{}'; {}", section ? "section" : "key", key,
                                     guess.empty() ? "'difftape config keys' lists all keys"
                                                   : "did you mean '" + guess + "'?"));
}

}  // namespace difftape::run
