package store

import (
	"errors"
	"sync"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// lagBytes bounds what of all logs together may count as durable and not be
// synced under SyncEvery, in memory: from half of it on the WAL is synced at
// once, and beyond it commits wait.
const lagBytes = 8 << 20

// deferral syncs the WAL some time after Pebble wanted it synced. What Pebble
// is told is synced has then left the process, which is enough for kill -9; what
// a power cut may take is what was written since the last sync really made.
//
// Pebble closes a WAL before it makes the next one, and takes one that does not
// end well for damaged if it is not the last, so closing one syncs it at once.
// Tables and manifests need no WAL, and are synced as ever.
type deferral struct {
	every time.Duration
	dirty chan struct{} // something is not synced; one slot
	now   chan struct{} // it is to be, without waiting; one slot
	stop  chan struct{} // closed by Close
	done  chan struct{} // closed when run has returned

	turn chan struct{} // holds one: whoever took it has the disk sync

	mu     sync.Mutex
	files  map[*walFile]bool // those that are open
	logs   map[*Log]extent   // how far they are written, if not synced
	lag    int               // what was written since the last sync began
	inSync int               // what the sync under way is for
	synced chan struct{}     // closed when a sync ends; then there is a new one
}

func newDeferral(every time.Duration) *deferral {
	d := &deferral{
		every: every,
		dirty: make(chan struct{}, 1), now: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), turn: make(chan struct{}, 1),
		files: make(map[*walFile]bool), logs: make(map[*Log]extent), synced: make(chan struct{}),
	}
	d.turn <- struct{}{}
	return d
}

// give ends a turn.
func (d *deferral) give() { d.turn <- struct{}{} }

// run is the goroutine that syncs. It ends when stop is closed, once it has synced
// what there is, or when the store fails; Close waits for done, or for the failure,
// since on a failed disk it is parked.
func (d *deferral) run(failed <-chan struct{}) {
	defer close(d.done)
	t := time.NewTimer(d.every)
	defer t.Stop()
	for stopping := false; !stopping; {
		select {
		case <-d.dirty:
			t.Reset(d.every)
		case <-d.stop:
			stopping = true
		case <-failed:
			return
		}
		select {
		case <-t.C:
		case <-d.now:
		case <-d.stop:
			stopping = true
		case <-failed:
			return
		}
		if d.sync() != nil {
			return // the store has failed
		}
	}
}

// sync makes all that was written before it durable, whatever happens to the
// machine.
func (d *deferral) sync() error {
	<-d.turn
	defer d.give()
	d.mu.Lock()
	files := make([]*walFile, 0, len(d.files))
	for f := range d.files {
		files = append(files, f)
	}
	logs := d.logs
	d.logs = make(map[*Log]extent, len(logs))
	d.inSync, d.lag = d.lag, 0
	d.mu.Unlock()

	for _, f := range files {
		if err := f.syncNow(); err != nil {
			return err
		}
	}
	for l, e := range logs {
		l.syncedTo(e)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inSync = 0
	close(d.synced)
	d.synced = make(chan struct{})
	return nil
}

// wrote notes that cm has been written, and waits while too much has been that
// is not synced. It reports false if the store fails meanwhile.
func (d *deferral) wrote(cm *commit, failed <-chan struct{}) bool {
	d.mu.Lock()
	for _, p := range cm.parts {
		w := &p.log.written
		for _, c := range p.chunks {
			w.end, w.items = c.end(), w.items+uint64(len(c.frames)+len(c.cps))
			d.lag += c.cost
			// Offsets run on by what was lost, which no bound of bytes covers.
			if n := len(c.frames); n > 0 && c.frames[n-1].kind == Gap {
				d.lag += lagBytes + 1
			}
		}
		d.logs[p.log] = *w
	}
	defer d.mu.Unlock()
	if d.lag > lagBytes/2 {
		signal(d.dirty)
		signal(d.now)
	}
	for d.lag+d.inSync > lagBytes {
		synced := d.synced
		d.mu.Unlock()
		select {
		case <-synced:
		case <-failed:
		}
		d.mu.Lock()
		select {
		case <-failed:
			return false
		default:
		}
	}
	return true
}

// open takes charge of a WAL that has just been made.
func (d *deferral) open(f vfs.File) vfs.File {
	w := &walFile{File: f, d: d}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.files[w] = true
	return w
}

// walFile is a WAL that is synced later than Pebble asks for.
type walFile struct {
	vfs.File // with patience
	d        *deferral

	// By d.mu: how many bytes of the file are written, and were when it was
	// synced last.
	written, synced int64
	buf             []byte // of Write, whose callers come one at a time
}

// Write writes b, in which Pebble says how much of the file is synced, with the
// truth in that place.
func (w *walFile) Write(b []byte) (int, error) {
	w.d.mu.Lock()
	at, synced := w.written, w.synced
	w.d.mu.Unlock()
	w.buf = append(w.buf[:0], b...)
	restamp(w.buf, at, uint64(synced))
	n, err := w.File.Write(w.buf)
	w.d.mu.Lock()
	w.written += int64(n)
	w.d.mu.Unlock()
	return n, err
}

// Sync puts the sync off.
func (w *walFile) Sync() error {
	signal(w.d.dirty)
	return nil
}

// SyncData is Sync.
func (w *walFile) SyncData() error { return w.Sync() }

// SyncTo is Sync.
func (w *walFile) SyncTo(int64) (full bool, err error) { return true, w.Sync() }

// syncNow syncs the file, if there is anything; it is the caller's turn.
func (w *walFile) syncNow() error {
	w.d.mu.Lock()
	written := w.written
	done := written == w.synced
	w.d.mu.Unlock()
	if done {
		return nil
	}
	if err := w.File.SyncData(); err != nil {
		return err
	}
	w.d.mu.Lock()
	defer w.d.mu.Unlock()
	w.synced = written
	return nil
}

// Close syncs the file and closes it.
func (w *walFile) Close() error {
	<-w.d.turn
	defer w.d.give()
	err := w.syncNow()
	w.d.mu.Lock()
	delete(w.d.files, w)
	w.d.mu.Unlock()
	return errors.Join(err, w.File.Close())
}
