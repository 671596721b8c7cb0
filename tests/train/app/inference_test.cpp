// `difftape eval` and `difftape generate`, run as programs.
#include <regex>

#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

using Json = nlohmann::json;

struct Inference : testing::Test {
  Inference() { EXPECT_EQ(project.train("run"), system::Exit::ok); }

  Outcome difftape(const std::vector<std::string>& arguments) {
    return project.difftape(arguments);
  }
  Json json(std::vector<std::string> arguments) {
    arguments.emplace_back("--json");
    const std::string outcome = test::output(difftape(arguments));
    return Json::parse(outcome);
  }
  /// Returns the error of a command and checks its exit code.
  std::string error(int exit, const std::vector<std::string>& arguments) {
    return test::error(exit, difftape(arguments));
  }

  TinyProject project;
};

TEST_F(Inference, eval_repeats_the_last_validation_of_the_run) {
  const double logged = metrics_lines(project / "run").back()["val/loss"];
  const Json found = json({"eval", "run"});
  EXPECT_EQ(found["loss"], logged);
  EXPECT_EQ(found["step"], 12);
  EXPECT_DOUBLE_EQ(found["perplexity"], std::exp(logged));
  EXPECT_DOUBLE_EQ(found["bits_per_byte"], logged / std::log(2.0));
  EXPECT_EQ(found["data"]["type"], "text");
  EXPECT_EQ(json({"eval", "run/checkpoints"})["loss"], logged);
  const Outcome text = difftape({"eval", "run"});
  EXPECT_THAT(text.out, AllOf(HasSubstr("step-00000012.h5, step 12\nloss "),
                              HasSubstr(" bits per byte\n"), HasSubstr(" tokens/s\n")));
}

TEST_F(Inference, eval_reads_all_of_other_data) {
  put(project / "other.txt", std::string(16 * 10 + 6, 'x'));
  const Json found = json({"eval", "run", "--data", "other.txt"});
  EXPECT_EQ(found["tokens"], 16 * 10 + 5) << "all but the first";
  EXPECT_EQ(found["data"]["bytes"], 16 * 10 + 6);
  EXPECT_FALSE(found["data"].contains("val_bytes"));
  EXPECT_DOUBLE_EQ(found["bits_per_byte"], found["loss"].get<double>() / std::log(2.0));
  const Json in_fours = json({"eval", "run", "--data", "other.txt", "--set", "data.batch_size=4"});
  EXPECT_EQ(in_fours["tokens"], 16 * 10 + 5) << "two whole batches, half of one, and the rest";
  EXPECT_NEAR(in_fours["loss"], found["loss"], 1e-5);
  project.config.data.val_path = {(project / "text.txt").string()};
  ASSERT_EQ(project.train("with_own"), system::Exit::ok);
  EXPECT_EQ(json({"eval", "with_own", "--data", "other.txt"})["tokens"], 16 * 10 + 5)
      << "in place of what validates";
  EXPECT_EQ(json({"eval", "run", "--data", "other.txt", "--batches", "2"})["tokens"], 2 * 2 * 16);
  EXPECT_GT(found["loss"], json({"eval", "run"})["loss"]);
  const double initial = json({"eval", "tiny.yaml"})["loss"];
  EXPECT_NEAR(initial, std::log(256), 0.1);
}

TEST_F(Inference, eval_accepts_data_shorter_than_a_sequence) {
  put(project / "short.txt", "the fox");
  const Json found = json({"eval", "run", "--data", "short.txt", "--positions"});
  EXPECT_EQ(found["tokens"], 6);
  EXPECT_EQ(found["loss_by_position"].size(), 6u);
  put(project / "shorter.txt", "th");
  const Json one = json({"eval", "run", "--data", "shorter.txt"});
  EXPECT_EQ(one["tokens"], 1);
  EXPECT_NEAR(one["loss"], found["loss_by_position"][0], 1e-5);
}

TEST_F(Inference, eval_of_a_task_has_its_accuracy) {
  put(project / "task.yaml",
      "base: tiny.yaml\ndata: {type: mqar, mqar: {pairs: 2, keys: 8, values: 8}}\n");
  ASSERT_EQ(difftape({"train", "task.yaml", "--out", "task"}).exit, 0);
  const Json last = metrics_lines(project / "task").back();
  const Json found = json({"eval", "task"});
  EXPECT_EQ(found["loss"], last["val/loss"]);
  EXPECT_EQ(found["val/accuracy"], last["val/accuracy"]);
  EXPECT_TRUE(found.contains("best_loss"));
  EXPECT_FALSE(found.contains("bits_per_byte"));
  EXPECT_THAT(error(64, {"eval", "task", "--data", "text.txt"}), HasSubstr("is generated"));
  EXPECT_THAT(error(64, {"generate", "task", "--prompt", "x"}), HasSubstr("use --tokens"));
  EXPECT_EQ(difftape({"generate", "task", "--tokens", "1,2", "--max-tokens", "3"}).exit, 0);
}

TEST_F(Inference, eval_says_that_it_reads_the_default_text_of_a_model_without_data) {
  put(project / "bare.yaml", "base: tiny.yaml\ndata: {path: []}\n");
  const Outcome found = difftape({"eval", "bare.yaml", "--batches", "1"});
  test::output(found);
  EXPECT_THAT(found.err, HasSubstr("the Eigen headers are read; choose other data with --data\n"));
  EXPECT_THAT(difftape({"eval", "run"}).err, Not(HasSubstr("Eigen")));
}

TEST_F(Inference, eval_detects_whether_the_data_changed) {
  put(project / "text.txt", "changed " + test::tiny_text());
  EXPECT_THAT(error(65, {"eval", "run"}), HasSubstr("was made with other data"));
  put(project / "moved.txt", test::tiny_text());
  const double logged = metrics_lines(project / "run").back()["val/loss"];
  EXPECT_EQ(json({"eval", "run", "--set", "data.path=moved.txt"})["loss"], logged);
}

TEST_F(Inference, eval_of_initial_weights_with_other_settings_is_an_error) {
  const std::regex keys(" *(rope_theta|eos_token_id):.*\n");  // are not named in small.yaml
  put(project / "small.yaml", std::regex_replace(contents(project / "tiny.yaml"), keys, ""));
  const auto train = [&](const std::string& run, const std::string& assignment) {
    test::output(difftape({"train", "small.yaml", "--out", run, "--set", assignment}));
    put(project / (run + ".yaml"), "base: small.yaml\ntrain.init_from: " + run + "\n");
  };
  train("theta", "model.rope_theta=500");
  EXPECT_THAT(error(78, {"eval", "theta.yaml"}),
              HasSubstr("model.rope_theta is 500 in the checkpoint, 10000 here"));
  EXPECT_EQ(json({"eval", "theta.yaml", "--set", "model.rope_theta=500"})["loss"],
            json({"eval", "theta"})["loss"]);
  train("documents", "data.eos_token_id=10");
  EXPECT_THAT(error(78, {"eval", "documents.yaml"}),
              HasSubstr("data.eos_token_id is 10 in the checkpoint, -1 here"));
}

TEST_F(Inference, eval_reads_a_checkpoint_of_the_first_version) {
  std::string text;
  for (int i = 0; i < 200; ++i)
    text += fmt::format("the quick brown fox jumps over the lazy dog number {}\n", i);
  put(project / "fox.txt", text);
  const fs::path made = "tests/train/run/checkpoint/data/version_0.1.0.h5";
  const Json found =
      json({"eval", (DIFFTAPE_TEST_SOURCE_DIR / made).string(), "--data", "fox.txt"});
  EXPECT_EQ(found["step"], 4);
  EXPECT_EQ(found["tokens"], 10889);
  EXPECT_NEAR(found["loss"], 6.308528, 1e-5) << "which that version printed";
}

TEST_F(Inference, eval_reports_errors) {
  EXPECT_THAT(error(64, {"eval", "run", "--batches=-3"}),
              HasSubstr("--batches: expected an integer of at least 1, got "));
  EXPECT_THAT(error(66, {"eval", "gone.h5"}), HasSubstr("gone.h5: no checkpoint found"));
  EXPECT_THAT(error(66, {"eval", "run", "--data", "gone.txt"}),
              AllOf(HasSubstr("gone.txt: no such file"), HasSubstr("in --data")));
  EXPECT_THAT(error(64, {"eval", "run", "--set", "model.d_ff=8"}),
              HasSubstr("only data.*, train.*, model.max_seq_len"));
  put(project / "short.txt", "x");
  EXPECT_THAT(error(65, {"eval", "run", "--data", "short.txt"}),
              HasSubstr("no file has two bytes, but validation needs a token and the next"));
}

TEST_F(Inference, generate_prints_the_prompt_and_its_continuation) {
  const std::string one =
      test::output(difftape({"generate", "run", "--prompt", "the ", "--max-tokens", "12"}));
  EXPECT_THAT(one, StartsWith("the "));
  EXPECT_EQ(one.size(), 4u + 12 + 1);
  EXPECT_EQ(difftape({"generate", "run", "--prompt", "the ", "--max-tokens", "12"}).out, one);
  EXPECT_NE(
      difftape({"generate", "run", "--prompt", "the ", "--max-tokens", "12", "--seed", "2"}).out,
      one);
  const Json found =
      json({"generate", "run", "--prompt", "the ", "--max-tokens", "12", "--temperature", "0"});
  EXPECT_EQ(found["prompt"], "the ");
  EXPECT_EQ(found["tokens"].size(), 12u);
  EXPECT_EQ(found["finish_reason"], "length");
}

TEST_F(Inference, generate_takes_one_prompt_per_line_with_separate_random_numbers) {
  put(project / "prompts.txt", "the \nfox \nthe \n");
  const std::string all = test::output(
      difftape({"generate", "run", "--prompts", "prompts.txt", "--max-tokens", "9", "--json"}));
  std::istringstream lines(all);
  std::vector<Json> texts;
  for (std::string line; std::getline(lines, line);) texts.push_back(Json::parse(line));
  ASSERT_EQ(texts.size(), 3u);
  EXPECT_EQ(texts[1]["prompt"], "fox ");
  EXPECT_NE(texts[0]["tokens"], texts[2]["tokens"]);
  EXPECT_EQ(texts[0]["tokens"],
            json({"generate", "run", "--prompt", "the ", "--max-tokens", "9"})["tokens"]);
}

TEST_F(Inference, generate_takes_prompts_from_a_pipe) {
  const std::string words =
      fmt::format("{} generate run --prompts <(echo 'fox ') --json", DIFFTAPE_TEST_PROGRAM);
  const std::string one =
      test::output(test::run({"-c", words}, project.here({.program = "/bin/bash"})));
  EXPECT_EQ(Json::parse(one)["prompt"], "fox ");
}

TEST_F(Inference, generate_reports_errors) {
  const auto wrong = [&](int exit, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"generate", "run"});
    return error(exit, arguments);
  };
  EXPECT_THAT(wrong(64, {}), HasSubstr("a prompt is missing"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--tokens", "1"}),
              HasSubstr("--prompt and --tokens exclude each other; give one of them"));
  EXPECT_THAT(wrong(64, {"--tokens", "1,,2"}),
              HasSubstr("--tokens 1,,2: '' is not a token id; give integers such as 1,2,3"));
  EXPECT_THAT(wrong(64, {"--tokens", "1,x"}), HasSubstr("--tokens 1,x: 'x' is not a token"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--seed", "-1"}),
              HasSubstr("--seed: must be at least 0, got -1"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--seed", "99999999999999999999"}),
              HasSubstr("expected an integer of at most 9223372036854775807"));
  EXPECT_THAT(wrong(65, {"--prompt", ""}), HasSubstr("the prompt is empty"));
  EXPECT_THAT(wrong(65, {"--prompt", std::string(17, 'x')}),
              HasSubstr("the prompt is 17 tokens long, but must be at most 16"));
  EXPECT_THAT(wrong(65, {"--tokens", "1,256"}),
              HasSubstr("--tokens: 256 is not a token of the model; use 0 to 255"));
  EXPECT_THAT(wrong(65, {"--tokens", "4294967361"}),
              HasSubstr("4294967361 is not a token of the model;"));
  EXPECT_THAT(wrong(66, {"--prompts", "gone.txt"}), HasSubstr("gone.txt"));
  put(project / "prompts.txt", "one\r\n\nthree\n");
  EXPECT_THAT(wrong(65, {"--prompts", "prompts.txt"}),
              AllOf(HasSubstr("the prompt is empty"), HasSubstr("in prompts.txt:2")));
  put(project / "none.txt", "");
  EXPECT_THAT(wrong(65, {"--prompts", "none.txt"}), HasSubstr("none.txt: is empty"));
  EXPECT_THAT(wrong(64, {"--prompts", "none.txt", "--prompt", "a"}),
              HasSubstr("--prompt and --prompts exclude each other"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--stop", ""}),
              HasSubstr("--stop: expected a value, got an empty string"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--temperature=-1"}),
              HasSubstr("--temperature: is -1, but must be"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--temperature", "inf"}), HasSubstr("finite and"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--max-tokens", "1e20"}),
              HasSubstr("--max-tokens: expected an integer, got '1e20'"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--top-p", "0"}),
              HasSubstr("--top-p: is 0, but must be"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--min-p", "2"}),
              HasSubstr("--min-p: is 2, but must be"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--top-k=-1"}), HasSubstr("--top-k: is -1, but must be"));
  EXPECT_THAT(wrong(64, {"--prompt", "a", "--max-tokens", "0"}),
              HasSubstr("--max-tokens: is 0, but must be"));
}

}  // namespace
}  // namespace difftape::app
