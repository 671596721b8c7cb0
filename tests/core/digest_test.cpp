#include "core/digest.h"

#include "tests/support/test.h"

namespace difftape {
namespace {

TEST(Digest, of_no_bytes_is_the_published_constant) {
  EXPECT_EQ(Digest().hex(), "99aa06d3014798d86001c324468d497f");
}

TEST(Digest, does_not_depend_on_how_the_bytes_are_cut) {
  const std::string text(5000, 'x');
  Digest whole, parts;
  whole.add(text);
  for (size_t i = 0; i < text.size(); i += 7) parts.add(std::string_view(text).substr(i, 7));
  EXPECT_EQ(whole.hex(), parts.hex());
}

TEST(Digest, changes_with_one_bit) {
  Digest a, b;
  a.add("difftape");
  b.add("difftapd");
  EXPECT_NE(a.hex(), b.hex());
}

}  // namespace
}  // namespace difftape
