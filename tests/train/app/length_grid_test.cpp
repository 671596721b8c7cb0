// `difftape lengths`: the accuracy of a task at other sequence lengths.
#include "train/app/length_grid.h"

#include "tests/train/run/loop/tiny.h"
#include "train/system/text_table.h"

namespace difftape::app {
namespace {

using Json = nlohmann::json;

struct Lengths : testing::Test {
  Lengths() {
    project.config.model.max_seq_len = 32;
    project.config.data.type = run::DataKind::needles;
    project.config.data.seq_len = 32;
    project.config.data.needles = {.cities = 4, .facts = {1, 2}, .queries = {1, 2}};
    project.config.train.eval_batches = 10;
    EXPECT_EQ(project.train("first"), system::Exit::ok);
  }

  Json json(Words arguments) const {
    arguments.emplace_back("--json");
    return Json::parse(test::output(project.difftape(arguments)));
  }
  std::string error(const Words& arguments) const {
    return test::error(64, project.difftape(arguments));
  }
  /// Returns the accuracies of a written grid by "length/row/column".
  std::map<std::string, double> written(const std::string& name) const {
    std::map<std::string, double> cells;
    for (const auto& line : system::read_csv(contents(project / name)))
      if (line.size() == 7 && line[0] == "first")
        cells[line[3] + "/" + line[4] + "/" + line[5]] = std::stod(line[6]);
    return cells;
  }

  TinyProject project;
};

TEST_F(Lengths, are_measured_as_eval_measures_one) {
  project.config.run.seed = 2;
  ASSERT_EQ(project.train("second"), system::Exit::ok);
  const Outcome outcome =
      project.difftape({"lengths", "first", "second", "--lengths", "32,64", "--rope-scaling",
                        "yarn", "--csv", "grid.csv", "--svg", "grid.svg"});
  EXPECT_THAT(test::output(outcome), HasSubstr("tiny  n2        2      64"));
  const auto cells = written("grid.csv");
  EXPECT_EQ(cells.size(), 2u * 2 * 5) << "lengths, levels, depths";
  const Json trained = json({"eval", "first"});
  const Json longer =
      json({"eval", "first", "--set", "data.seq_len=64", "--set", "model.max_seq_len=64", "--set",
            "model.rope_scaling.rope_type=yarn", "--set", "model.rope_scaling.factor=2"});
  for (const auto& [cell, accuracy] : cells) {
    const Json& expected = cell.starts_with("32/") ? trained : longer;
    EXPECT_EQ(accuracy, expected["task/accuracy/" + cell.substr(3)]) << cell;
  }
  EXPECT_THAT(contents(project / "grid.svg"),
              AllOf(StartsWith("<svg"), HasSubstr(">tiny, n1<"), HasSubstr(">depth75<")));
}

TEST_F(Lengths, refuse_what_they_cannot_measure) {
  EXPECT_THAT(error({"lengths", "first"}), HasSubstr("--lengths is required"));
  EXPECT_THAT(error({"lengths", "first", "--lengths", "32", "--rope-scaling", "x"}),
              HasSubstr("--rope-scaling"));
  EXPECT_THAT(error({"lengths", "first", "--lengths", "32", "--batches", "0"}),
              HasSubstr("--batches: expected an integer of at least 1, got 0"));
  EXPECT_THAT(error({"lengths", "first", "first/", "--lengths", "32"}),
              HasSubstr("first/: is a second run of arm 'tiny' with seed 1, but must be the only"));
  project.config.data.type = run::DataKind::text;
  ASSERT_EQ(project.train("text"), system::Exit::ok);
  EXPECT_THAT(error({"lengths", "text", "--lengths", "16"}),
              HasSubstr("text: the data is text, but must be a generated task"));
}

TEST(LengthTable, compares_arms_seed_by_seed) {
  LengthGrid grid;
  const auto add = [&](const std::string& arm, Index seed, double depth0, double depth100) {
    grid.push_back({"run", arm, seed, 64, "n1", "depth0", depth0});
    grid.push_back({"run", arm, seed, 64, "n1", "depth100", depth100});
  };
  add("softmax", 1, 0.2, 0.4);
  add("softmax", 2, 0.4, 0.6);
  add("v2", 1, 0.5, 0.5);
  add("v2", 2, 0.7, 0.7);
  add("v2", 3, 1, 1);
  const std::string table = length_table(grid);
  EXPECT_THAT(table, HasSubstr("softmax  n1        2      64  0.400"));
  EXPECT_THAT(table, HasSubstr("v2       n1        3      64  0.733"));
  EXPECT_THAT(table, HasSubstr("+0.200")) << "over the two seeds of both";
  const std::string map = length_grid_svg(grid);
  EXPECT_THAT(map, AllOf(HasSubstr(">0.30<"), HasSubstr(">0.50<"), HasSubstr(">0.73<")));
}

}  // namespace
}  // namespace difftape::app
