// ./dev corpus without a network: small packages stand in for Debian's, and scripts for apt.
#include <gmock/gmock.h>

#include <sstream>

#include "tests/support/scratch.h"
#include "tests/train/app/program.h"

namespace difftape::test {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

const fs::path kCorpora = DIFFTAPE_TEST_SOURCE_DIR "/configs/corpora";

std::string shell(const std::string& script, const fs::path& directory) {
  const Outcome outcome = run({"-ec", script}, {.directory = directory, .program = "/bin/bash"});
  EXPECT_EQ(outcome.exit, 0) << script << outcome.out << outcome.err;
  return outcome.out;
}

/// An archive of packages as apt sees it: archive/PACKAGE_VERSION.deb; none while archive/down is
/// there, though apt still knows them.
const std::string kApt = R"(#!/bin/bash
archive=$(dirname "$0")/../archive
file() { echo "$archive/${1/=/_}.deb"; }
case $1 in
  policy) for each in "$archive/$2"_*.deb; do
      [ ! -f "$each" ] || { each=${each##*_}; echo "  Candidate: ${each%.deb}"; }
    done ;;
  show) [ -f "$(file "$2")" ] && echo "SHA256: $(sha256sum "$(file "$2")" | cut -d' ' -f1)" ;
;
  -q) [ ! -f "$archive/down" ] || {
    echo "E: Failed to fetch $3";
    exit 100;
  }
  cp "$(file " $3 ")".;
  ;
esac
)";

/// Files of the six packages below tree/PACKAGE, of words drawn by awk, and a .deb of each.
const std::string kPackages = R"(
words() {  # SEED NUMBER
  awk -v seed="$1" -v n="$2" 'BEGIN { srand(seed); for (i = 0; i < n; ++i) {
    word = ""; for (k = 2 + 6 * rand(); k > 0; --k) word = word sprintf("%c", 97 + 26 * rand())
    printf "%s%s", word, i % 10 == 9 ? "\n" : " " } print "" }'
}
doc=usr/share/doc
mkdir -p archive tree/{anarchism/$doc/anarchism/html,dict-gcide/usr/share/dictd} \
  tree/linux-doc-6.1/$doc/linux-doc-6.1/html/_sources/translations \
  tree/python3.11-doc/$doc/python3.11/html/_sources tree/perl-doc/usr/share/perl/5.36.0/pod \
  tree/linux-source-6.1/usr/src
for i in {1..60}; do
  words "1$i" 100 >page
  { echo '<h2>Section</h2><p>'; cat page; } >>tree/anarchism/$doc/anarchism/html/a.html
  words "2$i" 100 >tree/linux-doc-6.1/$doc/linux-doc-6.1/html/_sources/$i.rst.txt
  words "3$i" 100 >tree/python3.11-doc/$doc/python3.11/html/_sources/$i.rst.txt
  { echo '=head1 NAME'; echo; words "4$i" 100; } >tree/perl-doc/usr/share/perl/5.36.0/pod/$i.pod
  { echo "Word$i \\Word$i\\, n."; words "5$i" 6000 | sed 's/^/   /'; echo; } >>gcide
  mkdir -p linux-source-6.1/{fs,net,mm,kernel}/$i
  words "6$i" 100 >linux-source-6.1/fs/$i/a.c
  words "7$i" 100 >linux-source-6.1/fs/$i/b.h
done
echo 'in other words' >tree/linux-doc-6.1/$doc/linux-doc-6.1/html/_sources/translations/a.rst.txt
gzip -n <gcide >tree/dict-gcide/usr/share/dictd/gcide.dict.dz
tar -cJf tree/linux-source-6.1/usr/src/linux-source-6.1.tar.xz linux-source-6.1
for each in tree/*; do
  package=${each##*/}
  mkdir "$each/DEBIAN"
  printf 'Package: %s\nVersion: 1-1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: a\n' \
    "$package" >"$each/DEBIAN/control"
  dpkg-deb -Zgzip --root-owner-group --build "$each" "archive/${package}_1-1.deb" >/dev/null
  echo "$package 1-1 $(sha256sum "archive/${package}_1-1.deb" | cut -d' ' -f1)" >>packages.lock
done
)";

/// A copy of configs/corpora whose lock has the small packages, and apt's stand-ins.
class Corpus : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    packages_ = std::make_unique<ScratchDir>();
    shell(kPackages, packages_->path());
  }
  static void TearDownTestSuite() { packages_.reset(); }

  Corpus() {
    fs::create_directories(dir_ / "configs/corpora");
    fs::create_directories(dir_ / "bin");
    for (const char* name : {"corpus.sh", "documents.pl"}) {
      fs::copy(kCorpora / name, dir_ / "configs/corpora");
    }
    fs::copy(*packages_ / "packages.lock", dir_ / "configs/corpora");
    fs::copy(*packages_ / "archive", dir_ / "archive");
    for (const char* name : {"apt-get", "apt-cache"}) {
      put(dir_ / "bin" / name, kApt);
      fs::permissions(dir_ / "bin" / name, fs::perms::owner_all);
    }
  }

  Outcome make(const std::vector<std::string>& arguments = {}) const {
    std::vector<std::string> all{(dir_ / "configs/corpora/corpus.sh").string(),
                                 DIFFTAPE_TEST_PROGRAM};
    all.insert(all.end(), arguments.begin(), arguments.end());
    const std::string path = (dir_ / "bin").string() + ":" + getenv("PATH");
    return run(all,
               {.directory = dir_.path(), .program = "/bin/bash", .environment = {{"PATH", path}}});
  }
  /// Makes the digests of what was made the expected ones.
  void lock_digests() const {
    shell("grep -v '^#' data/corpus/DIGESTS >configs/corpora/digests.lock", dir_.path());
  }
  fs::path made(const std::string& name) const { return dir_.path() / "data/corpus" / name; }

  static inline std::unique_ptr<ScratchDir> packages_;
  ScratchDir dir_;
};

TEST_F(Corpus, is_made_of_packages_and_compared_with_the_digests_of_the_lock) {
  const Outcome first = make();
  EXPECT_EQ(first.exit, 65) << "no digests are locked";
  EXPECT_THAT(first.err, HasSubstr("the tokens differ from configs/corpora/digests.lock"));
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

TEST_F(Corpus, goes_on_where_it_stopped_to_the_same_tokens) {
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

TEST_F(Corpus, without_a_network_says_which_package_is_missing_and_keeps_the_others) {
  make();
  lock_digests();
  fs::remove(made("download/perl-doc_1-1.deb"));
  put(made("download/python3.11-doc_1-1.deb"), "half a package");
  put(dir_ / "archive/down", "");
  const Outcome outcome = make();
  EXPECT_EQ(outcome.exit, 66);
  EXPECT_THAT(outcome.err,
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
  fs::rename(dir_ / "archive/perl-doc_1-1.deb", dir_ / "archive/perl-doc_2-7.deb");
  const Outcome refused = make();
  EXPECT_EQ(refused.exit, 65);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("perl-doc is offered by apt as 2-7, but must be 1-1"),
                                 HasSubstr("./dev corpus --accept-versions")));
  EXPECT_FALSE(fs::exists(made("DIGESTS")));
  const Outcome accepted = make({"--accept-versions"});
  EXPECT_EQ(accepted.exit, 0) << accepted.err;
  EXPECT_THAT(accepted.out, HasSubstr("comparable: no: perl-doc 2-7 instead of 1-1"));
  EXPECT_EQ(contents(made("english/NOT_COMPARABLE")), "no: perl-doc 2-7 instead of 1-1\n");
  EXPECT_THAT(contents(made("DIGESTS")),
              HasSubstr("# comparable: no: perl-doc 2-7 instead of 1-1"));
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
  const Outcome outcome = make({"--force"});
  EXPECT_EQ(outcome.exit, 64);
  EXPECT_THAT(outcome.err,
              HasSubstr("the argument is '--force', but must be --accept-versions; leave it out"));
}

}  // namespace
}  // namespace difftape::test
