#pragma once
// What other programs call the keys of the configuration: an error names ours.

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace difftape::run {

/// A name of nanoGPT, Hugging Face, Hydra or Lightning.
struct ForeignName {
  std::string_view name;  ///< "n_embd"
  std::string_view key;   ///< ours, "model.d_model"; empty: there is nothing like it here
  std::string_view note;  ///< what differs from it here, or why there is nothing
  bool section = false;   ///< a section: "optimizer"

  /// "it is model.d_model here", "it is optim.betas here: both in one list" or the note.
  std::string description() const;
};

std::span<const ForeignName> foreign_names();

/// By the last part of a key, "model.n_embd"; null if the name is nobody's. Small letters and
/// dashes count as they are in Python and on command lines: "Learning-Rate" is "learning_rate".
const ForeignName* find_foreign_name(std::string_view key, bool section);

/// How a command is given a key and its value: "--set train.steps=20".
using WriteKey = std::function<std::string(const std::string& key, const std::string& value)>;

/// What to do instead of giving an option that is the name of a key, here or elsewhere, or of an
/// arm of a sweep: "write --set train.steps=20" for "--steps" and "20", VALUE standing for an empty
/// value. Empty if it is not.
std::string advice_for_option(const std::string& option, const std::string& value,
                              const WriteKey& write);

}  // namespace difftape::run
