package replay_test

import (
	"fmt"
	"log/slog"
	"testing"

	"looptape/checkpoint"
	"looptape/replay"
	"looptape/store"
)

// TestHydrateLinks: a history at its limit of bytes, in which neighbours have the same
// hyperlink that was interned twice, is made again of a whole state and those behind it
// as it was.
func TestHydrateLinks(t *testing.T) {
	const cols, pairs = 30000, 4000
	st, err := store.Open("s", store.Options{FS: store.MemFS(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	log, err := st.Create(0)
	if err != nil {
		t.Fatal(err)
	}
	live := replay.New(cols, 2, 1000)
	log.AppendCheckpoint(checkpoint.Encode(nil, live.State()), true)
	since := uint64(0)
	write := func(b []byte) {
		log.Append(store.Output, store.Time{}, b)
		live.Feed(b)
	}
	for y := range 115 {
		// Two cells of one link, the second in some rows written by a Terminal that does not know
		// the first one's, and one of a colour.
		var a, b []byte
		for i := range pairs {
			link := fmt.Appendf(nil, "\x1b]8;;u:%d\ax\x1b]8;;\a", (i+y)%3)
			a = append(append(a, link...), "\x1b[C\x1b[31my\x1b[m"...)
			b = append(append(b, "\x1b[C"...), append(link, "\x1b[C"...)...)
		}
		write(a)
		if y%4 == 0 {
			live = reopened(t, live)
		}
		write(append(append([]byte{'\r'}, b...), "\r\n"...))
		if y%5 < 4 {
			continue
		}
		log.AppendCheckpoint(checkpoint.Encode(nil, live.StateSince(since)), false)
		since = live.Bounds().Active
		if y < 95 {
			continue
		}
		got, err := replay.Hydrate(log, log.End())
		if err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("behind row %d", y), got, live)
	}
	// 12,000 cells, and 8,000 runs that count as 7,936, 20 bytes each.
	if b := live.Bounds(); b.Active-b.Oldest != (16<<20+256*1000)/(12000+7936*20) {
		t.Errorf("%d rows of history", b.Active-b.Oldest)
	}
}
