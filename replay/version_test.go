package replay_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"log/slog"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// ofVersion is an encoded state with another version in its header, which is
// sealed again as checkpoint's drawing says.
func ofVersion(blob []byte, version uint16) []byte {
	b := bytes.Clone(blob)
	binary.LittleEndian.PutUint16(b[4:], version)
	binary.LittleEndian.PutUint32(b[12:], crc32.Checksum(b[:12], crc32.MakeTable(crc32.Castagnoli)))
	return b
}

// TestOtherVersionIsRebuilt: a checkpoint that this version does not read, of an
// older or a newer one, is rebuilt by replay from the one before it.
func TestOtherVersionIsRebuilt(t *testing.T) {
	for _, version := range []uint16{0, checkpoint.Version + 1} {
		st, err := store.Open("s", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		log, err := st.Create(0)
		if err != nil {
			t.Fatal(err)
		}
		live := replay.New(20, 5, 100)
		write := func(from int) {
			for i := from; i < from+20; i++ {
				line := fmt.Appendf(nil, "\x1b[3%dmline %d\r\n", i%8, i)
				log.Append(store.Output, store.Time{}, line)
				live.Feed(line)
			}
		}
		log.AppendCheckpoint(checkpoint.Encode(nil, live.State()), true)
		write(0)
		log.AppendCheckpoint(ofVersion(checkpoint.Encode(nil, live.State()), version), true)
		write(20)
		got, err := replay.Hydrate(log, log.End())
		if err != nil {
			t.Fatalf("version %d: %v", version, err)
		}
		if !bytes.Equal(checkpoint.Encode(nil, got.State()), checkpoint.Encode(nil, live.State())) {
			t.Errorf("version %d: the state differs", version)
		}
	}
}
