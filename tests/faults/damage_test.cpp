// A checkpoint with any bit flipped, or cut off anywhere, is refused.
#include <random>

#include "tests/faults/project.h"

namespace difftape::test {
namespace {

struct Damage : testing::Test {
  Damage() {
    project.config.model = {
        .d_model = 8, .num_layers = 1, .num_heads = 2, .d_ff = 8, .max_seq_len = 16};
    project.config.train.steps = 2;
    EXPECT_EQ(project.train("run"), system::Exit::ok);
    path = run::find_checkpoint(project / "run");
    sound = contents(path);
    EXPECT_NO_THROW(run::Checkpoint{path});
  }

  bool refused() const {
    try {
      run::Checkpoint{path};
    } catch (const DataError&) {
      return true;
    }
    return false;
  }

  TinyProject project;
  fs::path path;
  std::string sound;
};

TEST_F(Damage, of_one_bit_is_always_found) {
  std::mt19937_64 random(5);
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  const auto put_byte = [&](std::size_t at, char byte) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(byte).flush();
  };
  const int flips = torture() ? 10000 : 500;
  for (int i = 0; i < flips; ++i) {
    const std::size_t bit = random() % (8 * sound.size()), at = bit / 8;
    put_byte(at, static_cast<char>(sound[at] ^ (1 << bit % 8)));
    EXPECT_TRUE(refused()) << "bit " << bit;
    put_byte(at, sound[at]);
  }
  EXPECT_FALSE(refused());
  say(fmt::format("{} flips of one bit of {} bytes, all found", flips, sound.size()));
}

TEST_F(Damage, by_truncation_is_always_found) {
  const std::size_t step = torture() ? 1 : 97;
  std::size_t lengths = 0;
  for (std::size_t length = sound.size(); length > 0; ++lengths) {
    length -= std::min(length, step);
    fs::resize_file(path, length);
    EXPECT_TRUE(refused()) << "length " << length;
  }
  say(fmt::format("{} lengths below {} bytes, all found", lengths, sound.size()));
}

}  // namespace
}  // namespace difftape::test
