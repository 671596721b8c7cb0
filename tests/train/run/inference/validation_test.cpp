// Tests the loss on held-out text by domain and by group of neighboring documents.
#include "train/run/inference/validation.h"

#include "tests/train/run/loop/tiny.h"
#include "train/run/loop/train_state.h"
#include "train/system/json.h"
#include "train/system/number.h"

namespace difftape::run {
namespace {

using testing::Pair;

/// Returns numbers in base 200, two bytes each, so that a sequence determines its position.
std::string counting_text(int from, int numbers) {
  std::string text;
  for (int i = from; i < from + numbers; ++i) {
    text += static_cast<char>(1 + i % 200);
    text += static_cast<char>(201 + i / 200);
  }
  return text;
}

/// A project with three validation domains: files of 3,000 and 700 bytes, and a folder with two
/// files of 400 bytes in total.
struct HeldOutLossesOfARun : testing::Test {
  HeldOutLossesOfARun() {
    fs::create_directories(project / "val/folder.d");
    for (const auto& [name, text] : texts) put(project / ("val/" + name), text);
    project.config.data.val_path = {project / "val/*"};
    project.config.train.eval_batches = 5;
    project.save();
  }

  const std::map<std::string, std::string> texts{{"book.txt", counting_text(0, 1500)},
                                                 {"code.c", counting_text(2000, 350)},
                                                 {"folder.d/1", counting_text(3000, 70)},
                                                 {"folder.d/2", counting_text(4000, 130)}};
  TinyProject project;
};

struct Sum {
  double loss = 0, tokens = 0;
  void add(double mean, double count) {
    loss += mean * count;
    tokens += count;
  }
  double mean() const { return loss / tokens; }
};

TEST_F(HeldOutLossesOfARun, include_the_sequences_that_begin_in_the_domain) {
  TrainState state(project.config);
  state.step = state.config.train.steps;
  const Validation found = state.validate();

  const std::string row =
      texts.at("book.txt") + texts.at("code.c") + texts.at("folder.d/1") + texts.at("folder.d/2");
  const auto size = [&](const char* name) { return texts.at(name).size(); };
  const std::size_t code = size("book.txt"), folder = code + size("code.c");
  Sum all;
  std::map<std::string, Sum> domains;
  for (Index i = 0; i < state.data->val_batches(); ++i) {
    const Batch batch = state.data->val_batch(i);
    for (Index b = 0; b < batch.batch; ++b) {
      const auto first = batch.tokens.begin() + b * 17;
      const Batch one{1, 16, {first, first + 17}};
      Tape tape(Tape::Mode::inference);
      const double loss = static_cast<double>(state.loss(tape, one).value().item());
      const std::size_t at = row.find(std::string(first, first + 17));
      ASSERT_NE(at, std::string::npos);
      domains[at < code ? "book" : at < folder ? "code" : "folder.d"].add(loss, 16);
      all.add(loss, 16);
    }
  }
  EXPECT_NEAR(found.loss, all.mean(), 1e-6);
  ASSERT_EQ(found.metrics.size(), 4u);
  EXPECT_EQ(found.metrics.back().first, "val/context_gain");
  for (const auto& [name, loss] : std::span(found.metrics).first(3))
    EXPECT_NEAR(loss, domains.at(name.substr(std::string("val/loss/").size())).mean(), 1e-6);
}

TEST_F(HeldOutLossesOfARun, are_logged_and_add_up_to_the_validation_loss) {
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  const auto lines = metrics_lines(project / "run");
  EXPECT_EQ(test::steps_with(project / "run", "val/loss/book"), (std::vector<Index>{5, 10, 12}));
  const auto& last = lines.back();
  // Files of 3,000, 700, 140 and 260 bytes are 176 + 41 + 8 + 15 sequences of 17 bytes.
  const double loss = last["val/loss"];
  double domains = 0;
  domains += 176 * last["val/loss/book"].get<double>();
  domains += 41 * last["val/loss/code"].get<double>();
  domains += 23 * last["val/loss/folder.d"].get<double>();
  EXPECT_NEAR(domains / 240, loss, 1e-6);
  EXPECT_THAT(contents(project / "run/stdout.log"),
              HasSubstr(fmt::format(
                  "validation loss by domain: book {:.4f}, code {:.4f}, folder.d {:.4f}",
                  last["val/loss/book"].get<double>(), last["val/loss/code"].get<double>(),
                  last["val/loss/folder.d"].get<double>())));
}

/// Returns the sum of the losses of every window of 17 bytes of a text, and of a shorter text,
/// computed one sequence at a time.
Sum sum_of(TrainState& state, const std::string& text) {
  Sum sum;
  const auto add = [&](std::size_t at, std::size_t size) {
    const auto first = text.begin() + static_cast<std::ptrdiff_t>(at);
    std::vector<std::int32_t> tokens;
    std::transform(first, first + static_cast<std::ptrdiff_t>(size), std::back_inserter(tokens),
                   [](char byte) { return static_cast<unsigned char>(byte); });
    Tape tape(Tape::Mode::inference);
    const Batch one{1, static_cast<Index>(size) - 1, std::move(tokens)};
    sum.add(static_cast<double>(state.loss(tape, one).value().item()),
            static_cast<double>(size) - 1);
  };
  for (std::size_t at = 0; at + 17 <= text.size(); at += 17) add(at, 17);
  if (text.size() < 17) add(0, text.size());
  return sum;
}

TEST(Validation, counts_every_window_of_three_domains_once_for_batches_of_1_to_100) {
  TinyProject project;
  const std::vector<std::pair<std::string, std::string>> texts{
      {"en", test::tiny_text().substr(0, 700)},
      {"num", counting_text(0, 200)},
      {"short", test::tiny_text().substr(900, 9)}};
  for (const auto& [name, text] : texts) {
    put(project / (name + ".txt"), text);
    project.config.data.val_path.push_back(project / (name + ".txt"));
  }
  const auto validate = [](Config config, Index batch_size) {
    config.data.batch_size = batch_size;
    TrainState state(config);
    state.step = config.train.steps;
    return state.validate();
  };
  TrainState state(project.config);
  Sum all;
  std::map<std::string, double> expected;
  for (const auto& [name, text] : texts) {
    const Sum sum = sum_of(state, text);
    expected["val/loss/" + name] = sum.mean();
    all.loss += sum.loss;
    all.tokens += sum.tokens;
    Config alone = project.config;
    alone.data.val_path = {project / (name + ".txt")};
    for (const Index batch_size : {1, 7, 100})
      EXPECT_NEAR(validate(alone, batch_size).loss, sum.mean(), 1e-6) << name;
  }
  EXPECT_EQ(all.tokens, (41 + 23) * 16 + 8);
  for (Index batch_size = 1; batch_size <= 100; ++batch_size) {
    const Validation found = validate(project.config, batch_size);
    EXPECT_EQ(found.tokens, all.tokens) << batch_size;
    EXPECT_NEAR(found.loss, all.mean(), 1e-6) << batch_size;
    for (const auto& [name, loss] : std::span(found.metrics).first(3))
      EXPECT_NEAR(loss, expected.at(name), 1e-6) << name << batch_size;
  }
}

TEST(Validation, of_held_out_blocks_counts_every_window_once_for_batches_of_1_to_100) {
  TinyProject project;
  const auto validate = [&](Index batch_size) {
    project.config.data.batch_size = batch_size;
    TrainState state(project.config);
    state.step = project.config.train.steps;
    return state.validate();
  };
  const Validation one = validate(1);
  EXPECT_EQ(one.tokens, 29 * 16) << "of 500 held-out bytes";
  for (Index batch_size = 2; batch_size <= 100; ++batch_size) {
    EXPECT_EQ(validate(batch_size).tokens, one.tokens) << batch_size;
    EXPECT_NEAR(validate(batch_size).loss, one.loss, 1e-6) << batch_size;
  }
}

TEST(ValidationOnTrainingData, warns_at_the_start_with_the_count_of_bytes) {
  TinyProject project;
  put(project / "other.txt", std::string(70, 'x'));
  put(project / "copy.txt", test::tiny_text());
  const auto warning = [&](std::vector<std::string> val_path) {
    project.config.data.val_path.clear();
    for (const std::string& name : val_path) project.config.data.val_path.push_back(project / name);
    return TrainState(project.config).data->warning();
  };
  EXPECT_EQ(warning({"other.txt"}), "");
  EXPECT_EQ(warning({}), "");
  for (const char* name : {"text.txt", "copy.txt", "t*.txt"}) {
    EXPECT_THAT(warning({name, "other.txt"}),
                StartsWith(fmt::format("warning: {} of the {} bytes of data.val_path are in files "
                                       "that data.path also contains",
                                       system::grouped(std::ssize(test::tiny_text())),
                                       system::grouped(std::ssize(test::tiny_text()) + 70))))
        << name;
  }
  ASSERT_EQ(project.train("run"), system::Exit::ok);
  EXPECT_THAT(contents(project / "run/stdout.log"), HasSubstr("\nwarning: "));
  h5::File narrow = h5::File::create(project / "a.h5");
  const std::vector<std::int32_t> tokens(100, 7);
  narrow.write<std::int32_t>("tokens", {100}, tokens);
  narrow.save();
  put(project / "a.bin", [] {
    std::string bytes;
    for (int i = 0; i < 100; ++i) bytes += std::string("\7\0", 2);
    return bytes;
  }());
  project.config.data.type = DataKind::tokens;
  project.config.data.path = {project / "a.bin"};
  EXPECT_THAT(warning({"a.h5"}), StartsWith("warning: 100 of the 100 tokens of data.val_path"));
}

TEST_F(HeldOutLossesOfARun, have_the_bits_of_one_thread_with_two_and_three) {
  project.config = test::wider(project.config);
  project.config.train.steps = 2;
  for (const int threads : {1, 2, 3}) {
    const test::Threads use(threads);
    ASSERT_EQ(project.train(std::to_string(threads)), system::Exit::ok);
  }
  test::expect_the_same_run(project / "1", project / "2");
  test::expect_the_same_run(project / "1", project / "3");
}

TEST_F(HeldOutLossesOfARun, sample_the_domains_in_proportion_for_every_seed_and_model_alike) {
  project.config.data.batch_size = 60;
  const auto first_batch = [this] {
    const TrainState state(project.config);
    std::vector<Index> domains(3);
    for (const Index domain : state.data->val_domains(0))
      ++domains[static_cast<std::size_t>(domain)];
    return std::pair(domains, state.data->val_batch(0).tokens);
  };
  const auto [domains, tokens] = first_batch();
  EXPECT_NEAR(static_cast<double>(domains[0]), 44, 8) << "176 of 240 sequences";
  EXPECT_NEAR(static_cast<double>(domains[1]), 10, 6);
  EXPECT_NEAR(static_cast<double>(domains[2]), 6, 5);
  project.config.run.seed = 9;
  project.config.model.attention.kind = "diff_v2";
  EXPECT_EQ(first_batch().second, tokens);
}

TEST_F(HeldOutLossesOfARun, have_no_domains_for_one_file_or_a_split) {
  project.config.data.val_path = {project / "val/book.txt"};
  ASSERT_EQ(project.train("one"), system::Exit::ok);
  project.config.data.val_path = {};
  ASSERT_EQ(project.train("part"), system::Exit::ok);
  for (const std::string run : {"one", "part"}) {
    const auto last = metrics_lines(project / run).back();
    EXPECT_FALSE(last.contains("val/loss/book"));
  }
}

TEST_F(HeldOutLossesOfARun,
       go_on_in_the_middle_of_an_epoch_with_the_bits_of_a_run_that_never_ended) {
  project.config.optim.schedule = ScheduleKind::constant;  // allows a longer run
  put(project / "short.txt", counting_text(0, 300));
  project.config.data.path = {project / "short.txt"};
  project.config.train.steps = 7;
  ASSERT_EQ(project.train("cut"), system::Exit::ok);
  project.config.train.steps = 40;  // 80 sequences of two at a time
  ASSERT_EQ(TrainState(project.config).data->info()["epoch_sequences"], 37);
  ASSERT_EQ(project.train("cut", true), system::Exit::ok);
  ASSERT_EQ(project.train("whole"), system::Exit::ok);
  EXPECT_EQ(metrics_lines(project / "cut").back()["val/loss"],
            metrics_lines(project / "whole").back()["val/loss"]);
  EXPECT_EQ(test::last_checkpoint(project / "cut"), test::last_checkpoint(project / "whole"));
}

/// Validation data whose batches begin in the given places.
struct Origins : ValidationData {
  Origins(std::vector<std::vector<Index>> batches, std::vector<std::string> names)
      : of_batches(std::move(batches)), of_domains(std::move(names)) {}
  Batch val_batch(Index) const override { return {}; }
  Index val_batches() const override { return std::ssize(of_batches); }
  Index vocab_size() const override { return 2; }
  nlohmann::ordered_json info() const override { return {}; }
  std::vector<Index> val_domains(Index i) const override { return of_batches[i]; }
  std::vector<std::string> domains() const override { return of_domains; }

  std::vector<std::vector<Index>> of_batches;
  std::vector<std::string> of_domains;
};

TEST(HeldOutLosses, count_the_scored_tokens_of_a_sequence) {
  HeldOutLosses losses(Origins({{0, 1}, {1}}, {"a", "b", "c"}), 2);
  const Batch two{2, 2, {0, 1, 0, 1, 1, 1}, {1, 1, 0, 1}}, one{1, 2, {0, 1, 1}};
  losses.add(1, one, std::vector<double>{1, 2});
  losses.add(0, two, std::vector<double>{4, 2, 0, 9});
  losses.share();
  EXPECT_THAT(losses.metrics(),
              ElementsAre(Pair("val/loss/a", 3), Pair("val/loss/b", 4),
                          Pair("val/context_gain", testing::DoubleEq(5.0 / 2 - 13.0 / 3))));
}

TEST(HeldOutLosses, give_the_gain_from_the_second_quarter_to_the_second_half) {
  HeldOutLosses losses(Origins({{{0, 0}}, {{0, 0}}}, {}), 2);
  Batch batch{1, 16, std::vector<std::int32_t>(17)};
  std::vector<double> of_positions(16, 100);
  std::fill_n(of_positions.begin() + 4, 4, 6);
  std::fill(of_positions.begin() + 8, of_positions.end(), 2);
  losses.add(0, batch, of_positions);
  batch.scored = std::vector<std::uint8_t>(16);
  batch.scored[7] = batch.scored[15] = 1;
  std::vector<double> scored(16);
  scored[7] = 11;
  scored[15] = 11;
  losses.add(1, batch, scored);
  losses.share();
  EXPECT_THAT(losses.metrics(), ElementsAre(Pair("val/context_gain", 7 - 3.0)));
}

TEST(PositionLosses, are_means_over_the_sequences_in_which_a_position_is_scored) {
  Batch batch{.batch = 2, .seq = 2, .tokens = {0, 1, 0, 1, 1, 1}, .scored = {1, 1, 0, 1}};
  PositionLosses losses;
  losses.add(batch, std::vector<double>{3, 1, 9, 4});
  EXPECT_THAT(losses.means(), ElementsAre(3, 2.5));
  batch.scored = {0, 1, 0, 1};
  PositionLosses none;
  none.add(batch, std::vector<double>{3, 1, 9, 4});
  EXPECT_TRUE(std::isnan(none.means()[0]));
}

TEST(Eval, prints_the_loss_by_position_of_longer_sequences) {
  const TinyProject project;
  test::output(project.difftape({"train", "tiny.yaml", "--out", "run"}));
  const auto eval = [&](std::vector<std::string> more) {
    const std::string outcome =
        test::output(project.difftape(joined({"eval", "run", "--positions", "--json"}, more)));
    return system::parse_json(outcome);
  };
  const auto plain = eval({}),
             longer = eval({"--set", "data.seq_len=64", "--set", "model.max_seq_len=64"});
  const std::vector<double> losses = plain["loss_by_position"];
  double sum = 0;
  for (const double loss : losses) sum += loss;
  EXPECT_NEAR(sum / static_cast<double>(losses.size()), plain["loss"].get<double>(), 1e-5);
  EXPECT_EQ(longer["loss_by_position"].size(), 64u);
  const auto yarn = eval({"--set", "data.seq_len=64", "--set", "model.max_seq_len=64", "--set",
                          "model.rope_scaling={rope_type: yarn, factor: 4}"});
  EXPECT_NE(yarn["loss"], longer["loss"]);
  const Outcome table = project.difftape({"eval", "run", "--positions"});
  EXPECT_THAT(table.out, HasSubstr("\npositions    loss\n0 "));
  EXPECT_THAT(table.out, HasSubstr("\n2 to 3 "));
}

/// Returns two rows of three targets over four tokens; the first target of a row is not scored.
Batch batch_of_six() {
  Batch batch{2, 3, {0, 9, 1, 2, 0, 9, 3, 0}};
  batch.scored = {0, 1, 1, 0, 1, 1};
  batch.answers = {{0, {1, 3}, 0, 0}, {1, {0, 2}, 0, 1}, {1, {2, 3}, 1, 1}};
  return batch;
}

/// Returns logits that are largest at the targets.
Tensor right_logits() {
  Tensor logits = Tensor::zeros({2, 3, 4});
  const Index targets[] = {0, 1, 2, 0, 3, 0};
  for (Index i = 0; i < 6; ++i) logits.row(i)[targets[i]] = 1;
  return logits;
}

const AccuracyGrid kGrid{{"a", "b"}, {"x", "y"}, true};

TEST(TaskAccuracy, counts_scored_targets_answers_and_cells) {
  TaskAccuracy score(kGrid);
  Tensor logits = right_logits();
  logits.row(4)[0] = 2;
  score.add(batch_of_six(), logits);
  EXPECT_THAT(score.metrics(),
              ElementsAre(Pair("val/accuracy", 0.75), Pair("task/exact_match", 2.0 / 3),
                          Pair("task/accuracy/a/x", 1), Pair("task/accuracy/a/y", 0),
                          Pair("task/accuracy/b/y", 1)));
  score.add(batch_of_six(), right_logits());
  EXPECT_EQ(score.metrics()[0].second, 7.0 / 8);
}

TEST(TaskAccuracy, an_answer_is_right_only_if_all_its_scored_targets_are) {
  TaskAccuracy score(kGrid);
  Tensor logits = right_logits();
  logits.row(2)[3] = 2;
  score.add(batch_of_six(), logits);
  EXPECT_THAT(score.metrics(), testing::Contains(Pair("task/accuracy/a/x", 0)));
}

TEST(TaskAccuracy, ties_and_nan_are_misses) {
  for (const real other : {real(1), std::numeric_limits<real>::quiet_NaN()}) {
    TaskAccuracy score(kGrid);
    Tensor logits = right_logits();
    logits.row(1)[0] = other;
    score.add(batch_of_six(), logits);
    EXPECT_EQ(score.metrics()[0].second, 0.75);
  }
}

TEST(TaskAccuracy, has_only_the_accuracy_without_a_grid) {
  TaskAccuracy score(AccuracyGrid{});
  Batch batch = batch_of_six();
  batch.answers.clear();
  score.add(batch, right_logits());
  EXPECT_THAT(score.metrics(), ElementsAre(Pair("val/accuracy", 1)));
}

}  // namespace
}  // namespace difftape::run
