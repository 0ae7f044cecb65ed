#!/bin/sh
# Installs the system packages that one of `make`'s targets needs and that are missing: system-packages.sh test|python
set -eu

missing=""

library() {  # library SONAME PACKAGE
    ldconfig -p 2>/dev/null | grep -q "$1" || missing="$missing $2"
}

program() {  # program NAME PACKAGE...
    command -v "$1" >/dev/null 2>&1 && return
    shift
    missing="$missing $*"
}

PATH="$PATH:/sbin:/usr/sbin"
case "$1" in
    python)
        "${PYTHON:-python3}" -c 'import ensurepip, venv' 2>/dev/null || missing="$missing python3-venv" ;;
    test)
        library libflite.so.1 libflite1
        program flite flite
        program chromium chromium
        program sipp sip-tester
        program baresip baresip-core
        program node nodejs npm
        program npm npm ;;
    *)
        echo "usage: $0 test|python" >&2; exit 2 ;;
esac
[ -z "$missing" ] && exit 0

as_root=""
if [ "$(id -u)" != 0 ]; then
    as_root=sudo
fi
if ! command -v apt-get >/dev/null 2>&1 || { [ -n "$as_root" ] && ! command -v sudo >/dev/null 2>&1; }; then
    echo "Duologue needs these system packages (Debian's names):$missing" >&2
    echo "Install them with your package manager, then try again." >&2
    exit 1
fi
echo "Installing system packages:$missing"
$as_root apt-get update -qq
# shellcheck disable=SC2086 # one word a package
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
