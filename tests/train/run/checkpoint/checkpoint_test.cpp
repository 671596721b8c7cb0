#include "train/run/checkpoint/checkpoint.h"

#include "layers/language_model.h"
#include "tests/support/test.h"
#include "train/run/records/h5.h"

namespace difftape::run {
namespace {

/// A small model after two optimizer steps.
struct Training {
  ParameterSet set;
  std::unique_ptr<Optimizer> optimizer;

  explicit Training(std::uint64_t seed, Index width = 5, int steps = 2) {
    set.declare("model.layers.0.self_attn.q_proj.weight", {3, width}, Role::projection,
                Init::normal(1));
    set.declare("model.norm.weight", {width}, Role::norm_weight, Init::constant(1));
    set.initialize(seed);
    optimizer = std::make_unique<Optimizer>(set, OptimConfig{});
    for (int i = 0; i < steps; ++i) {
      for (Parameter& p : set) {
        p.grad.copy_from(p.value);
        p.has_gradient = true;
      }
      optimizer->step(0.01);
    }
  }

  std::vector<std::vector<real>> state() const {
    std::vector<std::vector<real>> all;
    const auto keep = [&all](const Tensor& t) {
      all.emplace_back(t.values().begin(), t.values().end());
    };
    for (const Parameter& p : set) keep(p.value);
    for (const Optimizer::State& state : std::as_const(*optimizer).states())
      for (const StateTensor& tensor : state.tensors) keep(tensor.value);
    return all;
  }
};

CheckpointMeta meta(Index step) {
  return {.step = step,
          .config_yaml = "run: {seed: 7}\n",
          .extra_state = {{"spikes", {1.5, 0.1}}},
          .seed = ~std::uint64_t{0}};
}

TEST(Checkpoint, restores_parameters_moments_and_meta_bit_for_bit) {
  const ScratchDir dir;
  const Training saved(7);
  const fs::path path =
      save_checkpoint(dir / "checkpoints", saved.set, saved.optimizer.get(), meta(2));
  EXPECT_EQ(path, dir / "checkpoints" / "step-00000002.h5");

  Training loaded(8, 5, 0);
  ASSERT_NE(loaded.state(), saved.state());
  const Checkpoint checkpoint(path);
  checkpoint.load(loaded.set, loaded.optimizer.get());
  const CheckpointMeta& got = checkpoint.meta();
  EXPECT_EQ(loaded.state(), saved.state());
  EXPECT_EQ(loaded.optimizer->steps(), 2);
  EXPECT_EQ(got.step, 2);
  EXPECT_EQ(got.config_yaml, "run: {seed: 7}\n");
  EXPECT_EQ(got.extra_state, meta(2).extra_state);
  EXPECT_EQ(got.seed, ~std::uint64_t{0});
  EXPECT_EQ(got.precision, kRealName);
  EXPECT_EQ(Checkpoint(path).meta().step, 2);
}

TEST(Checkpoint, follows_the_documented_layout_and_stores_equal_states_as_equal_bytes) {
  const ScratchDir dir;
  const Training run(7);
  const fs::path path = save_checkpoint(dir / "a", run.set, run.optimizer.get(), meta(1000));
  const h5::File file = h5::File::open(path);
  EXPECT_THAT(file.children("/"), ElementsAre("data", "model", "optim", "rng"));
  EXPECT_EQ(file.shape("/model/model.layers.0.self_attn.q_proj.weight"), (Shape{3, 5}));
  EXPECT_EQ(file.shape("/optim/model.norm.weight/m"), (Shape{5}));
  EXPECT_EQ(file.shape("/optim/model.norm.weight/v"), (Shape{5}));
  EXPECT_EQ(file.string_attribute("/", "format"), "difftape-checkpoint");
  EXPECT_EQ(file.int_attribute("/", "format_version"), 1);
  EXPECT_EQ(file.int_attribute("/", "step"), 1000);
  EXPECT_EQ(file.string_attribute("/", "config_yaml"), "run: {seed: 7}\n");
  EXPECT_EQ(contents(path),
            contents(save_checkpoint(dir / "b", run.set, run.optimizer.get(), meta(1000))));
}

TEST(Checkpoint, the_newest_has_the_largest_step_and_is_found_from_the_run_directory) {
  const ScratchDir dir;
  const fs::path checkpoints = dir / "checkpoints";
  const Training run(7);
  const fs::path first = save_checkpoint(checkpoints, run.set, nullptr, meta(1));
  const fs::path second = save_checkpoint(checkpoints, run.set, nullptr, meta(2));
  EXPECT_EQ(newest_step(dir.path()), 2);
  EXPECT_EQ(newest_step(checkpoints), 0) << "not a run directory";
  EXPECT_EQ(find_checkpoint(dir.path()), second);
  EXPECT_EQ(find_checkpoint(checkpoints), second);
  EXPECT_EQ(find_checkpoint(first), first);
}

TEST(Checkpoint, a_file_is_named_by_its_step_which_is_read_from_the_name) {
  EXPECT_EQ(step_file_name(15), "step-00000015.h5");
  EXPECT_EQ(step_file_name(123456789), "step-123456789.h5");
  for (const Index step : {Index{0}, Index{15}, Index{123456789}})
    EXPECT_EQ(step_of_file(fs::path("run/checkpoints") / step_file_name(step)), step);
  for (const char* other : {"latest", "best-00000015.h5", "step-00000015.h5.tmp", "step-.h5",
                            "step-5x.h5", "step--5.h5", "step-00000015"})
    EXPECT_EQ(step_of_file(other), std::nullopt) << other;
}

TEST(Checkpoint, of_the_interval_and_the_newest_stay) {
  const ScratchDir dir;
  const auto left = [&](Index interval, Index keep_last) {
    for (const Index step : {3, 5, 7, 10, 12}) put(dir / step_file_name(step), "x");
    put(dir / "notes", "x");
    prune_checkpoints(dir.path(), interval, keep_last);
    std::vector<Index> steps;
    for (const auto& [step, file] : checkpoints_in(dir.path())) steps.push_back(step);
    return steps;
  };
  using testing::ElementsAre;
  EXPECT_THAT(left(5, 0), ElementsAre(12, 10, 5));
  EXPECT_THAT(left(5, 2), ElementsAre(12, 10));
  EXPECT_THAT(left(1, 3), ElementsAre(12, 10, 7));
  EXPECT_THAT(left(0, 3), ElementsAre(12)) << "without an interval, a checkpoint replaces another";
  EXPECT_TRUE(fs::exists(dir / "notes"));
}

TEST(Checkpoint, a_missing_checkpoint_is_named) {
  const ScratchDir dir;
  EXPECT_THAT([&] { find_checkpoint(dir / "none"); },
              ThrowsMessage<MissingInput>((dir / "none").string() +
                                          ": no checkpoint found; give a .h5 file, or a run "
                                          "directory with checkpoints/"));
  EXPECT_THAT([&] { Checkpoint{dir / "none.h5"}; },
              ThrowsMessage<MissingInput>("cannot read checkpoint " + (dir / "none.h5").string() +
                                          ": No such file or directory"));
}

TEST(Checkpoint, a_flipped_bit_is_detected_anywhere) {
  const ScratchDir dir;
  const Training run(7);
  const fs::path path = save_checkpoint(dir.path(), run.set, run.optimizer.get(), meta(2));
  const std::string sound = contents(path);
  for (size_t at = 20; at < sound.size(); at += 29) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    put(path, damaged);
    EXPECT_THAT([&] { Checkpoint{path}; },
                ThrowsMessage<DataError>(AllOf(StartsWith("checkpoint " + path.string() + " is "),
                                               HasSubstr("use another checkpoint of the run"))))
        << at;
  }
  std::string damaged = sound;
  damaged.back() ^= 4;
  put(path, damaged);
  EXPECT_THAT(
      [&] { Checkpoint{path}; },
      ThrowsMessage<DataError>(
          AllOf(HasSubstr("is damaged: its " + std::to_string(sound.size() - kChecksumHeaderSize) +
                          " bytes with digest "),
                HasSubstr(" do not match its first line; use another checkpoint"))));
}

TEST(Checkpoint, a_truncated_file_reports_its_missing_bytes) {
  const ScratchDir dir;
  const Training run(7);
  const fs::path path = save_checkpoint(dir.path(), run.set, run.optimizer.get(), meta(2));
  const std::string sound = contents(path);
  put(path, sound.substr(0, 1000));
  EXPECT_THAT([&] { Checkpoint{path}; },
              ThrowsMessage<DataError>(
                  HasSubstr("is truncated: it has 1000 bytes, but " + std::to_string(sound.size()) +
                            " were written; use another checkpoint of the run")));
  put(path, sound.substr(0, 30));
  EXPECT_THAT([&] { Checkpoint{path}; },
              ThrowsMessage<DataError>(HasSubstr("it has 30 bytes, but more were written")));
  put(path, sound + "x");
  EXPECT_THAT([&] { Checkpoint{path}; }, ThrowsMessage<DataError>(HasSubstr("damaged")));
}

TEST(Checkpoint, models_of_real_size_restore_bit_for_bit) {
  for (const auto& [kind, width] :
       {std::pair("softmax", 128), std::pair("diff_v1", 32), std::pair("diff_v2", 64)}) {
    const ScratchDir dir;
    ModelConfig config;
    config.d_model = width;
    config.attention.kind = kind;
    LanguageModel saved(config), loaded(config);
    saved.parameters().initialize(1);
    loaded.parameters().initialize(2);
    const Optimizer optimizer(saved.parameters(), {});
    const fs::path path = save_checkpoint(dir.path(), saved.parameters(), &optimizer, meta(1));
    Checkpoint(path).load(loaded.parameters(), nullptr);
    for (const Parameter& p : saved.parameters()) {
      const auto other = loaded.parameters().find(p.name)->value.values();
      EXPECT_TRUE(std::ranges::equal(p.value.values(), other)) << p.name;
    }
  }
}

TEST(Checkpoint, a_foreign_file_is_rejected) {
  const ScratchDir dir;
  put(dir / "text.h5", "hello");
  h5::File::create(dir / "other.h5").save();
  for (const char* name : {"text.h5", "other.h5"}) {
    EXPECT_THAT(
        [&] { Checkpoint{dir / name}; },
        ThrowsMessage<DataError>((dir / name).string() +
                                 ": is not a difftape checkpoint, which begins with "
                                 "'difftape-checkpoint'; give a .h5 file of `difftape train`"));
  }
}

TEST(Checkpoint, a_git_lfs_pointer_is_named) {
  const ScratchDir dir;
  put(dir / "l.h5", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n");
  EXPECT_THAT([&] { Checkpoint{dir / "l.h5"}; },
              ThrowsMessage<DataError>((dir / "l.h5").string() +
                                       ": is a Git LFS pointer, but must be a difftape checkpoint; "
                                       "fetch the file with `git lfs pull`"));
}

TEST(Checkpoint, a_later_format_version_is_rejected) {
  const ScratchDir dir;
  h5::File file = h5::File::create(dir / "new.h5", kChecksumHeaderSize);
  file.set_attribute("/", "format_version", 2);
  file.save(write_checksum_header);
  EXPECT_THAT(
      [&] { Checkpoint{dir / "new.h5"}; },
      ThrowsMessage<DataError>(
          "checkpoint " + (dir / "new.h5").string() +
          " has format version 2, but this difftape reads 1; use the version that wrote it"));
}

TEST(Checkpoint, a_model_of_another_shape_is_rejected_and_stays_unchanged) {
  const ScratchDir dir;
  const Training saved(7);
  const fs::path path = save_checkpoint(dir.path(), saved.set, saved.optimizer.get(), meta(2));
  Training wider(8, 6);
  const auto before = wider.state();
  EXPECT_THAT([&] { Checkpoint(path).load(wider.set, wider.optimizer.get()); },
              ThrowsMessage<DataError>("checkpoint " + path.string() +
                                       " does not fit the model: "
                                       "model.layers.0.self_attn.q_proj.weight is (3, 5), but "
                                       "must be (3, 6); use a checkpoint of this model"));
  EXPECT_EQ(wider.state(), before);
}

TEST(Checkpoint, a_model_with_other_parameters_is_rejected) {
  const ScratchDir dir;
  const Training saved(7);
  const fs::path path = save_checkpoint(dir.path(), saved.set, nullptr, meta(2));
  Training more(8);
  more.set.declare("lm_head.weight", {2, 5}, Role::projection, Init::normal(1));
  more.set.initialize(8);
  EXPECT_THAT([&] { Checkpoint(path).load(more.set, nullptr); },
              ThrowsMessage<DataError>("checkpoint " + path.string() +
                                       " does not fit the model: it has no lm_head.weight (2, 5); "
                                       "use a checkpoint of this model"));
  ParameterSet fewer;
  fewer.declare("model.norm.weight", {5}, Role::norm_weight, Init::constant(1));
  fewer.initialize(1);
  EXPECT_THAT([&] { Checkpoint(path).load(fewer, nullptr); },
              ThrowsMessage<DataError>(
                  "checkpoint " + path.string() +
                  " does not fit the model: the model has no "
                  "model.layers.0.self_attn.q_proj.weight (3, 5); use a checkpoint of this model"));
}

TEST(Checkpoint, without_moments_can_be_evaluated_but_not_continued) {
  const ScratchDir dir;
  const Training saved(7);
  const fs::path path = save_checkpoint(dir.path(), saved.set, nullptr, meta(2));
  Training loaded(8);
  Checkpoint(path).load(loaded.set, nullptr);
  EXPECT_EQ(loaded.state()[0], saved.state()[0]);
  EXPECT_THAT([&] { Checkpoint(path).load(loaded.set, loaded.optimizer.get()); },
              ThrowsMessage<DataError>("checkpoint " + path.string() +
                                       " cannot continue training, because it has no "
                                       "/optim/model.layers.0.self_attn.q_proj.weight/m (3, 5); "
                                       "use it with train.init_from or difftape eval"));
}

TEST(Checkpoint, a_directory_that_cannot_be_created_is_an_output_error) {
  const ScratchDir dir;
  put(dir / "file", "");
  const Training run(7);
  EXPECT_THAT(
      [&] { save_checkpoint(dir / "file" / "checkpoints", run.set, nullptr, meta(2)); },
      ThrowsMessage<OutputError>("cannot create " + (dir / "file" / "checkpoints").string() +
                                 ": Not a directory"));
}

}  // namespace
}  // namespace difftape::run
