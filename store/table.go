package store

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/sstable/colblk"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// mostBlock is the largest size of blocks that writeTable tries, in bytes.
const mostBlock = 64 << 20

var errTable = errors.New("not a table as looptape has them")

// row is a record in a table.
type row struct {
	key   pebble.InternalKey
	value []byte
}

// salvage is what can be read of a table.
type salvage struct {
	rows  []row
	lost  int  // blocks of rows that cannot be read
	whole bool // nothing of the table is damaged
}

// readTable reads all of a table that can be read: block for block by its index or, if
// that or the end of the table is damaged, by the sums of the blocks.
func (s *Store) readTable(name string, table []byte) (t salvage, err error) {
	o := s.pebbleOptions(true)
	o.EnsureDefaults()
	d := rowDecoder{schema: o.KeySchemas[o.KeySchema], comparer: o.Comparer}
	l, err := s.tableLayout(name, table)
	if pebble.IsCorruptionError(err) {
		return salvage{rows: d.scan(table), lost: 1}, nil
	}
	if err != nil {
		return t, err
	}
	if l.RangeDel.Length+l.RangeKey.Length+l.ValueIndex.Length+l.BlobReferenceIndex.Length > 0 {
		return t, errTable
	}
	for _, h := range l.Data {
		b := table[h.Offset : h.Offset+h.Length+blockTrailer]
		if !blockMatches(b) {
			t.lost++
			continue
		}
		rows, err := d.decode(b)
		if err != nil {
			return t, err
		}
		t.rows = append(t.rows, rows...)
	}
	t.whole = t.lost == 0
	return t, nil
}

// tableLayout says where everything is in a table.
func (s *Store) tableLayout(name string, table []byte) (*sstable.Layout, error) {
	f, err := sstable.NewSimpleReadable(openTable(vfs.NewMemFile(table), name, new(refusals)))
	if err != nil {
		return nil, err
	}
	o := s.pebbleOptions(true)
	o.EnsureDefaults()
	r, err := sstable.NewReader(context.Background(), f, o.MakeReaderOptions())
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	defer r.Close()
	return r.Layout()
}

// blockMatches reports whether a block, with its trailer, is what was written.
func blockMatches(b []byte) bool {
	body := b[:len(b)-4]
	return binary.LittleEndian.Uint32(b[len(body):]) == maskedSum(body)
}

// rowDecoder decodes blocks of rows.
type rowDecoder struct {
	schema   *colblk.KeySchema
	comparer *pebble.Comparer
}

// Of a block of rows, see Pebble's sstable/colblk: the bytes in front of its header, and
// the columns that it has besides those of the key.
const (
	rowsCustom  = 4
	rowsColumns = 5
)

// isRows reports whether a block, without its trailer, has the header of one of rows:
// where it has not, Pebble's decoder would read anything anywhere.
func (d *rowDecoder) isRows(b []byte) bool {
	columns := len(d.schema.ColumnTypes) + rowsColumns
	size := colblk.HeaderSize(columns, rowsCustom)
	if d.schema.HeaderSize != 0 || len(b) <= int(size) {
		return false
	}
	h := colblk.DecodeHeader(b[rowsCustom:])
	if h.Version != colblk.Version1 || int(h.Columns) != columns || int64(h.Rows) > int64(len(b)) {
		return false
	}
	last := size
	for i := range columns { // each a type and an offset, behind the rest of the header
		c := b[colblk.HeaderSize(i, rowsCustom):]
		if i < len(d.schema.ColumnTypes) && colblk.DataType(c[0]) != d.schema.ColumnTypes[i] {
			return false
		}
		at := binary.LittleEndian.Uint32(c[1:])
		if at < last || int64(at) > int64(len(b)) {
			return false
		}
		last = at
	}
	return true
}

// decode decodes a block with its trailer. Pebble panics if it is no block of rows.
func (d *rowDecoder) decode(b []byte) (rows []row, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errTable, r)
		}
	}()
	if b[len(b)-blockTrailer] != 0 || !d.isRows(b[:len(b)-blockTrailer]) {
		return nil, fmt.Errorf("%w: a block is compressed, or not of rows", errTable)
	}
	var dec colblk.DataBlockDecoder
	dec.Init(d.schema, bytes.Clone(b[:len(b)-blockTrailer])) // which aligns it
	var it colblk.DataBlockIter
	it.InitOnce(d.schema, d.comparer, nil)
	if err := it.Init(&dec, sstable.NoTransforms); err != nil {
		return nil, err
	}
	for kv := it.First(); kv != nil; kv = it.Next() {
		v, _, err := kv.Value(nil)
		if err != nil {
			return nil, err
		}
		rows = append(rows, row{kv.K.Clone(), v})
	}
	return rows, nil
}

// scan finds the rows of a table from its beginning on, up to the first block that is
// damaged or is not of rows: the rows come first. A block ends where its sum matches.
func (d *rowDecoder) scan(table []byte) (rows []row) {
	for {
		n := blockLength(table)
		if n == 0 {
			return rows
		}
		more, err := d.decode(table[:n])
		if err != nil || !d.follow(rows, more) {
			return rows
		}
		rows = append(rows, more...)
		table = table[n:]
	}
}

// blockLength is how long the first block of b is, with its trailer; 0 if that cannot
// be told.
func blockLength(b []byte) int {
	sum := uint32(0)
	for i := 0; i+4 < len(b); i++ {
		sum = crc32.Update(sum, castagnoli, b[i:i+1])
		if b[i] == 0 && i > 0 && binary.LittleEndian.Uint32(b[i+1:]) == masked(sum) {
			return i + blockTrailer
		}
	}
	return 0
}

// follow reports whether more are rows of ours that may come behind rows.
func (d *rowDecoder) follow(rows, more []row) bool {
	for i := range more {
		k := more[i].key
		if _, err := decodeDataKey(k.UserKey); err != nil && !bytes.Equal(k.UserKey, metaKey) {
			return false
		}
		last := pebble.InternalKey{}
		switch {
		case i > 0:
			last = more[i-1].key
		case len(rows) > 0:
			last = rows[len(rows)-1].key
		default:
			continue
		}
		if c := bytes.Compare(last.UserKey, k.UserKey); c > 0 || c == 0 && last.Trailer <= k.Trailer {
			return false
		}
	}
	return len(more) > 0
}

// writeTable makes a table of rows, as long as size, which is what Pebble expects it
// to be. With fewer rows it is smaller as a rule; else larger blocks make it so.
func (s *Store) writeTable(rows []row, size int) ([]byte, error) {
	for blocks := blockBytes; blocks <= mostBlock; blocks *= 4 {
		b, err := s.buildTable(rows, blocks)
		if err != nil {
			return nil, err
		}
		l, err := s.tableLayout("", b)
		if err != nil {
			return nil, err
		}
		if len(b) > size {
			continue
		}
		// The footer says where all else is; nothing need be in front of it.
		footer := int(l.Footer.Offset)
		out := append(make([]byte, 0, size), b[:footer]...)
		out = append(out, make([]byte, size-len(b))...)
		return append(out, b[footer:]...), nil
	}
	return nil, fmt.Errorf("%w: it does not fit into itself", errTable)
}

func (s *Store) buildTable(rows []row, blocks int) ([]byte, error) {
	o := s.pebbleOptions(true)
	o.EnsureDefaults()
	wo := o.MakeWriterOptions(0, pebble.FormatNewest.MaxTableFormat())
	wo.BlockSize = blocks
	var buf tableBuffer
	w := sstable.NewRawWriter(&buf, wo)
	for _, r := range rows {
		if err := w.Add(r.key, r.value, false); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// tableBuffer is a table that is being written, in memory: an objstorage.Writable.
type tableBuffer struct{ bytes.Buffer }

func (m *tableBuffer) Write(b []byte) error {
	m.Buffer.Write(b)
	return nil
}

func (m *tableBuffer) Finish() error { return nil }
func (m *tableBuffer) Abort()        {}
