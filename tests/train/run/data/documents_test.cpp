// Documents packed in one row: where each begins, and that a run keeps attention within them.
#include "train/run/data/dataset.h"
#include "train/run/loop/train_state.h"

#include "tests/train/run/loop/tiny.h"

namespace difftape::run {
namespace {

TEST(Documents, begin_after_the_token_that_ends_the_one_before) {
  const Batch batch{2, 5, {7, 9, 7, 7, 9, 9, 9, 7, 9, 7, 7, 7}};
  EXPECT_THAT(*batch.document_offsets(9), testing::ElementsAre(0, 0, 2, 2, 2, 0, 1, 1, 3, 3));
  EXPECT_EQ(batch.document_offsets(-1), nullptr);
}

TEST(Documents, change_the_loss_of_a_run_exactly_if_their_end_occurs) {
  test::TinyProject project;
  const auto loss_with = [&](Index eos_token_id) {
    project.config.data.eos_token_id = eos_token_id;
    TrainState state(project.config);
    Tape tape(Tape::Mode::inference);
    return state.loss(tape, state.data->train_batch(0, 0)).value().item();
  };
  const real whole = loss_with(-1);
  EXPECT_EQ(loss_with(0), whole) << "text holds no zero byte";
  EXPECT_NE(loss_with(' '), whole);
}

}  // namespace
}  // namespace difftape::run
