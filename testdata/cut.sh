#!/usr/bin/env bash
# Cuts the cores in dumps/ anew out of the recorded dumps they were made of:
#
#   testdata/cut.sh CORPUS IMAGES
#
# CORPUS is the folder of the recorded dumps (*.zst), IMAGES a plain tree of the
# image files they name; debug files of this machine are used if they are of the
# same build. Afterwards `go test ./cmd/seam -run Fixtures -update`
# writes want.txt, whose change is to be read.
set -euo pipefail
corpus=$(realpath "$1") images=$(realpath "$2")
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/seam" ./cmd/seam
while read -r name dump; do
  mkdir -p "testdata/dumps/$name"
  echo "$name: $("$work/seam" trim "$corpus/$dump" "testdata/dumps/$name/core.zst" --images "$images")"
  sum=$(sha256sum <"testdata/dumps/$name/core.zst" | cut -d' ' -f1)
  sed -i "s/sha256 \`[0-9a-f]*\`/sha256 \`$sum\`/" "testdata/dumps/$name/README.md"
done <<'LIST'
net10-hello net10-hello-x64/normal.zst
net10-busy-a net10-busy-x64/a/dump.zst
net10-busy-b net10-busy-x64/b/dump.zst
net10-scenarios net10-scenarios-x64/normal.zst
net10-singlefile net10-singlefile-x64/normal.zst
net10-r2r net10-r2r-x64/normal.zst
net10-crash-kernel net10-crash-native-kernel-x64/kernel.zst
net10-crash-unhandled net10-crash-unhandled-x64/mini.zst
net10-hello-arm64 net10-hello-arm64/dump.zst
net9-transitions net9-transitions-x64/dump.zst
net8-seeds net8-seeds-x64/dump.zst
LIST
