#include "tests/support/test.h"
#include "train/run/data/sources.h"

#include <hdf5.h>

#include "train/run/config/reader.h"
#include "train/run/records/h5.h"
#include "train/system/stored_bytes.h"

namespace difftape::run {
namespace {

template <class T>
std::string bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

std::string llmc_header(std::int32_t magic, std::int32_t version, std::int32_t count) {
  std::vector<std::int32_t> header(256, 0);
  header[0] = magic;
  header[1] = version;
  header[2] = count;
  return bytes_of(header);
}

/// Returns 0, 7, 14, ... below 1000.
template <class T>
std::vector<T> tokens(int count) {
  std::vector<T> all;
  for (int i = 0; i < count; ++i) all.push_back(static_cast<T>(i * 7 % 1000));
  return all;
}

struct TokenData : testing::Test {
  ScratchDir dir;

  void put_h5(const char* name, const Shape& shape, const std::vector<std::int32_t>& values,
              const char* dataset = "tokens") const {
    h5::File file = h5::File::create(dir / name);
    file.write<std::int32_t>(dataset, shape, values);
    file.save();
  }
  std::unique_ptr<Dataset> make(const std::string& name, Index vocab_size = 1000,
                                Index seq_len = 16) const {
    ModelConfig model;
    model.vocab_size = vocab_size;
    return make_dataset({.type = DataKind::tokens,
                         .path = {(dir / name).string()},
                         .seq_len = seq_len,
                         .batch_size = 4},
                        model, 1);
  }
  auto fails(const std::string& name, const std::string& what) const {
    EXPECT_THAT([&] { make(name); },
                ThrowsMessage<DataError>((dir / name).string() + what + "\nin data.path"));
  }
};

TEST_F(TokenData, all_formats_give_the_same_batches) {
  put(dir / "nano.bin", bytes_of(tokens<std::uint16_t>(500)));
  put(dir / "v1.bin", llmc_header(20240520, 1, 500) + bytes_of(tokens<std::uint16_t>(500)));
  put(dir / "v7.bin", llmc_header(20240801, 7, 500) + bytes_of(tokens<std::uint32_t>(500)));
  put_h5("t.h5", {500}, tokens<std::int32_t>(500));
  const auto nano = make("nano.bin");
  EXPECT_EQ(nano->vocab_size(), 997) << "one more than the largest token";
  EXPECT_EQ(nano->info()["type"], "tokens");
  EXPECT_EQ(nano->info()["tokens"], 500);
  EXPECT_EQ(nano->info()["val_tokens"], 25);
  const auto train = nano->train_batch(3, 0).tokens, val = nano->val_batch(0).tokens;
  for (size_t i = 1; i < 17; ++i) EXPECT_EQ(train[i], (train[i - 1] + 7) % 1000);
  for (const char* name : {"v1.bin", "v7.bin", "t.h5"}) {
    EXPECT_EQ(make(name)->train_batch(3, 0).tokens, train) << name;
    EXPECT_EQ(make(name)->val_batch(0).tokens, val) << name;
  }
}

/// Writes /tokens with an HDF5 type, compressed in chunks if `chunk` is positive.
void put_other_h5(const fs::path& path, const std::vector<std::int32_t>& values, hid_t type,
                  hsize_t chunk) {
  const hsize_t size = values.size();
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t space = H5Screate_simple(1, &size, nullptr), how = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk > 0) {
    H5Pset_chunk(how, 1, &chunk);
    H5Pset_deflate(how, 1);
  }
  const hid_t set = H5Dcreate2(file, "tokens", type, space, H5P_DEFAULT, how, H5P_DEFAULT);
  ASSERT_GE(H5Dwrite(set, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0);
  H5Dclose(set), H5Pclose(how), H5Sclose(space), H5Fclose(file);
}

TEST_F(TokenData, hdf5_of_any_integer_type_and_layout_gives_the_same_batches) {
  put_h5("t.h5", {500}, tokens<std::int32_t>(500));
  const auto usual = make("t.h5");
  for (const hid_t type : {H5T_STD_U16LE, H5T_STD_U16BE, H5T_STD_I64LE, H5T_STD_U32LE}) {
    for (const hsize_t chunk : {0, 64}) {
      put_other_h5(dir / "o.h5", tokens<std::int32_t>(500), type, chunk);
      const auto other = make("o.h5");
      for (Index step = 0; step < 10; ++step)
        EXPECT_EQ(other->train_batch(step, 0).tokens, usual->train_batch(step, 0).tokens);
    }
  }
  auto wrong = tokens<std::int32_t>(500);
  wrong[3] = -7;
  for (const hsize_t chunk : {0, 64}) {
    put_other_h5(dir / "wrong.h5", wrong, H5T_STD_I64LE, chunk);
    EXPECT_THAT([&] { make("wrong.h5"); },
                ThrowsMessage<DataError>(HasSubstr("wrong.h5: token 3 is ")));
  }
}

TEST_F(TokenData, of_a_large_hdf5_file_is_read_in_place) {
  std::vector<std::int32_t> many(6'000'000);
  for (size_t i = 0; i < many.size(); ++i) many[i] = static_cast<std::int32_t>(i * 7 % 1000);
  put_h5("large.h5", {6'000'000}, many);
  ASSERT_GT(fs::file_size(dir / "large.h5"), system::StoredBytes::kInMemory);
  const auto data = make("large.h5");
  const auto batch = data->train_batch(3, 0).tokens;
  for (size_t i = 1; i < 17; ++i) EXPECT_EQ(batch[i], (batch[i - 1] + 7) % 1000);
  fs::resize_file(dir / "large.h5", 24'000'000);
  EXPECT_THAT([&] { data->train_batch(3, 0); }, ThrowsMessage<DataError>(HasSubstr("large.h5")));
}

TEST_F(TokenData, files_follow_each_other_in_the_order_of_their_names) {
  const auto all = tokens<std::uint16_t>(500);
  put(dir / "b.bin", bytes_of(std::vector<std::uint16_t>(all.begin() + 101, all.end())));
  put(dir / "a.bin", bytes_of(std::vector<std::uint16_t>(all.begin(), all.begin() + 101)));
  put(dir / "whole.bin", bytes_of(all));
  const auto parts = make("?.bin"), whole = make("whole.bin");
  EXPECT_EQ(parts->info()["files"], 2);
  for (Index step = 0; step < 20; ++step)
    EXPECT_EQ(parts->train_batch(step, 0).tokens, whole->train_batch(step, 0).tokens);
  EXPECT_EQ(parts->info()["xxh3_128"], whole->info()["xxh3_128"]);
}

TEST_F(TokenData, damaged_and_foreign_files_are_reported_with_the_expected_format) {
  put(dir / "odd.bin", std::string(501, '\1'));
  fails(
      "odd.bin",
      ": has 501 bytes, but a .bin without an llm.c header must have an even number, 2 per token");
  put(dir / "empty.bin", "");
  fails("empty.bin", ": contains no tokens; leave it out");
  put(dir / "cut", llmc_header(20240520, 1, 500).substr(0, 100));
  fails("cut",
        ": begins like an llm.c token file, but has 100 bytes, fewer than the 1024 of its header; "
        "the file is truncated");
  put(dir / "version", llmc_header(20240520, 2, 0));
  fails("version",
        ": llm.c token file with magic 20240520 has version 2, but must have version 1; "
        "convert the data again");
  put(dir / "short", llmc_header(20240801, 7, 500) + bytes_of(tokens<std::uint32_t>(499)));
  fails("short",
        ": the llm.c header states 500 tokens of 4 bytes, 3024 bytes in total, but the file has "
        "3020; it is truncated or damaged");
  put(dir / "negative", llmc_header(20240520, 1, -1));
  fails("negative",
        ": the llm.c header states -1 tokens of 2 bytes, 1022 bytes in total, but the file has "
        "1024; it is truncated or damaged");
  put(dir / "text.h5", "no HDF5");
  fails("text.h5", ": is not an HDF5 file, but must be one; restore the file or write it again");
  put_h5("other.h5", {500}, tokens<std::int32_t>(500), "words");
  fails("other.h5", ": has no dataset /tokens; `difftape data prepare` writes one");
  put_h5("rows.h5", {5, 100}, tokens<std::int32_t>(500));
  fails("rows.h5", ": /tokens has shape (5, 100), but must have one axis; flatten it");
}

TEST_F(TokenData, a_truncated_h5_file_is_a_data_error) {
  put_h5("t.h5", {500}, tokens<std::int32_t>(500));
  const std::string whole = contents(dir / "t.h5");
  for (const size_t size : {whole.size() - 100, whole.size() / 2, size_t{100}}) {
    put(dir / "cut.h5", whole.substr(0, size));
    EXPECT_THROW(make("cut.h5"), DataError) << size;
  }
}

TEST_F(TokenData, a_token_beyond_the_vocabulary_is_named_with_its_position) {
  put(dir / "nano.bin", bytes_of(tokens<std::uint16_t>(500)));
  EXPECT_THAT([&] { make("nano.bin", 996); },
              ThrowsMessage<DataError>((dir / "nano.bin").string() +
                                       ": token 428 is 996 (format nanoGPT .bin), but must be 0 to "
                                       "995, because model.vocab_size is 996; raise it, or use a "
                                       "file with another vocabulary\nin data.path"));
  auto wide = tokens<std::uint32_t>(500);
  wide[3] = 0xfffffff0;
  put(dir / "v7.bin", llmc_header(20240801, 7, 500) + bytes_of(wide));
  EXPECT_THAT(
      [&] { make("v7.bin"); },
      ThrowsMessage<DataError>(HasSubstr("token 3 is negative or above 2147483647 (format llm.c")));
}

TEST_F(TokenData, numbers_with_fractions_are_not_tokens) {
  h5::File file = h5::File::create(dir / "float.h5");
  file.write<float>("tokens", {200}, std::vector<float>(200, 1.7F));
  file.save();
  EXPECT_THAT(
      [&] { make("float.h5"); },
      ThrowsMessage<DataError>(HasSubstr("tokens holds floating-point numbers, but must hold")));
}

TEST_F(TokenData, a_text_file_is_not_a_token_file) {
  put(dir / "even.bin", std::string(50, 'a') + "\n" + std::string(1001, 'b'));
  EXPECT_THAT(
      [&] { make("even.bin"); },
      ThrowsMessage<DataError>(HasSubstr(
          (dir / "even.bin").string() +
          ": is a text file, but must be a token file; convert it with `difftape data prepare`")));
}

TEST_F(TokenData, only_a_bin_has_tokens_without_a_header) {
  using namespace std::string_literals;
  const std::string rest(999, 'a');
  for (const auto& [name, text] : std::vector<std::array<std::string, 2>>{
           {"form_feed.txt", "Chapter 1\f\n" + rest},
           {"text", "text" + rest},
           {"meta.pkl", "\x80\4\x95\x10\0\0\0\0\0\0\0"s + rest},
           {"model.safetensors", "\x40\0\0\0\0\0\0\0{\"a\":"s + rest},
           {"lines.jsonl", "{}\n"}}) {
    put(dir / name, text);
    fails(name,
          ": is not a token file: tokens without a header must be uint16 in a .bin; convert text "
          "with `difftape data prepare`, or set data.type to text, whose tokens are bytes");
  }
  put(dir / "form_feed.bin", "Chapter 1\f\n" + rest + rest);
  EXPECT_THAT([&] { make("form_feed.bin", 65536); },
              ThrowsMessage<DataError>(HasSubstr("form_feed.bin: is a text file")));
  put(dir / "nano.BIN", bytes_of(tokens<std::uint16_t>(500)));
  EXPECT_EQ(make("nano.BIN")->info()["tokens"], 500);
  put(dir / "v1", llmc_header(20240520, 1, 500) + bytes_of(tokens<std::uint16_t>(500)));
  EXPECT_EQ(make("v1")->info()["tokens"], 500);
}

TEST_F(TokenData, that_data_prepare_did_not_describe_is_refused) {
  const std::string all = bytes_of(tokens<std::uint16_t>(500));
  put(dir / "c.bin", all);
  const std::string digest = make("c.bin")->info()["xxh3_128"];
  put(dir / "c.bin.json", nlohmann::json{{"bytes", 900}, {"xxh3_128", digest}}.dump());
  EXPECT_EQ(make("c.bin")->info()["tokens"], 500);
  std::string other = all;
  other[500] = static_cast<char>(other[500] ^ 1);
  for (const std::string& now : {all.substr(0, 600), other}) {
    put(dir / "c.bin", now);
    fails("c.bin", fmt::format(": its {} tokens are not those that `difftape data prepare` "
                               "described, whose digest is {}; prepare them again, or remove {} if "
                               "another program wrote them",
                               now.size() / 2, digest, (dir / "c.bin.json").string()));
  }
  fs::remove(dir / "c.bin.json");
  EXPECT_EQ(make("c.bin")->info()["tokens"], 500);
  h5::File file = h5::File::create(dir / "c.h5");
  file.write<std::int32_t>("tokens", {500}, tokens<std::int32_t>(500));
  file.set_attribute("/", "provenance", nlohmann::json{{"xxh3_128", digest}}.dump());
  file.save();
  EXPECT_THAT([&] { make("c.h5"); },
              ThrowsMessage<DataError>(HasSubstr("c.h5: its 500 tokens are not those that")));
}

TEST_F(TokenData, of_a_git_lfs_pointer_names_the_command_that_fetches_the_file) {
  const std::string pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\n";
  put(dir / "c.bin", bytes_of(tokens<std::uint16_t>(500)));
  for (const char* name : {"t.h5", "c.bin.json", "c.bin.model"}) {
    put(dir / name, pointer);
    EXPECT_THAT([&] { make(name == std::string("t.h5") ? "t.h5" : "c.bin"); },
                ThrowsMessage<DataError>(AllOf(HasSubstr(name),
                                               HasSubstr(" is a Git LFS pointer, but must be "),
                                               HasSubstr("fetch the file with `git lfs pull`"))));
    fs::remove(dir / name);
  }
}

/// Returns a file as numpy.save writes it (NumPy Enhancement Proposal 1, version 1.0).
std::string npy(const std::string& type, const std::string& shape, const std::string& data) {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }";
  header.resize(128 - 10 - 1, ' ');
  header += '\n';
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header + data;
}

TEST_F(TokenData, numpy_arrays_of_integers_give_the_same_batches) {
  put(dir / "nano.bin", bytes_of(tokens<std::uint16_t>(500)));
  put(dir / "u2.npy", npy("<u2", "(500,)", bytes_of(tokens<std::uint16_t>(500))));
  put(dir / "i2.bin", npy("<i2", "(500,)", bytes_of(tokens<std::int16_t>(500))));
  put(dir / "u4.NPY", npy("<u4", "(500,)", bytes_of(tokens<std::uint32_t>(500))));
  put(dir / "i8.npy", npy("<i8", "(500,)", bytes_of(tokens<std::int64_t>(500))));
  const auto nano = make("nano.bin");
  for (const char* name : {"u2.npy", "i2.bin", "u4.NPY", "i8.npy"}) {
    EXPECT_EQ(make(name)->info()["tokens"], 500) << name;
    EXPECT_EQ(make(name)->train_batch(3, 0).tokens, nano->train_batch(3, 0).tokens) << name;
  }
  put(dir / "big.npy", npy(">u2", "(500,)", bytes_of(tokens<std::uint16_t>(500))));
  fails("big.npy",
        ": is a NumPy array of type '>u2', but tokens must be little-endian integers; convert it "
        "with array.astype('<u2')");
  put(dir / "rows.npy", npy("<u2", "(5, 100)", bytes_of(tokens<std::uint16_t>(500))));
  fails("rows.npy",
        ": is a NumPy array of shape (5, 100), but must have one axis; flatten it with "
        "array.reshape(-1)");
  put(dir / "cut.npy", npy("<u2", "(500,)", bytes_of(tokens<std::uint16_t>(499))));
  fails("cut.npy",
        ": is a NumPy array of 500 tokens of 2 bytes, but 998 bytes follow its header; copy it "
        "again");
  auto negative = tokens<std::int16_t>(500);
  negative[3] = -7;
  put(dir / "negative.npy", npy("<i2", "(500,)", bytes_of(negative)));
  EXPECT_THAT([&] { make("negative.npy", 65536); },
              ThrowsMessage<DataError>(HasSubstr("token 3 is negative")));
}

TEST_F(TokenData, wider_tokens_without_a_header_are_not_read_as_uint16) {
  put(dir / "u4.bin", bytes_of(tokens<std::uint32_t>(500)));
  EXPECT_THAT([&] { make("u4.bin", 50257); },
              ThrowsMessage<DataError>(HasSubstr("u4.bin: seems to store 4 bytes per token")));
  put(dir / "i8.bin", bytes_of(tokens<std::int64_t>(500)));
  EXPECT_THAT([&] { make("i8.bin", 50257); },
              ThrowsMessage<DataError>(HasSubstr("i8.bin: seems to store 8 bytes per token")));
  std::vector<std::uint32_t> large;  // a vocabulary of 128,256, as Llama 3 has
  for (std::uint32_t i = 0; i < 500; ++i) large.push_back(i * 7919 % 128256);
  put(dir / "llama.bin", bytes_of(large));
  EXPECT_THAT([&] { make("llama.bin", 65536); },
              ThrowsMessage<DataError>(HasSubstr("seems to store 4 bytes per token")));
  auto negative = tokens<std::int32_t>(500);
  for (std::size_t i = 0; i < negative.size(); i += 3) negative[i] = -100;
  put(dir / "i4.bin", bytes_of(negative));
  EXPECT_THAT([&] { make("i4.bin", 65536); },
              ThrowsMessage<DataError>(HasSubstr("i4.bin: seems to store 4 bytes per token")));
  put(dir / "u2.bin", bytes_of(tokens<std::uint16_t>(500)));
  EXPECT_EQ(make("u2.bin", 65536)->vocab_size(), 997);
  EXPECT_THAT([&] { make("u2.bin", 65537); },
              ThrowsMessage<DataError>(AllOf(
                  HasSubstr("u2.bin: is a .bin without a header, whose tokens are uint16, but "
                            "model.vocab_size is 65537"),
                  HasSubstr("write them with numpy.save"))));
  put(dir / "zeros.bin", std::string(2000, '\0'));
  EXPECT_EQ(make("zeros.bin")->vocab_size(), 1);
}

TEST_F(TokenData, files_of_other_programs_are_rejected_by_name) {
  using namespace std::string_literals;
  const std::string rest(100, '\1');
  for (const auto& [begin, name, remedy] : std::vector<std::array<std::string, 3>>{
           {"PK\3\4", "a zip archive", "unpack it"},
           {"\x1f\x8b\x08", "a gzip file", "gunzip"},
           {"version https://git-lfs.github.com/spec/v1\n", "a Git LFS pointer", "git lfs pull"},
           {"<!doctype HTML>\n", "an HTML page", "download the file itself"},
           {"\n\x0e\n\5<unk>", "a SentencePiece model", "leave it out"},
           {"PAR1", "a Parquet file", "JSON lines"}}) {
    put(dir / "x.BIN", begin + rest);
    EXPECT_THAT([&] { make("x.BIN"); },
                ThrowsMessage<DataError>(AllOf(HasSubstr("x.BIN: is " + name),
                                               HasSubstr("but must be a token file; "),
                                               HasSubstr(remedy))));
  }
}

TEST_F(TokenData, too_few_tokens_and_a_missing_path_are_errors) {
  put(dir / "nano.bin", bytes_of(tokens<std::uint16_t>(33)));
  EXPECT_THAT([&] { make("nano.bin"); },
              ThrowsMessage<DataError>(
                  "the data in " + (dir / "nano.bin").string() +
                  " has 33 tokens, but data.seq_len 16 needs at least 34: one training and one "
                  "validation sequence of seq_len + 1; give more data\nin data.path"));
  const Config stored =
      config_from_yaml("data.type: tokens\n", "config");  // as stored with a model
  EXPECT_THAT(
      [&] { make_dataset(stored.data, stored.model, 1); },
      ThrowsMessage<ConfigError>("is empty, but data.type tokens needs token files; name .bin "
                                 "files of nanoGPT or llm.c, .npy or .h5 files\nin data.path"));
}

}  // namespace
}  // namespace difftape::run
