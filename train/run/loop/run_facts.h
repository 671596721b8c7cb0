#pragma once
// What env.json of a run says of the program and of its data.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "train/run/data/dataset.h"

namespace difftape::run {

/// Version, compiler and engines of this program.
nlohmann::ordered_json describe_build();

/// Facts about the data, and what is best achievable where that is known.
nlohmann::ordered_json describe_data(const Dataset& data);

/// What became of the files of a text that were divided, in one line. `data` is what describe_data
/// returned of such a text: it has `dropped_files`.
std::string division_note(const nlohmann::ordered_json& data);

}  // namespace difftape::run
