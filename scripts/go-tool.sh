#!/bin/sh
# Prints where a Go program of the tests lies, and builds it first where there is none of this version (livekit-server:
# some three minutes, once): go-tool.sh livekit-server|compose-spec. Built ones are kept among Go's binaries, outside of
# the clone.
set -eu

case "${1:-}" in
    livekit-server) package=github.com/livekit/livekit-server/cmd/server; version=v1.13.5 ;;
    compose-spec) package=github.com/compose-spec/compose-go/v2/cmd; version=v2.16.2 ;;
    *) echo "usage: $0 livekit-server|compose-spec" >&2; exit 2 ;;
esac

if ! command -v go >/dev/null 2>&1; then
    echo "The tests build $1 $version with Go: install Go 1.21 or later." >&2
    exit 1
fi
bin="$(go env GOPATH)/bin"
program="$bin/$1-$version"
if [ ! -x "$program" ]; then
    echo "Building $1 $version, once; this may take some minutes" >&2
    mkdir -p "$bin"
    # In a folder of its own: Go names the program after its folder, and two builds may run at once.
    build="$(mktemp -d "$bin/.$1.XXXXXX")"
    trap 'rm -rf "$build"' EXIT
    GOBIN="$build" go install "$package@$version" >&2
    mv "$build/${package##*/}" "$program"
fi
echo "$program"
