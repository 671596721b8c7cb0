#include "train/run/config/key_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "train/run/config/foreign_names.h"
#include "train/run/config/sweep_settings.h"
#include "train/run/config/writer.h"
#include "train/system/json.h"
#include "train/system/suggest.h"
#include "train/system/text_table.h"

namespace difftape::run {

namespace {

KeyList all_keys() {
  KeyList keys;
  for (const Field& field : fields()) keys.push_back(&field);
  for (const SweepField& field : sweep_fields()) keys.push_back(&field);
  return keys;
}

std::string default_of(const KeyInfo& key) {
  return key.spec.form.empty() ? yaml_text(key.spec.standard()) : "-";
}

std::size_t longest_line(std::string_view text) {
  std::size_t longest = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    longest = std::max(longest, end - begin);
    begin = end + 1;
  }
  return longest;
}

}  // namespace

KeyList keys_that_begin(std::string_view prefix) {
  const KeyList all = all_keys();
  KeyList keys;
  std::ranges::copy_if(all, std::back_inserter(keys),
                       [&](const KeyInfo* key) { return key->key.starts_with(prefix); });
  if (!keys.empty()) return keys;
  std::string advice = "'difftape config keys' lists all";
  if (const ForeignName* foreign = find_foreign_name(prefix, false)) {
    advice = foreign->description();
  } else {
    std::vector<std::string> names;
    for (const KeyInfo* key : all) names.push_back(key->key);
    const std::string nearest = system::nearest_key(prefix, names);
    if (!nearest.empty()) advice = fmt::format("did you mean '{}'?", nearest);
  }
  throw UsageError(fmt::format("config keys: no key begins with '{}'; {}", prefix, advice));
}

std::string describe_keys(const KeyList& keys, std::size_t width) {
  system::Table table;
  for (const char* name : {"KEY", "TYPE", "DEFAULT", "RANGE", "UNIT", "MEANING"})
    table.columns.push_back({"", name, true});
  std::string narrow;
  for (const KeyInfo* k : keys) {
    const std::string type = k->spec.type(), range = k->spec.constraint.str();
    table.rows.push_back(
        {k->key, type, default_of(*k), range, k->unit.empty() ? "-" : k->unit, k->help});
    narrow += fmt::format("{}: {}\n", k->key, default_of(*k)) +
              system::wrapped(type + (range == "any" ? "" : ", " + range) +
                                  (k->unit.empty() ? "" : ", in " + k->unit),
                              width, "    ") +
              system::wrapped(k->help, width, "    ");
  }
  const std::string wide = to_text(table);
  return longest_line(wide) <= width ? wide : narrow;
}

std::string keys_json(const KeyList& keys) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const KeyInfo* k : keys) {
    nlohmann::ordered_json key{{"key", k->key}, {"type", k->spec.type()}};
    if (k->spec.form.empty()) key["default"] = json_of(k->spec.standard());
    key["range"] = k->spec.constraint.str();
    key["unit"] = k->unit;
    key["meaning"] = k->help;
    list.push_back(std::move(key));
  }
  return system::json_text(list, 2) + "\n";
}

}  // namespace difftape::run
