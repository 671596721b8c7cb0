#include "optim/shards.h"

#include "core/parallel.h"
#include "tests/support/test.h"

namespace difftape {
namespace {

constexpr Index kBlock = kElementGrain;

ParameterSet of_sizes(const std::vector<Index>& sizes) {
  ParameterSet parameters;
  for (const Index size : sizes) {
    parameters.declare("p" + std::to_string(parameters.size()), {size}, Role::other, {});
  }
  return parameters;
}

Shards cut(const ParameterSet& parameters, Index processes) {
  return {parameters, RuleSet({}), processes};
}

/// Returns the owners of the pieces of all parameters.
std::vector<Index> owners(const std::vector<Index>& sizes, Index processes) {
  const ParameterSet parameters = of_sizes(sizes);
  const Shards shards = cut(parameters, processes);
  std::vector<Index> found;
  for (const Parameter& p : parameters) {
    for (const Piece& piece : shards.pieces(p.position)) found.push_back(piece.owner);
  }
  return found;
}

TEST(Shards, give_the_largest_first_to_the_process_with_the_least) {
  EXPECT_THAT(owners({1, 6, 3, 3, 5}, 2), ElementsAre(1, 0, 1, 0, 1));
  EXPECT_THAT(owners({4, 4, 4}, 3), ElementsAre(0, 1, 2)) << "in their order where they are equal";
  EXPECT_THAT(owners({7}, 4), ElementsAre(0));
  EXPECT_THAT(owners({7, 4 * kBlock}, 4), ElementsAre(0, 0, 1, 2, 3)) << "of one block each";
}

TEST(Shards, of_one_process_all_belong_to_it) {
  EXPECT_THAT(owners({1, 2, 9 * kBlock}, 1), ElementsAre(0, 0, 0));
  EXPECT_TRUE(Shards().here(5, 7));
}

TEST(Shards, cut_a_parameter_that_is_larger_than_all_others_evenly_between_blocks) {
  const std::vector<Index> sizes{3, 333 * kBlock + 5, 2 * kBlock};
  const ParameterSet parameters = of_sizes(sizes);
  for (const Index processes : {2, 3, 4, 8, 100}) {
    const Shards shards = cut(parameters, processes);
    std::vector<Index> owned(processes);
    Index longest = 0, pieces = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      Index end = 0;
      std::vector<Index> states(processes);
      for (const Piece& piece : shards.pieces(i)) {
        EXPECT_EQ(piece.parameter, i);
        EXPECT_EQ(piece.begin, end);
        EXPECT_EQ(piece.begin % kBlock, 0);
        EXPECT_EQ(&shards.piece(i, piece.begin), &piece);
        EXPECT_EQ(&shards.piece(i, piece.begin + piece.count - 1), &piece);
        EXPECT_EQ(piece.offset, states[piece.owner]);
        end += piece.count;
        states[piece.owner] += piece.count;
        longest = std::max(longest, piece.count);
        ++pieces;
      }
      EXPECT_EQ(end, sizes[i]);
      for (Index process = 0; process < processes; ++process) {
        EXPECT_EQ(shards.owned(i, process), states[process]);
        owned[process] += states[process];
      }
    }
    const auto [least, most] = std::ranges::minmax(owned);
    EXPECT_LE(most - least, longest) << processes;
    EXPECT_LE(pieces, processes * Shards::kPiecesPerProcess + std::ssize(sizes)) << processes;
  }
}

TEST(Shards, give_each_process_early_and_late_elements) {
  const ParameterSet parameters = of_sizes({80 * kBlock, 240 * kBlock});
  const Shards shards = cut(parameters, 4);
  for (Index process = 0; process < 4; ++process) {
    EXPECT_EQ(shards.owned(0, process), 20 * kBlock);
    EXPECT_EQ(shards.owned(1, process), 60 * kBlock);
  }
}

TEST(Shards, leave_parameters_whole_if_their_rule_needs_it) {
  ParameterSet parameters;
  parameters.declare("embedding", {64, kBlock}, Role::embedding, {});
  parameters.declare("matrix", {32, kBlock}, Role::projection, {});
  const Shards shards(parameters, RuleSet({.name = OptimizerKind::muon}), 3);
  EXPECT_EQ(shards.pieces(1).size(), 1u);
  EXPECT_EQ(shards.pieces(0).size(), 32u) << "AdamW updates the embedding";
  for (Index process = 0; process < 3; ++process) {
    EXPECT_EQ(shards.owned(0, process) + shards.owned(1, process), 32 * kBlock);
  }
}

}  // namespace
}  // namespace difftape
