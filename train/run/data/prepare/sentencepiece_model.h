#pragma once
// Models of SentencePiece as the library trusts them to be.

#include <string_view>

namespace difftape::run {

/// Whether the table of characters that a model may bring to normalise text with (a double array of
/// darts-clone, then texts) leads nowhere outside of itself: the library follows it unchecked.
bool has_sound_tables(std::string_view model);

}  // namespace difftape::run
