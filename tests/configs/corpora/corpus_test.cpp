// ./dev corpus without a network: small packages stand in for Debian's, and scripts for apt.
#include "tests/train/app/program.h"

namespace difftape::test {
namespace {

const fs::path kRoot = DIFFTAPE_TEST_SOURCE_DIR;
const fs::path kCorpora = kRoot / "configs/corpora", kHere = kRoot / "tests/configs/corpora";

Outcome shell(const std::string& script, const fs::path& directory) {
  return run({"-ec", script}, {.directory = directory, .program = "/bin/bash"});
}

/// A copy of configs/corpora whose lock has the small packages, and apt's stand-ins.
struct Corpus : testing::Test {
  static void SetUpTestSuite() {
    packages_ = std::make_unique<ScratchDir>();
    packed_ = shell((kHere / "packages.sh").string(), packages_->path());
  }
  static void TearDownTestSuite() { packages_.reset(); }

  void SetUp() override {  // CTest takes a failure in SetUpTestSuite for a skipped test
    ASSERT_EQ(packed_.exit, 0) << packed_.err;
    fs::create_directories(dir_ / "configs/corpora");
    fs::create_directories(dir_ / "bin");
    for (const char* name : {"corpus.sh", "documents.pl"}) {
      fs::copy(kCorpora / name, dir_ / "configs/corpora");
    }
    fs::copy(*packages_ / "packages.lock", dir_ / "configs/corpora");
    fs::copy(*packages_ / "archive", dir_ / "archive");
    for (const char* name : {"apt-get", "apt-cache"}) {
      fs::copy(kHere / "apt.sh", dir_ / "bin" / name);
    }
  }

  Outcome make(const std::vector<std::string>& arguments = {}) const {
    const std::string path = (dir_ / "bin").string() + ":" + getenv("PATH");
    return run(
        joined({(dir_ / "configs/corpora/corpus.sh").string(), DIFFTAPE_TEST_PROGRAM}, arguments),
        {.directory = dir_.path(), .program = "/bin/bash", .environment = {{"PATH", path}}});
  }
  /// Makes the digests of what was made the expected ones.
  void lock_digests() const {
    const Outcome lock =
        shell("grep -v '^#' data/corpus/DIGESTS >configs/corpora/digests.lock", dir_.path());
    ASSERT_EQ(lock.exit, 0) << lock.err;
  }
  fs::path made(const std::string& name) const { return dir_.path() / "data/corpus" / name; }

  static inline std::unique_ptr<ScratchDir> packages_;
  static inline Outcome packed_;
  ScratchDir dir_;
};

TEST_F(Corpus, is_made_of_packages_and_compared_with_the_digests_of_the_lock) {
  const Outcome first = make();
  EXPECT_EQ(first.exit, 65) << "no digests are locked";
  EXPECT_THAT(first.err,
              HasSubstr("english c: the tokens differ from configs/corpora/digests.lock"));
  EXPECT_TRUE(fs::exists(made("english/NOT_COMPARABLE")));
  for (const char* name : {"english/val/anarchism.bin", "english/val/gcide.bin", "c/val/c.bin",
                           "english/val/linux-doc.bin", "english/val/perl-doc.bin",
                           "english/val/python-doc.bin", "english/train.bin", "c/train.bin"}) {
    EXPECT_TRUE(fs::exists(made(name))) << name;
    EXPECT_GT(fs::file_size(made(name)), 200) << name;
  }
  EXPECT_THAT(contents(made("english/linux-doc.jsonl")), Not(HasSubstr("in other words")));
  lock_digests();
  const Outcome second = make();
  EXPECT_EQ(second.exit, 0) << second.err;
  EXPECT_THAT(second.out, AllOf(HasSubstr("comparable: yes"), Not(HasSubstr("unpacking")),
                                Not(HasSubstr("stripping")), Not(HasSubstr("removing"))));
  EXPECT_FALSE(fs::exists(made("english/NOT_COMPARABLE")));
  EXPECT_THAT(contents(made("DIGESTS")),
              AllOf(HasSubstr("# package dict-gcide 1-1 "), HasSubstr("  c/val/c.bin\n")));
}

TEST_F(Corpus, resumes_after_an_interruption_to_the_same_tokens) {
  make();
  lock_digests();
  put(dir_ / "archive/down", "");
  fs::remove_all(made("stamps"));  // nothing is known to be complete but the downloads
  put(made("english/gcide.jsonl"), "{\"te");
  put(made("unpacked/perl-doc/broken.pod"), "=head1 cut of");
  const Outcome again = make();
  EXPECT_EQ(again.exit, 0) << again.out << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("unpacking perl-doc 1-1"), HasSubstr("comparable: yes"),
                               Not(HasSubstr("downloading"))));
}

TEST_F(Corpus, without_a_network_names_the_missing_package_and_keeps_the_others) {
  make();
  lock_digests();
  fs::remove(made("download/perl-doc_1-1.deb"));
  put(made("download/python3.11-doc_1-1.deb"), "half a package");
  put(dir_ / "archive/down", "");
  EXPECT_THAT(test::error(66, make()),
              AllOf(HasSubstr("E: Failed to fetch perl-doc=1-1"),
                    HasSubstr("perl-doc 1-1 cannot be downloaded; check the network")));
  fs::remove(dir_ / "archive/down");
  const Outcome again = make();
  EXPECT_EQ(again.exit, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("downloading perl-doc"), Not(HasSubstr("stripping")),
                               HasSubstr("downloading python3.11-doc"),
                               Not(HasSubstr("downloading anarchism"))));
}

TEST_F(Corpus, of_another_version_is_an_error_that_names_both_or_not_comparable) {
  make();
  lock_digests();
  fs::remove_all(made("download"));
  fs::remove(made("DIGESTS"));
  const Outcome packed = shell(
      "dpkg-deb -R perl-doc_1-1.deb new; rm perl-doc_1-1.deb new/usr/share/perl/*/pod/1*.pod;"
      "dpkg-deb -Zgzip --build new perl-doc_2-7.deb",
      dir_ / "archive");
  ASSERT_EQ(packed.exit, 0) << packed.err;
  EXPECT_THAT(test::error(65, make()),
              AllOf(HasSubstr("perl-doc is offered by apt as 2-7, but must be 1-1"),
                    HasSubstr("./dev corpus --accept-versions")));
  EXPECT_FALSE(fs::exists(made("DIGESTS")));
  const Outcome accepted = make({"--accept-versions"});
  EXPECT_EQ(accepted.exit, 0) << accepted.err;
  EXPECT_THAT(accepted.out, HasSubstr("; perl-doc 2-7 instead of 1-1"));
  EXPECT_EQ(contents(made("english/NOT_COMPARABLE")),
            "no: english: other digests than configs/corpora/digests.lock; "
            "perl-doc 2-7 instead of 1-1\n");
  EXPECT_FALSE(fs::exists(made("c/NOT_COMPARABLE")));
  EXPECT_THAT(contents(made("DIGESTS")), HasSubstr("\n# comparable: no: english: "));
}

TEST_F(Corpus, of_a_package_with_another_digest_is_an_error_even_if_versions_are_accepted) {
  put(dir_ / "archive/anarchism_1-1.deb", "something else");
  const Outcome outcome = make({"--accept-versions"});
  EXPECT_EQ(outcome.exit, 65);
  EXPECT_THAT(outcome.err, HasSubstr("anarchism 1-1 has the sha256 "));
  EXPECT_THAT(outcome.err, HasSubstr(", but must have "));
}

TEST_F(Corpus, of_packages_that_apt_does_not_know_asks_for_its_lists) {
  fs::remove(dir_ / "archive/anarchism_1-1.deb");
  const Outcome outcome = make();
  EXPECT_EQ(outcome.exit, 66);
  EXPECT_THAT(outcome.err, HasSubstr("anarchism is unknown to apt; run 'apt-get update' as root"));
  EXPECT_THAT(outcome.out, IsEmpty());
}

TEST_F(Corpus, takes_no_other_argument) {
  EXPECT_THAT(test::error(64, make({"--force"})),
              HasSubstr("the argument is '--force', but must be --accept-versions; leave it out"));
}

}  // namespace
}  // namespace difftape::test
