#pragma once
// How the runs were made: configurations, commands, environments.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "train/study/compare/study.h"

namespace difftape::study::page {

/// Keys with one value an arm (empty: the arm has none), in order. An arm whose runs differ in a
/// key lists their values.
using KeyValues = std::vector<std::pair<std::string, std::vector<std::string>>>;
/// The keys that differ between the arms, or within one, as a table; the others folded away below.
std::string differences(const KeyValues& keys, std::span<const std::string> arms);

KeyValues configs(const Study& study);
/// Everything in env.json but command and config.
KeyValues environments(const Study& study);

/// Each command line once, as one types it into a shell.
std::string commands(const Study& study);

/// What a reader should know before comparing: `notes`, how many runs are not finished.
/// Empty if there is nothing to say.
std::string notices(const Study& study, std::span<const std::string> notes);

}  // namespace difftape::study::page
