#include "core/profile.h"

#include "tests/support/test.h"

namespace difftape::profile {
namespace {

constexpr std::int64_t kMs = 1000000;

Event event(Category category, const char* name, std::int64_t begin_ms, std::int64_t end_ms) {
  return {category, name, "", begin_ms * kMs, end_ms * kMs};
}

const Row* find(const std::vector<Row>& rows, std::string_view name) {
  const auto found =
      std::find_if(rows.begin(), rows.end(), [name](const Row& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

TEST(Profile, records_nothing_unless_a_recording_lives) {
  Recorder recorder;
  { const Span span(Category::phase, "before"); }
  {
    const Recording recording(recorder);
    const Span span(Category::phase, "meanwhile", "here");
    since_last(Category::forward, "op", "layer");
  }
  { const Span span(Category::phase, "after"); }
  since_last(Category::forward, "after", "");
  ASSERT_EQ(recorder.events().size(), 2u);
  EXPECT_STREQ(recorder.events()[0].name, "meanwhile");
  EXPECT_EQ(recorder.events()[0].scope, "here");
  EXPECT_STREQ(recorder.events()[1].name, "op");
  EXPECT_EQ(recorder.events()[1].scope, "layer");
}

TEST(Profile, a_lap_begins_at_the_last_event_boundary) {
  Recorder recorder;
  const Recording recording(recorder);
  {
    const Span pass(Category::pass, "forward");
    since_last(Category::forward, "first", "");
    since_last(Category::forward, "second", "");
    { const Span data(Category::phase, "data"); }
    since_last(Category::forward, "third", "");
  }
  const std::vector<Event>& all = recorder.events();
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[1].begin, all[0].begin);
  EXPECT_EQ(all[2].begin, all[1].end);
  EXPECT_GE(all[3].begin, all[2].end);
  EXPECT_EQ(all[4].begin, all[3].end);
  EXPECT_GE(all[0].end, all[4].end);
  for (const Event& each : all) EXPECT_GE(each.end, each.begin);
}

TEST(Profile, an_inner_recording_gives_way_to_the_outer_one) {
  Recorder outer, inner;
  const Recording to_outer(outer);
  {
    const Recording to_inner(inner);
    since_last(Category::forward, "inner", "");
  }
  since_last(Category::forward, "outer", "");
  ASSERT_EQ(inner.events().size(), 1u);
  ASSERT_EQ(outer.events().size(), 1u);
  EXPECT_STREQ(outer.events()[0].name, "outer");
}

TEST(Profile, a_table_adds_up_to_the_steps_and_omits_outside_events) {
  const std::vector<Event> events{event(Category::phase, "data", 0, 5),  // outside
                                  event(Category::step, "step", 10, 60),
                                  event(Category::pass, "forward", 11, 31),
                                  event(Category::phase, "data", 11, 13),
                                  event(Category::forward, "linear", 13, 20),
                                  event(Category::forward, "add", 20, 21),
                                  event(Category::forward, "linear", 21, 30),
                                  event(Category::pass, "backward", 31, 51),
                                  event(Category::backward, "linear", 31, 50),
                                  event(Category::phase, "optimizer", 52, 58),
                                  event(Category::forward, "linear", 70, 80),  // outside
                                  event(Category::step, "step", 100, 110),
                                  event(Category::backward, "add", 100, 104)};
  const Table table = table_of(events);
  EXPECT_EQ(table.steps, 2);
  EXPECT_DOUBLE_EQ(table.ms, 60);
  ASSERT_EQ(table.ops.size(), 2u);
  EXPECT_EQ(table.ops[0].name, "linear");
  EXPECT_EQ(table.ops[0].forward.calls, 2);
  EXPECT_DOUBLE_EQ(table.ops[0].forward.ms, 16);
  EXPECT_EQ(table.ops[0].backward.calls, 1);
  EXPECT_DOUBLE_EQ(table.ops[0].backward.ms, 19);
  EXPECT_DOUBLE_EQ(table.ops[1].forward.ms, 1);
  EXPECT_DOUBLE_EQ(table.ops[1].backward.ms, 4);
  ASSERT_EQ(table.phases.size(), 2u);
  EXPECT_DOUBLE_EQ(find(table.phases, "data")->ms(), 2);
  EXPECT_DOUBLE_EQ(find(table.phases, "optimizer")->ms(), 6);
  EXPECT_DOUBLE_EQ(table.rest_ms, 60 - 16 - 19 - 1 - 4 - 2 - 6);
}

TEST(Profile, an_op_excludes_inner_ops_and_a_phase_includes_them) {
  const Table table = table_of(std::vector<Event>{
      event(Category::step, "step", 0, 100), event(Category::backward, "again", 0, 50),
      event(Category::forward, "linear", 5, 15), event(Category::backward, "linear", 15, 45),
      event(Category::phase, "validate", 60, 90), event(Category::forward, "linear", 60, 85),
      event(Category::phase, "data", 85, 90)});
  EXPECT_DOUBLE_EQ(find(table.ops, "again")->backward.ms, 10);
  EXPECT_DOUBLE_EQ(find(table.ops, "linear")->forward.ms, 10);
  EXPECT_DOUBLE_EQ(find(table.ops, "linear")->backward.ms, 30);
  EXPECT_DOUBLE_EQ(find(table.phases, "validate")->ms(), 30);
  EXPECT_EQ(find(table.phases, "data"), nullptr);
  EXPECT_DOUBLE_EQ(table.rest_ms, 20);
}

}  // namespace
}  // namespace difftape::profile
