package store

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

// TestRecordSize: the longest record is taken, a longer one is an error of its own that
// stores nothing, and the store goes on.
func TestRecordSize(t *testing.T) {
	fs := MemFS()
	s := mustOpen(t, "s", Options{FS: fs})
	longest := bytes.Repeat([]byte("v"), MaxRecord)
	key := strings.Repeat("k", math.MaxUint16)
	for _, c := range []struct {
		key   string
		value []byte
		want  error
	}{
		{"a", longest, nil},
		{"a", append(longest, 'v'), ErrRecordSize},
		{key, []byte("x"), nil},
		{key + "k", []byte("x"), ErrRecordSize},
		{"b", []byte("x"), nil},
	} {
		if err := s.Put(c.key, c.value); !errors.Is(err, c.want) {
			t.Errorf("%d bytes under %d: %v", len(c.value), len(c.key), err)
		}
	}
	mustClose(t, s)
	s = mustOpen(t, "s", Options{FS: fs})
	defer mustClose(t, s)
	for key, n := range map[string]int{"a": MaxRecord, key: 1, "b": 1} {
		if got, err := s.Get(key); err != nil || len(got) != n {
			t.Errorf("under %.5q: %d bytes, %v", key, len(got), err)
		}
	}
	if _, err := s.Get(key + "k"); !errors.Is(err, ErrNoRecord) {
		t.Errorf("under the long key: %v", err)
	}
}
