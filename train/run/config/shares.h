#pragma once
// Values that follow from those of other keys: "10%" of train.steps.

#include <map>
#include <set>
#include <string>

#include "train/run/config/fields.h"
#include "train/run/config/reader.h"

namespace difftape::run {

/// Which keys hold a share while a configuration is read: at first all that may, with the default.
class Shares {
 public:
  Shares();

  /// Takes the value that was read for a key: true if it is a share, to be applied later, and false
  /// if it holds as it is.
  bool take(const Field& field, const ConfigValue& value);

  /// Gives each key that holds a share its value, and says so in its origin. Whole numbers are
  /// rounded to the nearest, others to 15 digits: 10% of 0.003 is 0.0003. Adds values out of their
  /// range to `errors`, and their keys to `broken`; keys that follow from a broken one stay.
  void apply(ResolvedConfig& resolved, std::set<std::string>& broken, ConfigErrors& errors) const;

 private:
  std::map<std::string, std::string> text_of_;  ///< "10%" by key
};

}  // namespace difftape::run
