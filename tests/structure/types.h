#pragma once
// Finds the types that a source defines, and those that two sources define under one name: two
// definitions of a type in one program are undefined behaviour that no linker reports.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/structure/sources.h"

namespace difftape::test {

/// A struct, class, enum or alias at namespace scope.
struct TypeName {
  std::string scope;  ///< its namespaces without the unnamed ones: "difftape::run"
  std::string name;
  bool local = false;  ///< in an unnamed namespace

  std::string full() const { return scope.empty() ? name : scope + "::" + name; }
};

/// The types that a text defines. Forward declarations, specialisations, template parameters and
/// members of types and functions are left out.
std::vector<TypeName> types_in(std::string_view text);

/// Every namespace that a text opens, by its full name, "difftape::run"; unnamed ones left out.
std::vector<std::string> namespaces_in(std::string_view text);

/// One line for each pair of files that define one full name, and for each type of an unnamed
/// namespace that hides one of a header from an enclosing namespace.
std::vector<std::string> conflicting_types(std::span<const Source> sources);

}  // namespace difftape::test
