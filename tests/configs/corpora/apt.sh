#!/usr/bin/env bash
# Stands in for apt-get and apt-cache before an archive of packages, ../archive/PACKAGE_VERSION.deb;
# while ../archive/down is there, they are known, but cannot be downloaded.
set -euo pipefail
archive=$(dirname "$0")/../archive
file() { echo "$archive/${1/=/_}.deb"; }
case $1 in
  policy)  # PACKAGE
    for each in "$archive/$2"_*.deb; do
      [ -f "$each" ] || continue
      each=${each##*_}
      echo "  Candidate: ${each%.deb}"
    done
    ;;
  show)  # PACKAGE=VERSION
    [ -f "$(file "$2")" ]
    echo "SHA256: $(sha256sum "$(file "$2")" | cut -d' ' -f1)"
    ;;
  -q)  # download PACKAGE=VERSION
    [ ! -f "$archive/down" ] || { echo "E: Failed to fetch $3"; exit 100; }
    cp "$(file "$3")" .
    ;;
esac
