#include "train/system/exit.h"

#include "core/error.h"

namespace difftape::system {

namespace {

template <class Type>
bool is_a(const std::exception& error) {
  return dynamic_cast<const Type*>(&error) != nullptr;
}

}  // namespace

Exit exit_of(const std::exception& error) {
  if (is_a<UsageError>(error)) return Exit::usage;
  if (is_a<MissingInput>(error)) return Exit::missing_input;
  if (is_a<OutputError>(error)) return Exit::cannot_write;
  if (is_a<ConfigError>(error)) return Exit::config;
  return Exit::bad_data;
}

}  // namespace difftape::system
