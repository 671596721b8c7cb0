#!/usr/bin/env bash
# Makes the corpora of the studies from Debian packages, which it downloads but does not install:
# data/corpus/{english,c}/train.bin, val/<domain>.bin and data/corpus/DIGESTS. Finished stages are
# kept, and a file gets its final name only when it is complete.
#   corpus.sh DIFFTAPE [--accept-versions]
# Exit codes: 64 usage; 65 another version, digest or content than the lock files say; 66 a package
# that is not available; 74 a file that cannot be written.
set -euo pipefail
export LC_ALL=C
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
locks=configs/corpora  # as messages name it
root=$(cd "$here/../.." && pwd)

# Corpus, domain, package, kind of text, its folder or file in the package, files, files left out
# (a regular expression of paths below the folder).
domains=(
  "english anarchism anarchism html usr/share/doc/anarchism/html *.html ^$"
  "english gcide dict-gcide gcide usr/share/dictd/gcide.dict.dz gcide ^$"
  "english linux-doc linux-doc-6.1 rest usr/share/doc/linux-doc-6.1/html/_sources *.txt ^translations/"
  "english perl-doc perl-doc pod usr/share/perl/5.36.0/pod *.pod ^$"
  "english python-doc python3.11-doc rest usr/share/doc/python3.11/html/_sources *.txt ^$"
  "c c linux-source-6.1 c usr/src/linux-source-6.1.tar.xz *.[ch] ^fs/nls/"  # nls: character tables
)
c_folders=(fs kernel mm net)  # of linux-source-6.1

say() { echo "corpus: $*"; }
fail() {  # CODE MESSAGE
  echo "corpus: ${*:2}" >&2
  exit "$1"
}
digest() { sha256sum "$@" | cut -d' ' -f1; }

accept=no
[ $# -ge 1 ] || fail 64 'usage: corpus.sh DIFFTAPE [--accept-versions]'
difftape=$(realpath "$1")
shift
for argument in "$@"; do
  [ "$argument" = --accept-versions ] ||
    fail 64 "the argument is '$argument', but must be --accept-versions; leave it out"
  accept=yes
done

out=$root/data/corpus
mkdir -p "$out"/{download,unpacked,stamps} 2>/dev/null ||
  fail 74 "$out cannot be made; make its folder writable, or check out into one that is"
cd "$out"
exec 9>stamps/running
flock -n 9 || fail 74 "$out is being made by another ./dev corpus; wait until it has ended"

# Succeeds if stage NAME was done with the inputs that KEY stands for.
is_done() { [ "$(cat "stamps/$1" 2>/dev/null)" = "$2" ]; }
set_done() { echo "$2" >"stamps/$1.new" && mv "stamps/$1.new" "stamps/$1"; }

# ---- packages ----

others=()  # packages of another version than the lock's, in words

# For PACKAGE, sets version and sha256 to the values to use and deb to its file, which is downloaded
# if it is missing.
download() {
  local package=$1 offered log=stamps/apt.log
  read -r _ version sha256 < <(grep "^$package " "$here/packages.lock") ||
    fail 65 "$locks/packages.lock has no line of $package; restore it with git"
  deb=download/${package}_$version.deb
  if [ -f "$deb" ] && [ "$(digest "$deb")" = "$sha256" ]; then return; fi
  offered=$(apt-cache policy "$package" 2>/dev/null | awk '$1 == "Candidate:" {print $2}') || true
  [[ -n $offered && $offered != '(none)' ]] ||
    fail 66 "$package is unknown to apt; run 'apt-get update' as root, then ./dev corpus again" \
      "(needs Debian 12)"
  if ! apt-cache show "$package=$version" >/dev/null 2>&1; then
    [ $accept = yes ] || fail 65 "$package is offered by apt as $offered, but must be $version" \
      "($locks/packages.lock); put that version's file, which snapshot.debian.org keeps, at" \
      "data/corpus/$deb, or run './dev corpus --accept-versions', whose result is not comparable"
    others+=("$package $offered instead of $version")
    version=$offered
    sha256=$(apt-cache show "$package=$version" | awk '$1 == "SHA256:" {print $2; exit}')
    deb=download/${package}_$version.deb
    if [ -f "$deb" ] && [ "$(digest "$deb")" = "$sha256" ]; then return; fi
  fi
  say "downloading $package $version"
  rm -rf download/new
  mkdir download/new
  (cd download/new && apt-get -q download "$package=$version") >$log 2>&1 || {
    sed 's/^/  /' $log >&2
    fail 66 "$package $version cannot be downloaded; check the network and the proxy of apt," \
      "then run ./dev corpus again: what is complete is kept"
  }
  local got
  got=$(digest download/new/*.deb)
  [ "$got" = "$sha256" ] || fail 65 "$package $version has the sha256 $got, but must have $sha256" \
    "($locks/packages.lock); the archive changed or the download is damaged: try again"
  mv download/new/*.deb "$deb"
  rmdir download/new
}

# Unpacks FOLDER of the package into unpacked/NAME.new.
unpack() {
  local name=$1 folder=$2 kind=$3
  local into=unpacked/$name.new
  rm -rf "$into"
  mkdir -p "$into"
  local levels=${folder//[^\/]/}
  case $kind in
    gcide) dpkg-deb --fsys-tarfile "$deb" | tar -xO "./$folder" | zcat >"$into/gcide" ;;
    c) dpkg-deb --fsys-tarfile "$deb" | tar -xO "./$folder" |
      tar -xJ -C "$into" --strip-components=1 "${c_folders[@]/#/${package}/}" ;;
    *) dpkg-deb --fsys-tarfile "$deb" |
      tar -x -C "$into" --strip-components=$((${#levels} + 2)) "./$folder" ;;
  esac
}

# ---- documents ----

packages=()  # "package version sha256" of each, as used
for row in "${domains[@]}"; do
  read -r corpus domain package kind folder pattern excluded <<<"$row"
  download "$package"
  packages+=("$package $version $sha256")
  if ! is_done "unpacked.$domain" "$sha256 $row"; then
    say "unpacking $package $version"
    unpack "$domain" "$folder" "$kind" || fail 74 "$package cannot be unpacked into" \
      "$out/unpacked, as told above; make space for 1 GB, then run ./dev corpus again"
    rm -rf "unpacked/$domain" "stamps/unpacked.$domain"
    mv "unpacked/$domain.new" "unpacked/$domain"
    set_done "unpacked.$domain" "$sha256 $row"
  fi
  key="$sha256 $(digest "$here/documents.pl") $row"
  if ! is_done "documents.$domain" "$key" || [ ! -f "$corpus/$domain.jsonl" ]; then
    say "stripping $domain to documents of plain text"
    mkdir -p "$corpus"
    find "unpacked/$domain" -type f -name "$pattern" -printf '%P\n' |
      { grep -Ev "$excluded" || true; } | sort |
      perl "$here/documents.pl" "$kind" "unpacked/$domain" >"$corpus/$domain.jsonl.new" ||
      fail 74 "the documents of $domain cannot be written, as told above; make space for 1 GB," \
        "then run ./dev corpus again"
    mv "$corpus/$domain.jsonl.new" "$corpus/$domain.jsonl"
    set_done "documents.$domain" "$key"
  fi
done

# ---- tokens ----

options=(--val-fraction 0.05 --drop-duplicates 0.3)
for corpus in english c; do
  key="$(sha256sum "$corpus"/*.jsonl | sha256sum) ${options[*]}"
  if ! is_done "tokens.$corpus" "$key"; then
    say "removing near-duplicates, splitting and writing the tokens of $corpus"
    rm -rf "$corpus/new" "stamps/tokens.$corpus"
    mkdir "$corpus/new"
    "$difftape" data prepare "$corpus"/*.jsonl --out "$corpus/new/train.bin" \
      --val-out "$corpus/new/val" "${options[@]}" | sed '/^$/,$d'  # the table of domains
    rm -rf "$corpus/val" "$corpus"/train.*
    mv "$corpus"/new/* "$corpus/"
    rmdir "$corpus/new"
    set_done "tokens.$corpus" "$key"
  fi
done

# ---- digests ----

sums='' differ=()  # corpora whose tokens are not those of the lock
for corpus in english c; do
  own=$(sha256sum "$corpus"/train.bin "$corpus"/val/*.bin)
  sums+=$own$'\n'
  if [ "$own" = "$(grep "  $corpus/" "$here/digests.lock" 2>/dev/null)" ]; then
    rm -f "$corpus/NOT_COMPARABLE"
  else
    differ+=("$corpus")
  fi
done
comparable=yes
if [ ${#differ[@]} -gt 0 ]; then
  comparable="no: ${differ[*]}: other digests than $locks/digests.lock"
  [ ${#others[@]} -eq 0 ] || comparable+=$(printf '; %s' "${others[@]}")
  for corpus in "${differ[@]}"; do echo "$comparable" >"$corpus/NOT_COMPARABLE"; done
fi
{
  printf '# package %s\n' "${packages[@]}"
  printf '# comparable: %s\n%s' "$comparable" "$sums"
} >DIGESTS.new
mv DIGESTS.new DIGESTS
say "data/corpus/{english,c}: train.bin, val/; digests in data/corpus/DIGESTS"
say "comparable: $comparable"
[ "$comparable" = yes ] || [ ${#others[@]} -gt 0 ] ||
  fail 65 "${differ[*]}: the tokens differ from $locks/digests.lock though the packages are the" \
    "same; restore configs/corpora with git, remove $out/stamps and try again"
