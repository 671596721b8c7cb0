#include "train/run/records/h5.h"

#include <sys/resource.h>

#include <csignal>

#include "tests/support/test.h"

namespace difftape::run {
namespace {

TEST(H5, reads_back_shapes_values_and_attributes) {
  const ScratchDir dir;
  h5::File out = h5::File::create(dir / "a.h5");
  out.write<double>("/group/deep/matrix", {2, 3}, std::vector<double>{1, 2, 3, 4, 5, 0.1});
  out.write<std::int32_t>("tokens", {4}, std::vector<std::int32_t>{-1, 0, 255, 1 << 30});
  out.write<std::int64_t>("big", {1}, std::vector<std::int64_t>{1LL << 60});
  out.write<float>("loss", {}, std::vector<float>{2.5f});
  out.write<float>("none", {0}, {});
  out.write("tensor", Tensor::full({2, 2}, 7));
  out.set_attribute("/", "config", "name: größe\n");
  out.set_attribute("/rng/state", "seed", -3);
  out.set_attribute("tokens", "vocab_size", 256);
  out.save();

  const h5::File in = h5::File::open(dir / "a.h5");
  EXPECT_EQ(in.shape("group/deep/matrix"), (Shape{2, 3}));
  EXPECT_THAT(in.read<double>("group/deep/matrix"), ElementsAre(1, 2, 3, 4, 5, 0.1));
  EXPECT_THAT(in.read<std::int32_t>("/tokens"), ElementsAre(-1, 0, 255, 1 << 30));
  EXPECT_THAT(in.read<std::int64_t>("big"), ElementsAre(1LL << 60));
  EXPECT_EQ(in.shape("loss").rank(), 0);
  EXPECT_THAT(in.read<float>("loss"), ElementsAre(2.5f));
  EXPECT_TRUE(in.read<float>("none").empty());
  EXPECT_THAT(in.read<real>("tensor"), ElementsAre(7, 7, 7, 7));
  EXPECT_EQ(in.string_attribute("/", "config"), "name: größe\n");
  EXPECT_EQ(in.int_attribute("/rng/state", "seed"), -3);
  EXPECT_EQ(in.int_attribute("tokens", "vocab_size"), 256);
}

TEST(H5, converts_to_the_requested_type) {
  const ScratchDir dir;
  h5::File out = h5::File::create(dir / "a.h5");
  out.write<double>("x", {1}, std::vector<double>{0.1});
  out.write<float>("y", {1}, std::vector<float>{0.1f});
  out.write<std::int64_t>("n", {1}, std::vector<std::int64_t>{42});
  out.save();
  const h5::File in = h5::File::open(dir / "a.h5");
  EXPECT_THAT(in.read<float>("x"), ElementsAre(0.1f));
  EXPECT_THAT(in.read<double>("y"), ElementsAre(static_cast<double>(0.1f)));
  EXPECT_THAT(in.read<std::int32_t>("n"), ElementsAre(42));
  EXPECT_THAT(in.read<double>("n"), ElementsAre(42.0));
}

TEST(H5, lists_children_and_existing_objects) {
  const ScratchDir dir;
  h5::File out = h5::File::create(dir / "a.h5");
  out.write("model/b.weight", Tensor::zeros({1}));
  out.write("model/a.weight", Tensor::zeros({1}));
  out.save();
  const h5::File in = h5::File::open(dir / "a.h5");
  EXPECT_THAT(in.children("/model"), ElementsAre("a.weight", "b.weight"));
  EXPECT_THAT(in.children("/"), ElementsAre("model"));
  EXPECT_TRUE(in.exists("/"));
  EXPECT_TRUE(in.exists("model/a.weight"));
  EXPECT_TRUE(in.exists("/model/a.weight"));
  EXPECT_FALSE(in.exists("model/c.weight"));
  EXPECT_FALSE(in.exists("other/a/b"));
}

TEST(H5, equal_contents_give_equal_bytes) {
  const ScratchDir dir;
  for (const char* name : {"a.h5", "b.h5"}) {
    h5::File out = h5::File::create(dir / name);
    out.write("x/y", Tensor::full({100}, 3));
    out.set_attribute("x", "note", "same");
    out.save();
  }
  EXPECT_EQ(contents(dir / "a.h5"), contents(dir / "b.h5"));
}

TEST(H5, leaves_the_user_block_to_the_caller) {
  const ScratchDir dir;
  h5::File out = h5::File::create(dir / "a.h5", 512);
  out.write("x", Tensor::full({3}, 3));
  out.save([](std::span<std::byte> image) { std::ranges::fill(image.first(512), std::byte{'#'}); });
  EXPECT_EQ(contents(dir / "a.h5").substr(0, 513), std::string(512, '#') + "\x89");
  EXPECT_EQ(h5::File::open(dir / "a.h5").read<real>("x")[2], 3);
}

TEST(H5, errors_name_file_and_object) {
  const ScratchDir dir;
  const std::string path = dir / "a.h5";
  h5::File out = h5::File::create(path);
  out.write("x", Tensor::zeros({2}));
  out.save();
  const h5::File in = h5::File::open(path);
  EXPECT_THAT([&] { in.read<float>("nope"); },
              ThrowsMessage<DataError>(path + ": cannot read nope: object 'nope' doesn't exist; "
                                              "restore the file or write it again"));
  EXPECT_THAT([&] { in.children("nope"); }, ThrowsMessage<DataError>(HasSubstr("read nope")));
  EXPECT_THAT([&] { in.int_attribute("x", "n"); },
              ThrowsMessage<DataError>(
                  HasSubstr(path + ": cannot read x, attribute n: can't locate attribute: 'n'; ")));
  std::vector<float> three(3);
  EXPECT_THAT([&] { in.read<float>("x", three); },
              ThrowsMessage<DataError>(path + ": x has the shape (2), but must have 3 values; "
                                              "restore the file or write it again"));
  EXPECT_THAT([&] { out.write("x", Tensor::zeros({2})); },
              ThrowsMessage<OutputError>(path + ": cannot write x: name already exists"));
  EXPECT_THAT([&] { out.write<float>("y", {2}, three); },
              ThrowsMessage<ShapeError>("h5: y has 3 values, but its shape (2) needs 2"));
  out.set_attribute("x", "number", 5);
  out.set_attribute("x", "text", "five");
  EXPECT_THAT([&] { out.string_attribute("x", "number"); },
              ThrowsMessage<DataError>(
                  path + ": attribute number of x is not a variable-length "
                         "string, but must be one; restore the file or write it again"));
  EXPECT_THAT([&] { out.int_attribute("x", "text"); },
              ThrowsMessage<DataError>(HasSubstr("cannot read x, attribute text")));
}

TEST(H5, rejects_missing_files_and_other_formats) {
  const ScratchDir dir;
  put(dir / "text.h5", "not HDF5");
  EXPECT_THAT([&] { h5::File::open(dir / "none.h5"); },
              ThrowsMessage<MissingInput>("cannot read " + (dir / "none.h5").string() +
                                          ": No such file or directory"));
  EXPECT_THAT([&] { h5::File::open(dir / "text.h5"); },
              ThrowsMessage<DataError>(
                  (dir / "text.h5").string() +
                  ": is not an HDF5 file, but must be one; restore the file or write it again"));
}

TEST(H5, a_disk_that_fills_up_is_an_error_and_leaves_the_old_file) {
  const ScratchDir dir;
  put(dir / "a.h5", "old");
  h5::File out = h5::File::create(dir / "a.h5");
  out.write("x", Tensor::zeros({100000}));

  rlimit before;
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit full{4096, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &full);
  EXPECT_THAT(
      [&] { out.save(); },
      ThrowsMessage<OutputError>("cannot write " + (dir / "a.h5").string() + ": File too large"));
  setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(contents(dir / "a.h5"), "old");
  EXPECT_FALSE(fs::exists(dir / "a.h5.tmp"));
}

}  // namespace
}  // namespace difftape::run
