#include "optim/shards.h"

#include "tests/support/test.h"

namespace difftape {
namespace {

std::vector<Index> owners(std::vector<Index> sizes, Index processes) {
  ParameterSet parameters;
  for (const Index size : sizes) {
    parameters.declare("p" + std::to_string(parameters.size()), {size}, Role::other, {});
  }
  const Shards shards(parameters, processes);
  std::vector<Index> found;
  for (size_t i = 0; i < sizes.size(); ++i) found.push_back(shards.owner(i));
  return found;
}

TEST(Shards, give_the_largest_first_to_the_process_with_the_least) {
  EXPECT_THAT(owners({1, 6, 3, 3, 5}, 2), ElementsAre(1, 0, 1, 0, 1));
  EXPECT_THAT(owners({4, 4, 4}, 3), ElementsAre(0, 1, 2)) << "in their order where they are equal";
  EXPECT_THAT(owners({7}, 4), ElementsAre(0));
}

TEST(Shards, of_one_process_all_belong_to_it) {
  EXPECT_THAT(owners({1, 2, 3}, 1), ElementsAre(0, 0, 0));
  EXPECT_TRUE(Shards().here(5));
}

}  // namespace
}  // namespace difftape
