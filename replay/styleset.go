package replay

import (
	"hash/maphash"
	"math/bits"
	"slices"
)

// styleSet numbers styles in the order in which they come. It is a hash table of
// numbers with open addressing: programs that give each cell a colour of its own
// look a style up for each.
type styleSet struct {
	list   []style    // by number; the first is the default
	slots  []uint32   // numbers, 0 where there is none; at most half of them are taken
	recent [64]uint32 // numbers of styles that were looked up lately
}

// styleSeed keeps programs from choosing styles that meet in the table. Nothing but
// time depends on it.
var styleSeed = [2]uint64{maphash.Bytes(maphash.MakeSeed(), nil), maphash.Bytes(maphash.MakeSeed(), nil)}

func (s *style) hash() uint64 {
	var n uint64
	if s.link != nil {
		n = s.link.number << 16
	}
	hi, lo := bits.Mul64(uint64(s.fg)|uint64(s.bg)<<32^styleSeed[0], (uint64(s.ul)<<16|uint64(s.attrs))^bits.RotateLeft64(n, 32)^styleSeed[1])
	return hi ^ lo
}

// number returns the number of v, which it may have to add.
func (s *styleSet) number(v style) uint32 {
	if v == (style{}) {
		return 0
	}
	r := &s.recent[(uint32(v.fg)*0x9E3779B1^uint32(v.bg)*0x85EBCA6B^uint32(v.attrs)*0xC2B2AE35)>>26]
	if n := *r; n == 0 || s.list[n] != v {
		*r = s.find(v)
	}
	return *r
}

// find is number without the short cut.
func (s *styleSet) find(v style) uint32 {
	if 2*len(s.list) >= len(s.slots) {
		s.grow()
	}
	i := s.slot(&v)
	if s.slots[i] == 0 {
		s.slots[i] = uint32(len(s.list))
		s.list = append(s.list, v)
	}
	return s.slots[i]
}

// slot returns the slot that has v's number, or is to get it.
func (s *styleSet) slot(v *style) uint64 {
	mask := uint64(len(s.slots) - 1)
	for i := v.hash() & mask; ; i = (i + 1) & mask {
		if n := s.slots[i]; n == 0 || s.list[n] == *v {
			return i
		}
	}
}

func (s *styleSet) grow() { s.resize(max(16, 2*len(s.slots))) }

// reserve makes room for n more styles.
func (s *styleSet) reserve(n int) {
	s.list = slices.Grow(s.list, n)
	if n = 2 * (len(s.list) + n); n > len(s.slots) {
		s.resize(1 << bits.Len(uint(n-1)))
	}
}

// resize makes the table one of n slots, a power of two.
func (s *styleSet) resize(n int) {
	s.slots = make([]uint32, n)
	for n := 1; n < len(s.list); n++ {
		s.slots[s.slot(&s.list[n])] = uint32(n)
	}
}
