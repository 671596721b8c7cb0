#!/usr/bin/env bash
# bare_debian.sh TARGET [MMDEBSTRAP_OPTION ...]: makes a bare Debian 12 in TARGET, which may be
# /dev/null for a system that only hooks use. Takes over the proxy and date-check settings of this
# machine's apt. Needs mmdebstrap, root or user namespaces, and a Debian mirror (MIRROR; empty:
# mmdebstrap's default).
set -euo pipefail
target=$1
shift
settings=$(apt-config dump | grep -E '^Acquire::(https?::([^ ]*::)?Proxy|Check-[^ ]*) "[^"]' || true)
for scheme in http https; do
  proxy=${scheme}_proxy
  [ -z "${!proxy:-}" ] || settings+=$'\n'"Acquire::$scheme::Proxy \"${!proxy}\";"
done
exec mmdebstrap --variant=apt ${settings:+--aptopt="$settings"} "$@" bookworm "$target" \
  ${MIRROR:+"$MIRROR"}
