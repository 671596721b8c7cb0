#!/usr/bin/env bash
# test_deb.sh PACKAGE.deb: installs the package in a bare Debian 12 that is made for it and thrown
# away, uses it as a user would, and removes it again. bare_debian.sh says what it needs.
set -euo pipefail
package=$(readlink -f "$1")
here=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
"$here/bare_debian.sh" /dev/null \
  --customize-hook="copy-in $package $here/in_debian.sh /root" \
  --customize-hook="chroot \"\$1\" bash /root/in_debian.sh /root/$(basename "$package")"
echo "test_deb: $(basename "$package") passed"
