#include "tests/structure/types.h"

namespace difftape::test {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names_in(std::string_view text) {
  std::vector<std::string> names;
  for (const TypeName& type : types_in(text)) {
    names.push_back(type.full() + (type.local ? " (local)" : ""));
  }
  return names;
}

TEST(TypesIn, are_structs_classes_enums_and_aliases_of_namespaces) {
  EXPECT_THAT(names_in("namespace a::b {\n"
                       "struct One { int x; };\n"
                       "class Two final : public One {};\n"
                       "enum class Three : int { x };\n"
                       "enum Four { y };\n"
                       "using Five = int;\n"
                       "}\n"
                       "namespace a { namespace { struct Six {}; } }\n"
                       "struct alignas(64) Seven {};\n"),
              ElementsAre("a::b::One", "a::b::Two", "a::b::Three", "a::b::Four", "a::b::Five",
                          "a::Six (local)", "Seven"));
}

TEST(TypesIn, are_no_declarations_parameters_members_or_words_of_texts) {
  EXPECT_THAT(names_in("struct Declared;\n"
                       "enum class Later : int;\n"
                       "template <class T, class U = std::pair<T, T>> void f(struct X* x) {\n"
                       "  struct Local {};\n"
                       "}\n"
                       "template <> struct hash<int> {};\n"
                       "// struct A {};\n"
                       "/* struct B {}; */\n"
                       "#define STRUCT struct C {};\n"
                       "const char* text = \"struct D {};\";\n"
                       "const char* raw = R\"(struct E { \" };)\";\n"
                       "char quote = '\"', brace = '{';\n"
                       "int thousand = 1'000;\n"
                       "using std::string;\n"
                       "namespace fs = std::filesystem;\n"
                       "extern \"C\" { struct F { struct Inner {}; }; }\n"),
              ElementsAre("F"));
}

TEST(ConflictingTypes, of_two_files_are_found) {
  const Source a{"a.h", "namespace x { enum class Expected { lower }; }"};
  const Source b{"b.cpp", "namespace x { enum class Expected { zero }; }"};
  const Source c{"c.cpp", "namespace y { enum class Expected { zero }; }"};
  EXPECT_THAT(conflicting_types(std::vector{a, b, c}),
              ElementsAre("x::Expected is defined in a.h and in b.cpp"));
  EXPECT_THAT(conflicting_types(std::vector{a, c}), IsEmpty());
}

TEST(ConflictingTypes, of_an_unnamed_namespace_hide_those_of_headers) {
  const Source header{"a.h", "namespace x { struct Ending {}; }"};
  const Source same{"b.cpp", "namespace x { namespace { struct Ending {}; } }"};
  const Source inner{"c.cpp", "namespace x::y { namespace { struct Ending {}; } }"};
  const Source other{"d.cpp", "namespace z { namespace { struct Ending {}; } }"};
  EXPECT_THAT(conflicting_types(std::vector{header, same}),
              ElementsAre("x::Ending of an unnamed namespace in b.cpp hides x::Ending of a.h"));
  EXPECT_THAT(conflicting_types(std::vector{inner, header}),
              ElementsAre("x::y::Ending of an unnamed namespace in c.cpp hides x::Ending of a.h"));
  EXPECT_THAT(conflicting_types(std::vector{same, inner, other}), IsEmpty());
}

TEST(ConflictingTypes, are_none_in_the_program) {
  std::size_t types = 0;
  for (const Source& source : program_sources()) types += types_in(source.text).size();
  EXPECT_GT(types, 200U);
  EXPECT_THAT(conflicting_types(program_sources()), IsEmpty());
}

}  // namespace
}  // namespace difftape::test
