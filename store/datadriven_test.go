package store

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// TestStates runs testdata/states: what a log is made of, and where it begins
// and ends, after each of a row of commands. Commands:
//
//	new                  a store with one log; segments are 400 bytes, sealed from 100
//	reopen               the store is closed and opened
//	crash                only what was synced is left, and the store is open again
//	append n=BYTES [times=N] | mark | gap lost=N | full | delta
//	                     appended, and synced
//	evict retain=BYTES
//	damage at=OFFSET     the record of frames that begins there
//	wait minutes=N       time passes
func TestStates(t *testing.T) { (&stateRig{t: t}).file("testdata/states") }

// TestAges runs testdata/ages, in which a log keeps what is less than 24 minutes
// old, and somebody looks each minute.
func TestAges(t *testing.T) {
	inBubble(t, func(t *testing.T) { (&stateRig{t: t, keepFor: 24 * time.Minute}).file("testdata/ages") })
}

// file runs the commands of a file.
func (r *stateRig) file(name string) {
	t := r.t
	defer r.close()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(string(text), "\n\n") {
		cmd, want, ok := strings.Cut(block, "\n----\n")
		if !ok {
			continue // a comment
		}
		want = strings.TrimSuffix(want, "\n")
		if got := strings.TrimSuffix(r.run(strings.Fields(cmd)), "\n"); got != want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", cmd, got, want)
		}
	}
}

type stateRig struct {
	t       *testing.T
	keepFor time.Duration
	mem     *vfs.MemFS
	s       *Store
	l       *Log
}

// now is the time of a frame.
func (r *stateRig) now() (t Time) {
	if r.keepFor > 0 {
		t.Wall = time.Now().UnixNano()
	}
	return t
}

func (r *stateRig) open() {
	pace := time.Hour // when a command says
	if r.keepFor > 0 {
		pace = time.Minute
	}
	r.s = mustOpen(r.t, "s", Options{FS: r.mem, SegmentBytes: 400, Level: -1, EvictPace: pace, minRetain: 1, KeepFor: r.keepFor})
	var err error
	if r.l, err = r.s.Log(1); errors.Is(err, ErrNoLog) {
		r.l, err = r.s.Create(1)
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func (r *stateRig) close() {
	if r.s != nil {
		mustClose(r.t, r.s)
		r.s = nil
	}
}

// run executes a command and returns the state after it.
func (r *stateRig) run(cmd []string) string {
	arg := func(name string, value int) int {
		for _, a := range cmd[1:] {
			if v, ok := strings.CutPrefix(a, name+"="); ok {
				value, _ = strconv.Atoi(v)
			}
		}
		return value
	}
	switch cmd[0] {
	case "new":
		r.close()
		r.mem = vfs.NewCrashableMem()
		r.open()
	case "reopen":
		r.close()
		r.open()
	case "crash":
		mem := r.mem.CrashClone(vfs.CrashCloneCfg{})
		r.close()
		r.mem = mem
		r.open()
	case "append":
		for range arg("times", 1) {
			r.l.Append(Output, r.now(), make([]byte, arg("n", 0)))
			mustSync(r.t, r.l)
		}
	case "mark":
		r.l.Append(9, r.now(), []byte("m"))
	case "gap":
		r.l.AppendGap(r.now(), uint64(arg("lost", 0)), nil)
	case "full", "delta":
		r.l.AppendCheckpoint([]byte(cmd[0]), cmd[0] == "full")
	case "evict":
		r.l.SetRetain(uint64(arg("retain", 0)))
		if err := r.s.evict(); err != nil {
			return err.Error()
		}
	case "wait":
		time.Sleep(time.Duration(arg("minutes", 0)) * time.Minute)
		synctest.Wait()
	case "damage":
		return r.damage(uint64(arg("at", 0)))
	default:
		r.t.Fatalf("unknown command %q", cmd)
	}
	mustSync(r.t, r.l)
	return r.state()
}

func (r *stateRig) damage(at uint64) string {
	var key []byte
	err := r.s.view(1, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; ok = it.Next() {
			if k, err := decodeDataKey(it.Key()); err == nil && k.class == classData && k.at.Offset == at {
				key = append([]byte(nil), it.Key()...)
			}
		}
		return nil
	})
	if err != nil || key == nil {
		return fmt.Sprint("no such record ", err)
	}
	if err := r.s.db.Set(key, []byte("damaged"), pebble.Sync); err != nil {
		return err.Error()
	}
	return "done"
}

// state prints the ends of the log and each of its keys.
func (r *stateRig) state() string {
	var b strings.Builder
	full := ""
	if r.l.NeedsFull() {
		full = ", wants a full checkpoint"
	}
	end := r.l.End()
	fmt.Fprintf(&b, "oldest %d, end %d, frames %d%s\n", r.l.Oldest(), end.Offset, end.Seq, full)
	err := r.s.view(1, func(it *pebble.Iterator) error {
		for ok := it.First(); ok; ok = it.Next() {
			k, err := decodeDataKey(it.Key())
			if err != nil {
				return err
			}
			h, err := decodeHeader(it.Value())
			if err != nil {
				fmt.Fprintf(&b, "span %d: damaged at %d\n", k.span.Offset, k.at.Offset)
				continue
			}
			what := map[byte]string{recSegment: "segment", recTail: "tail", recCheckpoint: "delta"}[h.typ]
			if k.class == classFull {
				what = "full"
			}
			fmt.Fprintf(&b, "span %d: %s at %d", k.span.Offset, what, k.at.Offset)
			if h.typ != recCheckpoint {
				fmt.Fprintf(&b, " to %d, frames %d", h.end().Offset, h.frames)
			}
			b.WriteByte('\n')
		}
		return it.Error()
	})
	if err != nil {
		return err.Error()
	}
	return b.String()
}
