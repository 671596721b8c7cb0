// `difftape export` and `difftape import`, run as programs.
#include "tests/train/run/loop/tiny.h"

namespace difftape::app {
namespace {

struct Exported : testing::Test {
  Exported() : project("diff_v1") { EXPECT_EQ(project.train("run"), system::Exit::ok); }

  Outcome difftape(const Words& arguments, test::Conditions conditions = {}) {
    return project.difftape(arguments, std::move(conditions));
  }
  std::string output(const Words& arguments) { return test::output(difftape(arguments)); }
  /// Returns the error of a command and checks its exit code and that it leaves no files.
  std::string error(int exit, const Words& arguments, test::Conditions conditions = {}) {
    const auto before = names();
    const std::string outcome = test::error(exit, difftape(arguments, std::move(conditions)));
    EXPECT_EQ(names(), before);
    return outcome;
  }
  std::set<fs::path> names() {
    std::set<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(project.path()))
      found.insert(entry.path());
    return found;
  }
  /// Replaces the first `old` in a file.
  void replace(const fs::path& file, const std::string& old, const std::string& now) {
    std::string text = contents(file);
    ASSERT_NE(text.find(old), std::string::npos);
    put(file, text.replace(text.find(old), old.size(), now));
  }

  TinyProject project;
};

TEST_F(Exported, are_imported_as_a_checkpoint_that_all_commands_accept) {
  for (const Words& form : {Words{"safetensors", "m.safetensors"}, Words{"hf", "hf"}}) {
    EXPECT_EQ(output({"export", "run", "--format", form[0], "--out", form[1]}), form[1] + "\n");
    EXPECT_EQ(output({"import", form[1], "--out", form[0] + ".h5"}),
              form[0] + ".h5: diff_v1, 12720 parameters, step 12\n");
    const std::string back = form[0] + ".h5";
    const Words text{"--prompt", "the ", "--max-tokens", "12"};
    const auto written = [&](const std::string& model) {
      return output({"generate", model, "--prompt", "the ", "--max-tokens", "12"});
    };
    EXPECT_EQ(written(back), written("run"));
    const auto loss = [&](const std::string& model) -> double {
      return nlohmann::json::parse(output({"eval", model, "--json"}))["loss"];
    };
    EXPECT_EQ(loss(back), loss("run"));
    put(project / "back.yaml", output({"config", "show", back}));
    EXPECT_EQ(contents(project / "back.yaml"), contents(project / "run/config.yaml"));
    output({"train", "back.yaml", "--init-from", back, "--out", "fork_" + form[0]});
  }
  output({"train", "tiny.yaml", "--init-from", "run", "--out", "fork"});
  EXPECT_EQ(measured(project / "fork_hf"), measured(project / "fork"));
  EXPECT_EQ(measured(project / "fork_safetensors"), measured(project / "fork"));
}

TEST_F(Exported, directory_explains_how_to_load_it) {
  const Outcome outcome = difftape({"export", "run", "--format", "hf", "--out", "hf"});
  EXPECT_EQ(outcome.err, "hf/README.md explains how to load it\n");
  EXPECT_THAT(contents(project / "hf/README.md"), HasSubstr("Tokens are bytes of text."));
}

TEST_F(Exported, weights_that_are_not_finite_are_a_warning) {
  output({"export", "run", "--format", "safetensors", "--out", "m.safetensors"});
  const Words import{"import", "m.safetensors", "--out", "m.h5"};
  EXPECT_EQ(difftape(import).err, "");
  fs::remove(project / "m.h5");
  std::string bytes = contents(project / "m.safetensors");
  bytes.replace(bytes.size() - 4, 4, "\xff\xff\xff\xff");  // a NaN in F32
  put(project / "m.safetensors", bytes);
  EXPECT_THAT(difftape(import).err, HasSubstr("warning: model.norm.weight has weights that are not "
                                              "finite, such as NaN"));
}

TEST_F(Exported, models_of_documents_are_exported_with_a_warning_and_the_remedy) {
  output({"train", "tiny.yaml", "--set", "data.eos_token_id=10", "--out", "documents"});
  EXPECT_THAT(difftape({"export", "documents", "--format", "hf", "--out", "hf"}).err,
              HasSubstr("warning: with data.eos_token_id 10 attention stayed within each document, "
                        "but transformers attends across documents; hf/README.md shows how"));
  EXPECT_THAT(contents(project / "hf/README.md"),
              AllOf(HasSubstr("which ends with token 10."),
                    HasSubstr("position_ids=index - starts"), Not(HasSubstr("@"))));
}

TEST_F(Exported, double_precision_stays_double) {
  const test::Conditions f64{.program = DIFFTAPE_TEST_PROGRAM_F64};
  const auto in_double = [&](const Words& arguments) {
    return test::output(difftape(arguments, f64));
  };
  const auto loss = [&](const std::string& model) -> double {
    return nlohmann::json::parse(in_double({"eval", model, "--json"}))["loss"];
  };
  for (const std::string format : {"safetensors", "hf"}) {
    in_double({"export", "tiny.yaml", "--format", format, "--out", format + "64"});
    in_double({"import", format + "64", "--out", format + "64.h5"});
    EXPECT_EQ(loss(format + "64.h5"), loss("tiny.yaml"));
    EXPECT_THAT(error(65, {"import", format + "64", "--out", "m.h5"}),
                HasSubstr("lm_head.weight is F64: single precision would round it; import with "
                          "difftape-f64"));
    output({"export", "run", "--format", format, "--out", format});
    in_double({"import", format, "--out", format + "_wider.h5"});
    EXPECT_EQ(loss(format + "_wider.h5"), loss("run"));
  }
}

TEST_F(Exported, a_full_disk_leaves_nothing) {
  test::Conditions conditions;
  conditions.largest_file = 20000;
  EXPECT_THAT(
      error(74, {"export", "run", "--format", "safetensors", "--out", "m.safetensors"}, conditions),
      HasSubstr("cannot write m.safetensors: File too large"));
  EXPECT_THAT(error(74, {"export", "run", "--format", "hf", "--out", "hf"}, conditions),
              HasSubstr("model.safetensors: File too large"));
  output({"export", "run", "--format", "hf", "--out", "hf"});
  EXPECT_THAT(error(74, {"import", "hf", "--out", "m.h5"}, conditions),
              HasSubstr("cannot write m.h5: File too large"));
}

TEST_F(Exported, nothing_is_overwritten) {
  const auto refused = [&](const std::string& format, const std::string& out) {
    return error(74, {"export", "run", "--format", format, "--out", out});
  };
  EXPECT_THAT(refused("hf", "run"), HasSubstr("run already exists and is not overwritten"));
  EXPECT_THAT(refused("hf", "text.txt"), HasSubstr("text.txt already exists"));
  EXPECT_THAT(refused("safetensors", "text.txt"),
              HasSubstr("text.txt already exists and is not overwritten"));
  EXPECT_THAT(refused("hf", "gone/hf"), HasSubstr("cannot write gone/hf: No such file"));
  EXPECT_THAT(refused("safetensors", "gone/m"), HasSubstr("cannot write gone/m: No such file"));
  output({"export", "run", "--format", "safetensors", "--out", "m.safetensors"});
  EXPECT_THAT(refused("safetensors", "m.safetensors"), HasSubstr("m.safetensors already exists"));
  const std::string checkpoint = "run/checkpoints/step-00000012.h5";
  const std::string before = contents(project / checkpoint);
  EXPECT_THAT(error(74, {"import", "m.safetensors", "--out", checkpoint}),
              HasSubstr("step-00000012.h5 already exists and is not overwritten"));
  EXPECT_EQ(contents(project / checkpoint), before);
}

TEST_F(Exported, commands_report_errors) {
  EXPECT_THAT(error(64, {"export", "run", "--format", "gguf", "--out", "m"}),
              HasSubstr("--format: 'gguf' is not one of safetensors, hf"));
  EXPECT_THAT(error(66, {"export", "gone", "--format", "hf", "--out", "m"}), HasSubstr("gone"));
  put(project / "sink.yaml", "base: tiny.yaml\nmodel: {rope: false, attention: {gate: head}}\n");
  EXPECT_THAT(error(64, {"export", "sink.yaml", "--format", "hf", "--out", "m"}),
              AllOf(HasSubstr("\n  model.rope: "), HasSubstr("\n  model.attention.gate: ")));
  EXPECT_THAT(error(64, {"config", "show", "run/checkpoints/step-00000012.h5", "--origin"}),
              HasSubstr("--origin: run/checkpoints/step-00000012.h5 is a checkpoint"));
  EXPECT_THAT(error(66, {"import", "gone", "--out", "m.h5"}), HasSubstr("cannot read gone"));
  EXPECT_THAT(error(65, {"import", "text.txt", "--out", "m.h5"}),
              HasSubstr("text.txt is not a valid safetensors file"));
  output({"export", "run", "--format", "safetensors", "--out", "m.safetensors"});
  EXPECT_THAT(error(64, {"import", "m.safetensors", "--out", "m"}), HasSubstr("end in .h5"));
  EXPECT_THAT(error(64, {"import", "m.safetensors", "--out", "m.h5", "--set", "model.d_ff=8"}),
              HasSubstr("only data.*, train.*, model.max_seq_len"));
}

TEST_F(Exported, training_starts_with_settings_of_the_weights_unless_others_are_named) {
  output({"export", "run", "--format", "safetensors", "--out", "m.safetensors"});
  output({"import", "m.safetensors", "--out", "m.h5", "--set", "model.rope_theta=500"});
  put(project / "ft.yaml",
      "run.name: ft\nmodel: {d_model: 16, num_layers: 2, num_heads: 2, d_ff: 24, max_seq_len: 32, "
      "norm_eps: 0.01, attention.kind: diff_v1}\n"
      "data: {path: text.txt, seq_len: 16, batch_size: 2}\ntrain.steps: 2\n");
  const std::string listed =
      "model.max_seq_len is 16 in the checkpoint, 32 here\n"
      "model.norm_eps is 1.0e-05 in the checkpoint, 0.01 here\n";
  const std::string theta = "model.rope_theta is 500 in the checkpoint, 10000 here";
  EXPECT_THAT(error(78, {"train", "ft.yaml", "--init-from", "m.h5", "--out", "t"}),
              HasSubstr("train.init_from: the weights of " + (project / "m.h5").string() +
                        " were trained with other settings:\n  " + theta +
                        "\nname each of these keys in the configuration or with --set; these "
                        "lines keep the settings of the checkpoint:\n  model.rope_theta: 500\n"));
  EXPECT_THAT(output({"train", "ft.yaml", "--init-from", "m.h5", "--set", "model.rope_theta=500",
                      "--out", "kept"}),
              AllOf(HasSubstr(listed), Not(HasSubstr("rope_theta"))));
  EXPECT_THAT(output({"train", "ft.yaml", "--init-from", "m.h5", "--set", "model.rope_theta=10000",
                      "--out", "other"}),
              AllOf(HasSubstr("norm_eps is 1.0e-05"), HasSubstr(theta)));
  put(project / "sweep.yaml", "base: ft.yaml\ntrain.init_from: m.h5\nsweep.lr: [1.0e-3]\n");
  EXPECT_THAT(error(78, {"sweep", "sweep.yaml", "--out", "s", "--jobs", "1"}), HasSubstr(theta));
}

TEST_F(Exported, weights_that_do_not_match_their_configuration_are_rejected) {
  output({"export", "run", "--format", "safetensors", "--out", "m.safetensors"});
  const auto refused = [&](int exit, const std::string& old, const std::string& now) {
    const std::string sound = contents(project / "m.safetensors");
    replace(project / "m.safetensors", old, now);
    const std::string message = error(exit, {"import", "m.safetensors", "--out", "m.h5"});
    put(project / "m.safetensors", sound);
    return message;
  };
  EXPECT_THAT(refused(65, "vocab_size: 256", "vocab_size: 255"),
              AllOf(HasSubstr("m.safetensors does not match its configuration"),
                    HasSubstr("model.embed_tokens.weight is (256, 16), but must be (255, 16)")));
  EXPECT_THAT(
      refused(65, "num_layers: 2", "num_layers: 3"),
      AllOf(HasSubstr("  model.layers.2."), HasSubstr(" is missing"), HasSubstr("and 9 more")));
  EXPECT_THAT(refused(65, "num_layers: 2", "num_layers: 1"), HasSubstr("belongs to no parameter"));
  EXPECT_THAT(refused(65, R"("dtype":"F32","shape":[16])", R"("dtype":"I32","shape":[16])"),
              HasSubstr(" is I32: only F32, F64, F16 and BF16 are supported; convert it"));
  EXPECT_THAT(refused(78, "d_model: 16", "d_model: -6"), HasSubstr("model.d_model"));
  EXPECT_THAT(refused(66, "difftape_config", "difftape_kconfi"),
              HasSubstr("no config.json next to it describes the model"));
}

}  // namespace
}  // namespace difftape::app
