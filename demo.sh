#!/bin/sh
# The story of looptape on a real program: a build in a pane, every byte in the
# log, rows and stream read back, the daemon killed and started again, the pane
# restored from the log. Everything happens in a directory that is removed.
#
#	sh demo.sh path/to/looptape
set -eu
looptape=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
LOOPTAPE_DIR=$(mktemp -d)/state
LOOPTAPE_TOKEN=@owner
export LOOPTAPE_DIR LOOPTAPE_TOKEN
looptape() { "$looptape" "$@"; }
daemon() { looptape doctor --json | jq .pid; }
gone() { while kill -0 "$1" 2>/dev/null; do sleep 0.05; done; }
clean() {
	pid=$(daemon 2>/dev/null) && kill "$pid" && gone "$pid"
	rm -rf "$(dirname "$LOOPTAPE_DIR")"
}
trap clean EXIT

step() { printf '\n\033[1m# %s\033[0m\n' "$1"; }
show() { printf '\033[2m$ looptape %s\033[0m\n' "$*"; looptape "$@"; }
fail() { printf '\nThe demo went wrong: %s\n' "$1" >&2; exit 1; }

step 'Record a build: run starts the daemon, and prints the id of the pane'
show run --cols 100 --rows 12 -- go vet -x ./cmd/internal/manifest
pane=p0
until [ "$(looptape pane get --pane $pane --json | jq -r .state)" = exited ]; do sleep 0.1; done
looptape pane get --pane $pane --json | jq -c '{state, exit, offset, durable, epoch}'

step 'The newest rows of its scrollback, by absolute number'
show pane capture-rows --pane $pane --tail 5 | cut -c1-100
looptape pane capture-rows --pane $pane --json >"$LOOPTAPE_DIR/before.json"

step 'The stream from its first byte: two lines, and a cursor to go on from'
show pane capture-since --pane $pane --since 0 --max-lines 2 2>&1 | cut -c1-100
cursor=$(looptape pane capture-since --pane $pane --since 0 --max-lines 2 --json | jq -r .cursor)

step 'A program that never ends, recorded when the power goes: kill -9 the daemon'
show run -- sh -c 'i=1; while :; do echo "line $i"; i=$((i+1)); done'
sleep 1
durable=$(looptape pane get --pane p1 --json | jq .durable)
echo "durable so far: $durable bytes"
pid=$(daemon)
kill -9 "$pid"
gone "$pid"
looptape pane list 2>&1 || true

step 'A new daemon finds both panes, as archives'
looptape run -- true >/dev/null
show pane list

step 'The build, restored from the log: the same rows, in a new epoch'
looptape pane capture-rows --pane $pane --json >"$LOOPTAPE_DIR/after.json"
[ "$(jq -c .lines "$LOOPTAPE_DIR/before.json")" = "$(jq -c .lines "$LOOPTAPE_DIR/after.json")" ] || fail 'the rows differ'
echo "$(jq '.lines | length' "$LOOPTAPE_DIR/after.json") rows are equal; epoch $(jq .epoch "$LOOPTAPE_DIR/before.json") is now $(jq .epoch "$LOOPTAPE_DIR/after.json")"

step 'The cursor from before goes on where it was'
looptape pane capture-since --cursor "$cursor" --max-lines 1 --json | jq -c '{from, offset, missed}'

step 'The endless program: an exact prefix of what it wrote, and not a byte less than was durable'
looptape pane export --pane p1 --format raw >"$LOOPTAPE_DIR/raw"
size=$(wc -c <"$LOOPTAPE_DIR/raw")
[ "$size" -ge "$durable" ] || fail "$size bytes are there, $durable were durable"
lines=$(($(tr -d '\r' <"$LOOPTAPE_DIR/raw" | wc -l) + 1))
i=1; while [ $i -le $lines ]; do echo "line $i"; i=$((i+1)); done | sed 's/$/\r/' | head -c "$size" | cmp - "$LOOPTAPE_DIR/raw" || fail 'the bytes differ'
echo "$size bytes, $lines lines, byte for byte"

step 'And out of the house: a transcript, and a recording to play'
looptape pane export --pane $pane | head -n 3 | cut -c1-100
looptape pane export --pane $pane --format asciicast | head -n 2 | cut -c1-100
printf '\nDone.\n'
