package store

import (
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

const (
	// commitPace is the least time between two commits while nobody floods.
	commitPace = 5 * time.Millisecond
	// batchBytes is how much of the logs one commit takes, before compression.
	batchBytes = 1 << 20
)

// committer owns all writes to Pebble: one goroutine, which takes what the
// logs have, makes one batch of it, applies it, and while the disk syncs it
// prepares the next one.
type committer struct {
	s    *Store
	enc  *encoders
	done chan struct{} // closed when run has returned

	work chan struct{} // there may be work; one slot
	full chan struct{} // a pane fills buffers: do not wait; one slot
	stop chan struct{} // closed by Close

	dirty atomic.Pointer[Log] // stack of logs with something new

	// The rest is run's alone.
	queue  []*Log // logs that had more than one batch would take
	last   time.Time
	blocks blockList
}

// commit is one batch on its way to the disk.
type commit struct {
	batch *pebble.Batch
	parts []part
}

// part is what of one log a commit contains.
type part struct {
	log    *Log
	chunks []*chunk
}

func newCommitter(s *Store, enc *encoders) *committer {
	return &committer{
		s: s, enc: enc,
		done: make(chan struct{}),
		work: make(chan struct{}, 1),
		full: make(chan struct{}, 1),
		stop: make(chan struct{}),
	}
}

// wake tells the committer that l has something new; filled, that a large
// buffer of it is full. It never blocks.
func (c *committer) wake(l *Log, filled bool) {
	if l.queued.CompareAndSwap(false, true) {
		for {
			head := c.dirty.Load()
			l.next = head
			if c.dirty.CompareAndSwap(head, l) {
				break
			}
		}
		signal(c.work)
	}
	if filled {
		signal(c.full)
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run is the committer's goroutine. It ends when stop is closed and all that
// was appended before is durable, or when the store fails; Close waits for
// done, or for the failure, since Pebble may never return from a failed disk.
func (c *committer) run() {
	defer close(c.done)
	var inSync *commit // applied, not durable yet
	for {
		stopping := false
		if c.idle() {
			if inSync != nil {
				if !c.finish(inSync) {
					return
				}
				inSync = nil
			}
			select {
			case <-c.work:
			case <-c.s.failed:
				return
			case <-c.stop:
				stopping = true
			}
		}
		if !stopping && !c.flooding() {
			if inSync != nil && !c.finish(inSync) {
				return
			}
			inSync = nil
			c.pace()
		}
		if c.s.fs.relieving() {
			if inSync != nil && !c.finish(inSync) {
				return
			}
			inSync = nil
			c.rest()
		}
		next := c.build()
		if inSync != nil && !c.finish(inSync) {
			return
		}
		inSync = nil
		if next != nil {
			if !c.apply(next) {
				return
			}
			inSync = next
		} else if stopping {
			return
		}
	}
}

// idle reports whether no log is known to have anything to commit.
func (c *committer) idle() bool { return len(c.queue) == 0 && c.dirty.Load() == nil }

// flooding reports whether a pane fills buffers faster than they are written:
// then there is no waiting, and one batch is made while the last one syncs.
func (c *committer) flooding() bool {
	select {
	case <-c.full:
		return true
	default:
		return len(c.queue) > 0
	}
}

// pace waits until the last commit is commitPace old, or a pane floods.
func (c *committer) pace() {
	wait := c.s.opts.Pace - time.Since(c.last)
	if wait <= 0 {
		return
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.full:
	case <-c.stop:
	case <-c.s.failed:
	}
}

// rest waits while logs are removed from a full disk: what there is left is for that.
func (c *committer) rest() {
	t := time.NewTicker(patience)
	defer t.Stop()
	for c.s.fs.relieving() {
		select {
		case <-t.C:
		case <-c.stop:
			return
		case <-c.s.failed:
			return
		}
	}
}

// build takes up to batchBytes from the logs that have something, in turn. It
// returns nil if that is nothing.
func (c *committer) build() *commit {
	c.last = time.Now()
	// The stack is newest first; turn it round.
	n := len(c.queue)
	for l := c.dirty.Swap(nil); l != nil; {
		next := l.next
		c.queue = append(c.queue, l)
		l = next
	}
	reverse(c.queue[n:])

	cm := &commit{}
	limit := batchBytes
	for turns := len(c.queue); turns > 0 && limit > 0; turns-- {
		l := c.queue[0]
		c.queue = c.queue[1:]
		l.queued.Store(false) // what comes from here on queues it again
		chunks, more := l.take(nil, limit)
		for _, ch := range chunks {
			limit -= ch.cost
		}
		if len(chunks) > 0 {
			cm.parts = append(cm.parts, part{l, chunks})
		}
		if more && l.queued.CompareAndSwap(false, true) {
			c.queue = append(c.queue, l)
		}
	}
	if len(cm.parts) == 0 {
		return nil
	}
	c.fill(cm)
	return cm
}

// fill makes the batch of cm.
func (c *committer) fill(cm *commit) {
	cm.batch = c.s.db.NewBatch()
	c.blocks.reset()
	for _, p := range cm.parts {
		a := assembler{c: c, log: p.log, batch: cm.batch}
		a.run(p.chunks)
	}
	c.enc.encode(c.blocks.used)
	for i, b := range c.blocks.used {
		must(cm.batch.Set(c.blocks.keys[i], b.out, nil))
		c.s.stats.count(b)
	}
}

// apply hands cm to Pebble, which syncs it in the background.
func (c *committer) apply(cm *commit) bool {
	if err := c.s.db.ApplyNoSyncWait(cm.batch, pebble.Sync); err != nil {
		c.s.fail(err)
		return false
	}
	return true
}

// finish waits until cm is durable and tells everybody.
func (c *committer) finish(cm *commit) bool {
	if err := cm.batch.SyncWait(); err != nil {
		c.s.fail(err)
		return false
	}
	if c.s.Err() != nil {
		return false // a sync that failed may have been followed by one that did not
	}
	if d := c.s.deferral; d != nil && !d.wrote(cm, c.s.failed) {
		return false
	}
	_ = cm.batch.Close()
	c.s.stats.commits.Add(1)
	c.s.stats.lastCommit.Store(time.Now().UnixNano())
	for _, p := range cm.parts {
		p.log.committed(len(p.chunks))
	}
	return true
}

func reverse(l []*Log) {
	for i, j := 0, len(l)-1; i < j; i, j = i+1, j-1 {
		l[i], l[j] = l[j], l[i]
	}
}

// must is for the operations of a batch in memory, whose errors only report
// wrong use.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
