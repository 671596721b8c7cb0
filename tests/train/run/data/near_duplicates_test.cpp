#include "train/run/data/near_duplicates.h"

#include "core/digest.h"
#include "core/random.h"
#include "tests/support/test.h"
#include "train/run/data/sources.h"

namespace difftape::run {
namespace {

/// Returns random letters, in which no string of 50 repeats.
std::string letters(std::uint64_t seed, std::size_t size) {
  const RandomStream stream(seed, "letters");
  std::string text;
  for (std::uint64_t i = 0; i < size; ++i) text += static_cast<char>('a' + stream.below(i, 26));
  return text;
}

struct Texts {
  std::vector<std::string> texts;

  std::vector<DocumentFacts> facts() const {
    std::vector<DocumentFacts> facts;
    for (const std::string& text : texts) {
      Digest digest;
      digest.add(text);
      facts.push_back({std::ssize(text), digest.hex()});
    }
    return facts;
  }
  ReadDocument read() const {
    return [this](std::size_t i) { return std::string_view(texts[i]); };
  }
  std::vector<bool> duplicates(double fraction, int sampling = 0) const {
    return find_near_duplicates(facts(), fraction, sampling, read());
  }
};

/// Counts the bytes of `text` in strings of 50 bytes that occur in one of `others`, by brute force.
Index shared_by_search(const std::string& text, const std::vector<std::string>& others) {
  std::set<std::string_view> known;
  for (const std::string_view other : others)
    for (std::size_t i = 0; i + 50 <= other.size(); ++i) known.insert(other.substr(i, 50));
  std::vector<bool> shared(text.size());
  for (std::size_t i = 0; i + 50 <= text.size(); ++i) {
    if (!known.contains(std::string_view(text).substr(i, 50))) continue;
    for (std::size_t k = i; k < i + 50; ++k) shared[k] = true;
  }
  return std::ranges::count(shared, true);
}

TEST(NearDuplicates, are_documents_with_more_than_the_fraction_in_longer_ones) {
  const std::string source = letters(1, 2000);
  const Texts texts{{source.substr(300, 301) + letters(2, 699), source,
                     source.substr(700, 300) + letters(3, 700), letters(4, 900)}};
  EXPECT_THAT(texts.duplicates(0.3), ElementsAre(true, false, false, false));
  EXPECT_THAT(texts.duplicates(0.301), ElementsAre(false, false, false, false));
  EXPECT_THAT(texts.duplicates(0), ElementsAre(true, false, true, false));
}

TEST(NearDuplicates, count_strings_of_all_kept_documents_but_of_no_dropped_one) {
  const std::string a = letters(1, 1000), b = letters(2, 900), fresh = letters(3, 500);
  const Texts texts{{a, b, a.substr(0, 100) + b.substr(0, 100) + letters(4, 200),
                     a.substr(0, 400) + fresh, fresh.substr(0, 300)}};
  EXPECT_THAT(texts.duplicates(0.3), ElementsAre(false, false, true, true, false));
}

TEST(NearDuplicates, keep_one_of_equal_documents_even_if_short) {
  const Texts texts{{"short", letters(1, 300), "short", letters(1, 300), "", ""}};
  const std::vector<bool> drop = texts.duplicates(0.3);
  EXPECT_THAT(drop, ElementsAre(false, false, true, true, false, false));
}

TEST(NearDuplicates, do_not_depend_on_the_order_of_the_documents) {
  Texts texts;
  for (std::uint64_t i = 0; i < 30; ++i)
    texts.texts.push_back(letters(i % 7, 200 + 10 * (i % 5)) + letters(100 + i, 30 * i));
  const std::vector<bool> drop = texts.duplicates(0.3);
  Texts reversed{{texts.texts.rbegin(), texts.texts.rend()}};
  std::vector<bool> expected(drop.rbegin(), drop.rend());
  EXPECT_EQ(reversed.duplicates(0.3), expected);
  EXPECT_GT(std::ranges::count(drop, true), 5);
  EXPECT_GT(std::ranges::count(drop, false), 5);
}

TEST(NearDuplicates, are_found_in_a_sample_of_their_strings) {
  Texts texts;
  for (std::uint64_t i = 0; i < 20; ++i) texts.texts.push_back(letters(i, 4000));
  for (std::uint64_t i = 0; i < 20; ++i) {  // 20 or 40 % of the document, in runs of 200 bytes
    const std::size_t stretches = i % 2 == 0 ? 3 : 6;
    std::string text = letters(100 + i, 3000 - 200 * stretches);
    for (std::size_t k = 0; k < stretches; ++k)
      text.insert(300 * k, texts.texts[i].substr(500 * k, 200));
    texts.texts.push_back(text);
  }
  EXPECT_EQ(texts.duplicates(0.3, 3), texts.duplicates(0.3));
  EXPECT_EQ(std::ranges::count(texts.duplicates(0.3), true), 10);
}

TEST(NearDuplicates, of_documents_of_more_than_a_megabyte_are_found) {
  const std::string source = letters(1, std::size_t{1} << 20);
  const Texts texts{
      {source.substr(5000, 1000), source + letters(2, 1000), letters(3, 1000), source}};
  EXPECT_THAT(texts.duplicates(0.3), ElementsAre(true, false, false, true));
  const std::vector<std::size_t> train{1}, held_out{2, 3, 0};
  EXPECT_THAT(count_shared_bytes(train, held_out, texts.read()),
              ElementsAre(0, std::ssize(source), 1000));
}

TEST(SharedBytes, equal_a_brute_force_search) {
  // Few letters in few orders share many strings of every length by chance.
  Texts texts;
  const RandomStream stream(5, "words");
  for (std::uint64_t i = 0; i < 12; ++i) {
    std::string text;
    for (std::uint64_t k = 0; k < 120; ++k)
      text += letters(stream.below(1000 * i + k, 40), 10 + 7 * stream.below(1000 * i + k, 3));
    texts.texts.push_back(text);
  }
  texts.texts[3] = "too short";
  texts.texts[8] += texts.texts[1].substr(0, 50);
  texts.texts[9] += texts.texts[1].substr(200, 49) + "#";
  const std::vector<std::size_t> train{1, 2, 4, 5}, held_out{0, 3, 6, 7, 8, 9, 10, 11};
  const std::vector<Index> shared = count_shared_bytes(train, held_out, texts.read());
  std::vector<std::string> trained;
  for (const std::size_t i : train) trained.push_back(texts.texts[i]);
  for (std::size_t n = 0; n < held_out.size(); ++n)
    EXPECT_EQ(shared[n], shared_by_search(texts.texts[held_out[n]], trained)) << n;
  EXPECT_GE(shared[4], 50);
  EXPECT_EQ(shared[1], 0);
}

TEST(HeldOut, is_about_the_fraction_of_the_bytes_and_depends_on_the_documents_only) {
  Texts texts;
  for (std::uint64_t i = 0; i < 300; ++i) texts.texts.push_back(letters(i, 100 + 37 * (i % 40)));
  const std::vector<DocumentFacts> facts = texts.facts();
  for (const double fraction : {0.05, 0.3, 0.9}) {
    const std::vector<bool> held_out = choose_held_out(facts, fraction);
    double bytes = 0, all = 0;
    for (std::size_t i = 0; i < facts.size(); ++i) {
      all += static_cast<double>(facts[i].bytes);
      if (held_out[i]) bytes += static_cast<double>(facts[i].bytes);
    }
    EXPECT_NEAR(bytes / all, fraction, 0.001);
    const std::vector<DocumentFacts> reversed(facts.rbegin(), facts.rend());
    const std::vector<bool> again = choose_held_out(reversed, fraction);
    EXPECT_TRUE(std::ranges::equal(std::vector<bool>(held_out.rbegin(), held_out.rend()), again));
  }
  // A few more documents that consist almost entirely of the same strings.
  std::vector<DocumentFacts> more = facts;
  for (std::uint64_t i = 0; i < 10; ++i) more.push_back({500, fmt::format("{:032x}", i << 60)});
  const std::vector<bool> before = choose_held_out(facts, 0.3), after = choose_held_out(more, 0.3);
  Index moved = 0;
  for (std::size_t i = 0; i < facts.size(); ++i) moved += before[i] != after[i];
  EXPECT_LE(moved, 15);
}

TEST(HeldOut, leaves_documents_that_are_too_large_in_training) {
  const std::vector<DocumentFacts> facts{{1000, "a"}, {40, "b"}, {1000, "c"}, {30, "d"}};
  EXPECT_THAT(choose_held_out(facts, 0.05), ElementsAre(false, true, false, true));
  EXPECT_THAT(choose_held_out(std::span(facts).first(1), 0.05), ElementsAre(false));
}

TEST(Overlapping, drops_the_most_overlapping_first_and_no_more_than_necessary) {
  const std::vector<Overlap> held_out{{100, 10}, {100, 60}, {1000, 100}, {100, 90}, {50, 0}};
  EXPECT_THAT(choose_overlapping(held_out, 0.2),
              ElementsAre(false, false, false, false, false));  // 260 of 1350
  EXPECT_THAT(choose_overlapping(held_out, 0.17),
              ElementsAre(false, false, false, true, false));  // 170 of 1250
  EXPECT_THAT(choose_overlapping(held_out, 0.1), ElementsAre(false, true, false, true, false));
  EXPECT_THAT(choose_overlapping(held_out, 0), ElementsAre(true, true, true, true, false));
}

}  // namespace
}  // namespace difftape::run
