package store

import (
	"math/rand/v2"
	"testing"
)

// What is no block of rows is not taken for one: a block of another kind, or noise.
func TestNoRows(t *testing.T) {
	r := newTableRig(t)
	o := (&Store{opts: r.o}).pebbleOptions(true)
	o.EnsureDefaults()
	d := rowDecoder{schema: o.KeySchemas[o.KeySchema], comparer: o.Comparer}
	for name, size := range tables(t, r.mem) {
		table, bounds := r.bytes(name), r.blocks(name)
		for _, b := range bounds {
			if rows, err := d.decode(table[b[0]:b[1]]); err != nil || len(rows) == 0 {
				t.Errorf("%s at %d: %d rows, %v", name, b[0], len(rows), err)
			}
		}
		for at := bounds[len(bounds)-1][1]; at < size; {
			n := blockLength(table[at:])
			if n == 0 {
				break
			}
			if rows, err := d.decode(table[at : at+n]); err == nil {
				t.Errorf("%s: %d rows in what is none, at %d", name, len(rows), at)
			}
			at += n
		}
		if rows := d.scan(table); len(rows) == 0 {
			t.Errorf("%s: no rows by their sums", name)
		}
	}
	rng := rand.New(rand.NewPCG(4, 4))
	for range 1000 {
		b := append(noise(rng, rng.IntN(400)), 0, 0, 0, 0, 0)
		if rows, err := d.decode(b); err == nil {
			t.Errorf("%d rows in noise", len(rows))
		}
	}
}
