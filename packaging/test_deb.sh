#!/usr/bin/env bash
# test_deb.sh PACKAGE.deb: installs the package in a bare Debian 12 that is made for it and thrown
# away, uses it as a user would, and removes it again. Needs mmdebstrap, root or user namespaces, and
# a Debian mirror (MIRROR; empty: that of mmdebstrap).
set -euo pipefail
package=$(readlink -f "$1")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
mmdebstrap --variant=apt \
  --customize-hook="copy-in $package $here/in_debian.sh /root" \
  --customize-hook="chroot \"\$1\" bash /root/in_debian.sh /root/$(basename "$package")" \
  bookworm /dev/null ${MIRROR:+"$MIRROR"}
echo "test_deb: $(basename "$package") passed"
