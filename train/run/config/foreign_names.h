#pragma once
// What nanoGPT, Hugging Face and others call the most common keys: errors name ours.

#include <span>
#include <string>
#include <string_view>

namespace difftape::run {

struct ForeignName {
  std::string_view name;  ///< "n_embd"
  std::string_view key;   ///< ours, "model.d_model"; empty: there is nothing like it here
  std::string_view note;  ///< what differs from it here, or why there is nothing
  bool section = false;   ///< a section: "optimizer"

  /// "it is model.d_model here", "it is optim.betas here: both in one list" or the note.
  std::string description() const;
};

std::span<const ForeignName> foreign_names();

/// By the last part of a key, "model.n_embd"; null if the name is nobody's.
const ForeignName* find_foreign_name(std::string_view key, bool section);

/// "lr" of "optim.lr".
std::string_view last_part(std::string_view key);
/// As names of Python are written: "Learning-Rate" is "learning_rate".
std::string normalised(std::string_view name);

}  // namespace difftape::run
