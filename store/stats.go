package store

import "sync/atomic"

// counters are kept by the committer.
type counters struct {
	commits    atomic.Uint64
	raw        atomic.Uint64
	written    atomic.Uint64
	segments   atomic.Uint64
	tails      atomic.Uint64
	evictions  atomic.Uint64
	lastCommit atomic.Int64
}

func (c *counters) count(b *block) {
	c.raw.Add(uint64(b.raw))
	c.written.Add(uint64(len(b.out)))
	switch b.typ {
	case recSegment:
		c.segments.Add(1)
	case recTail:
		c.tails.Add(1)
	}
}

// Stats is what the store did since it was opened.
type Stats struct {
	Commits   uint64 // batches that are durable
	Raw       uint64 // bytes of records before compression
	Written   uint64 // bytes of records handed to Pebble
	Segments  uint64 // segments written
	Tails     uint64 // tails written
	Evictions uint64 // excises
	// LastCommit is when the last batch became durable, ns since the epoch; 0
	// if none did.
	LastCommit int64
	// FullSince is since when the disk refuses writes for want of space, ns
	// since the epoch; 0 while it does not.
	FullSince int64
	// FullNeeds is how many bytes have to be free on a full disk before it goes on; 0
	// if any will do.
	FullNeeds uint64
	// Damaged is how many tables were met damaged, which the next Open mends.
	Damaged int
}

// Stats returns the counters.
func (s *Store) Stats() Stats {
	c := &s.stats
	return Stats{
		Commits: c.commits.Load(), Raw: c.raw.Load(), Written: c.written.Load(),
		Segments: c.segments.Load(), Tails: c.tails.Load(), Evictions: c.evictions.Load(),
		LastCommit: c.lastCommit.Load(), FullSince: s.fs.fullSince.Load(), FullNeeds: s.fs.needs(),
		Damaged: len(s.damage.tables()),
	}
}
