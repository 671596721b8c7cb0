#pragma once
// HDF5 by what is in it, a line a thing:
//   int OBJECT NAME NUMBER      text OBJECT NAME TEXT
//   floats DATASET EXTENT...    bytes DATASET EXTENT...    whole DATASET EXTENT...

#include <filesystem>
#include <string_view>

#include "train/run/records/h5.h"

namespace difftape::fuzz {

/// A file that is not saved yet, without the lines that say nothing.
run::h5::File described_h5(const std::filesystem::path& path, std::string_view lines,
                           std::size_t user_block = 0);

/// Returns true if libFuzzer made up the bytes of an HDF5 file. Such files are skipped: they break
/// the HDF5 library itself within seconds. Files of corpus/ are read.
bool is_made_up_h5(std::string_view bytes);

}  // namespace difftape::fuzz
