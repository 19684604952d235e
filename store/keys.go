package store

import (
	"encoding/binary"
	"fmt"
)

// Keys, all integers big-endian so that byte order is numeric order:
//
//	00                                          meta record of the store
//	03 pane:8 span:16 class:1 at:16             log content, see below
//
// A position (span, at) is offset:8 seq:8. A span is named by the position of
// the full checkpoint that begins it, so that everything of a span, and
// nothing else, lies in [03 pane span, 03 pane next span): one Excise takes it
// away. Inside a span the classes are
//
//	00   the full checkpoint; at == span
//	01   a further checkpoint at position at
//	02   a record of frames, the first of them at position at
//
// Offset and seq both never fall along a log, so that either finds its place.
const (
	spaceMeta = 0x00
	spaceData = 0x03

	classFull  = 0x00
	classDelta = 0x01
	classData  = 0x02

	paneKeySize = 1 + 8
	dataKeySize = 1 + 8 + 16 + 1 + 16
)

var metaKey = []byte{spaceMeta}

// dataKey is a decoded key of log content.
type dataKey struct {
	pane  uint64
	span  Pos
	class byte
	at    Pos
}

func (k dataKey) append(dst []byte) []byte {
	dst = appendPaneKey(dst, spaceData, k.pane)
	dst = appendPos(dst, k.span)
	dst = append(dst, k.class)
	return appendPos(dst, k.at)
}

func (k dataKey) encode() []byte { return k.append(make([]byte, 0, dataKeySize)) }

func decodeDataKey(b []byte) (k dataKey, err error) {
	if len(b) != dataKeySize || b[0] != spaceData || b[25] > classData {
		return k, fmt.Errorf("%w: key %x", errRecord, b)
	}
	k.pane = binary.BigEndian.Uint64(b[1:])
	k.span = decodePos(b[9:])
	k.class = b[25]
	k.at = decodePos(b[26:])
	if k.at.Before(k.span) || k.class == classFull && k.at != k.span {
		return k, fmt.Errorf("%w: key %x", errRecord, b)
	}
	return k, nil
}

func appendPos(dst []byte, p Pos) []byte {
	dst = binary.BigEndian.AppendUint64(dst, p.Offset)
	return binary.BigEndian.AppendUint64(dst, p.Seq)
}

func decodePos(b []byte) Pos {
	return Pos{Offset: binary.BigEndian.Uint64(b), Seq: binary.BigEndian.Uint64(b[8:])}
}

func appendPaneKey(dst []byte, space byte, pane uint64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, space), pane)
}

// paneBounds are the lower (inclusive) and upper (exclusive) bound of a
// pane's log content.
func paneBounds(pane uint64) (lo, hi []byte) {
	lo = appendPaneKey(nil, spaceData, pane)
	if pane == ^uint64(0) {
		return lo, []byte{spaceData + 1}
	}
	return lo, appendPaneKey(nil, spaceData, pane+1)
}

// spanKey is the lower bound of a span's keys.
func spanKey(pane uint64, span Pos) []byte {
	return appendPos(appendPaneKey(make([]byte, 0, 25), spaceData, pane), span)
}
