package store

import "encoding/binary"

// A WAL of Pebble's is a row of blocks of walBlock bytes, each filled with
// chunks; what is left of a block and too short for the header of a chunk is
// zeros. A chunk, all integers little-endian (pebble record/record.go):
//
//	 0  u32  sum        CRC-32C, masked, of bytes 6 to the end of the chunk
//	 4  u16  size       bytes of the payload
//	 6  u8   type       9-12: as drawn here; 5-8: without synced; 1-4: without
//	                    log and synced
//	 7  u32  log        number of the file; files are used again
//	11  u64  synced     so many bytes of the file were synced when this was made
//	19  -    payload
//
// A reader that meets a chunk which does not match takes it for the end of the
// WAL, or, if one in a later block says that it had been synced, for damage.
const (
	walBlock    = 32 << 10
	walHeader   = 19
	walTypeAt   = 6
	walSyncedAt = 11
	// The types of chunks with the field synced.
	walFirstType, walLastType = 9, 12
)

// restamp puts synced into each chunk of b, whole chunks that are written at
// offset at. What is no chunk it leaves as it is.
func restamp(b []byte, at int64, synced uint64) {
	for len(b) > 0 {
		if room := walBlock - int(at%walBlock); room < walHeader {
			n := min(room, len(b))
			b, at = b[n:], at+int64(n)
			continue
		}
		if len(b) <= walTypeAt || b[walTypeAt] < walFirstType || b[walTypeAt] > walLastType {
			return // the mark of the end, or a WAL of an older format
		}
		n := walHeader + int(binary.LittleEndian.Uint16(b[4:]))
		if n > len(b) {
			return
		}
		binary.LittleEndian.PutUint64(b[walSyncedAt:], synced)
		binary.LittleEndian.PutUint32(b, maskedSum(b[walTypeAt:n]))
		b, at = b[n:], at+int64(n)
	}
}
