package checkpoint_test

import (
	"bytes"
	"errors"
	"testing"

	"looptape/checkpoint"
)

// decodable hands add the encodings to start from, and parts of them.
func decodable(f *testing.F, add func([]byte)) {
	add(golden(f, "v1.golden"))
	add(golden(f, "v2.golden"))
	b := golden(f, "v3.golden")
	add(b)
	add(checkpoint.Encode(nil, &checkpoint.State{}))
	for n := 0; n < len(b); n += 13 {
		add(b[:n])
	}
	small := goldenState()
	small.History.Rows, small.Links, small.Tabs = nil, nil, nil
	add(checkpoint.Encode(nil, small))
}

// stable fails unless what b decodes to has one encoding, which decodes to it.
func stable(t *testing.T, b []byte) {
	s, err := checkpoint.Decode(b)
	if err != nil {
		known := false
		for _, e := range []error{checkpoint.ErrNotCheckpoint, checkpoint.ErrNewerVersion, checkpoint.ErrTruncated, checkpoint.ErrDamaged} {
			known = known || errors.Is(err, e)
		}
		if s != nil || !known {
			t.Fatalf("%v with %v", s, err)
		}
		return
	}
	once := checkpoint.Encode(nil, s)
	again, err := checkpoint.Decode(once)
	if err != nil {
		t.Fatalf("Decode(Encode(Decode(b))): %v", err)
	}
	if twice := checkpoint.Encode(nil, again); !bytes.Equal(once, twice) {
		t.Fatalf("encodings differ:\n%x\n%x", once, twice)
	}
}

// FuzzDecode: Decode panics on no bytes, names one of its errors, and
// Encode(Decode(b)) is stable.
func FuzzDecode(f *testing.F) {
	decodable(f, func(b []byte) { f.Add(b) })
	f.Fuzz(stable)
}

// FuzzDecodeSealed is FuzzDecode behind the checksums: they are put right, so
// that the fields themselves are fuzzed.
func FuzzDecodeSealed(f *testing.F) {
	decodable(f, func(b []byte) { f.Add(b) })
	b := golden(f, "v3.golden")
	for i := 16; i < len(b)-4; i++ {
		for _, v := range []byte{0, 0x7f, 0x80, 0xff} {
			bad := bytes.Clone(b)
			bad[i] = v
			f.Add(bad)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 20 {
			return
		}
		stable(t, seal(b))
	})
}
