#!/usr/bin/env bash
# Makes the kernel run programs of another machine by qemu, in containers too. Usage: emulation.sh MACHINE   (aarch64, x86_64)
# Does nothing where it does already, or where the engine runs in a machine of its own, as on macOS.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
. "$here/paths.sh"

[ "$(uname)" = Linux ] || exit 0
formats=${HERDKEEPER_BINFMT:-/proc/sys/fs/binfmt_misc}
# F: the kernel holds qemu open, so containers need none of their own
registered() { grep -qsx enabled "$formats/qemu-$1" && grep -qs '^flags:.*F' "$formats/qemu-$1"; }
if registered "$1"; then exit; fi
if is_debian_root; then
  "$here/apt.sh" "qemu-$1-static=qemu-user-static" update-binfmts=binfmt-support
  [ -e "$formats/register" ] || mount -t binfmt_misc binfmt_misc "$formats" || true
  update-binfmts --enable "qemu-$1" >&2 || true
fi
registered "$1" || fail "this kernel runs no programs for $1: install qemu-user-static and binfmt-support (Debian's names; the kernel needs CONFIG_BINFMT_MISC), or build on such a machine"
say "programs for $1 run by qemu"
