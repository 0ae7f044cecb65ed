#!/bin/sh
# Prints where the LiveKit server of the tests lies; builds it first (some three minutes) where there is none of this
# version. It is kept among Go's binaries, outside of the clone.
set -eu

version=v1.13.5

if ! command -v go >/dev/null 2>&1; then
    echo "The tests of LiveKit rooms build livekit-server $version: install Go 1.21 or later (https://go.dev/dl)." >&2
    exit 1
fi
bin="$(go env GOPATH)/bin"
server="$bin/livekit-server-$version"
if [ ! -x "$server" ]; then
    echo "Building livekit-server $version, once; this takes some minutes" >&2
    mkdir -p "$bin"
    # In a folder of its own: the program is called "server", and two builds may run at once.
    build="$(mktemp -d "$bin/.livekit-build.XXXXXX")"
    trap 'rm -rf "$build"' EXIT
    GOBIN="$build" go install "github.com/livekit/livekit-server/cmd/server@$version" >&2
    mv "$build/server" "$server"
fi
echo "$server"
