#!/usr/bin/env bash
# Makes in the current folder small packages of the names and layouts that ./dev corpus reads, of
# words drawn by awk, version 1-1: archive/PACKAGE_1-1.deb, and their packages.lock.
set -euo pipefail
words() {  # SEED NUMBER
  awk -v seed="$1" -v n="$2" 'BEGIN { srand(seed); for (i = 0; i < n; ++i) {
    word = ""; for (k = 2 + 6 * rand(); k > 0; --k) word = word sprintf("%c", 97 + 26 * rand())
    printf "%s%s", word, i % 10 == 9 ? "\n" : " " } print "" }'
}
doc=usr/share/doc
html=tree/anarchism/$doc/anarchism/html
linux=tree/linux-doc-6.1/$doc/linux-doc-6.1/html/_sources
python=tree/python3.11-doc/$doc/python3.11/html/_sources
perl=tree/perl-doc/usr/share/perl/5.36.0/pod
dictionary=tree/dict-gcide/usr/share/dictd
source=tree/linux-source-6.1/usr/src
mkdir -p archive "$html" "$linux/translations" "$python" "$perl" "$dictionary" "$source"
for i in {1..60}; do
  { echo '<h2>Section</h2><p>'; words "1$i" 100; } >>"$html/a.html"
  words "2$i" 100 >"$linux/$i.rst.txt"
  words "3$i" 100 >"$python/$i.rst.txt"
  { echo '=head1 NAME'; echo; words "4$i" 100; } >"$perl/$i.pod"
  { echo "Word$i \\Word$i\\, n."; words "5$i" 6000 | sed 's/^/   /'; echo; } >>gcide
  folder=linux-source-6.1/fs/$i
  mkdir -p "$folder" linux-source-6.1/{net,mm,kernel}
  words "6$i" 100 >"$folder/a.c"
  words "7$i" 100 >"$folder/b.h"
done
echo 'in other words' >"$linux/translations/a.rst.txt"
gzip -n <gcide >"$dictionary/gcide.dict.dz"
tar -cJf "$source/linux-source-6.1.tar.xz" linux-source-6.1
for each in tree/*; do
  package=${each##*/}
  mkdir "$each/DEBIAN"
  printf 'Package: %s\nVersion: 1-1\nArchitecture: all\nMaintainer: a <a@b.c>\nDescription: a\n' \
    "$package" >"$each/DEBIAN/control"
  dpkg-deb -Zgzip --root-owner-group --build "$each" "archive/${package}_1-1.deb" >/dev/null
  echo "$package 1-1 $(sha256sum "archive/${package}_1-1.deb" | cut -d' ' -f1)" >>packages.lock
done
