#!/usr/bin/env bash
# Makes small packages in the current folder, with the names and layouts that ./dev corpus reads and
# random words, version 1-1: archive/PACKAGE_1-1.deb, and their packages.lock.
set -euo pipefail
doc=usr/share/doc
html=tree/anarchism/$doc/anarchism/html
linux=tree/linux-doc-6.1/$doc/linux-doc-6.1/html/_sources
python=tree/python3.11-doc/$doc/python3.11/html/_sources
perl=tree/perl-doc/usr/share/perl/5.36.0/pod
dictionary=tree/dict-gcide/usr/share/dictd
source=tree/linux-source-6.1/usr/src
mkdir -p archive "$html" "$linux/translations" "$python" "$perl" "$dictionary" "$source"
folder=linux-source-6.1/fs
mkdir -p $folder/{1..60} linux-source-6.1/{net,mm,kernel}
awk -v html="$html" -v linux="$linux" -v python="$python" -v perl="$perl" -v c="$folder" '
  function words(n, indent, file,   word, k) {
    for (; n > 0; --n) {
      word = ""
      for (k = 2 + 6 * rand(); k > 0; --k) word = word sprintf("%c", 97 + 26 * rand())
      printf "%s%s%s", n % 10 == 0 ? indent : "", word, n % 10 == 1 ? "\n" : " " >file
    }
    print "" >file
  }
  BEGIN {
    srand(1)
    for (i = 1; i <= 60; ++i) {
      print "<h2>Section</h2><p>" >(html "/a.html")
      words(100, "", html "/a.html")
      words(100, "", linux "/" i ".rst.txt")
      words(100, "", python "/" i ".rst.txt")
      print "=head1 NAME\n" >(perl "/" i ".pod")
      words(100, "", perl "/" i ".pod")
      print "Word" i " \\Word" i "\\, n." >"gcide"
      words(6000, "   ", "gcide")
      words(100, "", c "/" i "/a.c")
      words(100, "", c "/" i "/b.h")
    }
  }'
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
