package store

import (
	"path/filepath"
	"sync"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Faults is a file system that fails on demand, for tests of this package and
// of those that record into a store: Options.FS = faults.FS().
type Faults struct {
	fs vfs.FS

	mu    sync.Mutex
	rules []*Fault
}

// Fault is one rule: the operations that it names fail with Err, or wait.
type Fault struct {
	// Op is what fails.
	Op FaultOp
	// Path is a pattern of path.Match for the last element of the file's name;
	// "" is every file. Pebble's files are "*.log" (WAL), "*.sst" (tables),
	// "MANIFEST-*", "marker.*", "OPTIONS-*".
	Path string
	// Skip is how many such operations succeed first.
	Skip int
	// Count is how many then fail; 0 is all of them until Clear.
	Count int
	// Err is what they fail with; nil is ENOSPC.
	Err error
	// Until, if there is one, makes them wait until it is closed, and then succeed.
	Until <-chan struct{}

	failed int
}

// FaultOp is a set of operations.
type FaultOp uint8

// The operations that a Fault can name.
const (
	FaultCreate FaultOp = 1 << iota // making a file, also by rename
	FaultWrite
	FaultSync
	FaultRead
	FaultRemove
	FaultOpen // a file or a directory, for reading
	// FaultFull is what a full disk refuses. (It takes what is written over
	// something by WriteAt, as only Reserve does.)
	FaultFull = FaultCreate | FaultWrite
)

// NewFaults returns a file system like base (nil is DiskFS) without faults.
func NewFaults(base vfs.FS) *Faults {
	if base == nil {
		base = DiskFS()
	}
	f := &Faults{}
	f.fs = faultFS{errorfs.Wrap(base, errorfs.InjectorFunc(f.inject))}
	return f
}

// faultFS makes a new file where another file system would use an old one
// again: errorfs does not look into those.
type faultFS struct{ *errorfs.FS }

func (f faultFS) ReuseForWrite(oldname, newname string, c vfs.DiskWriteCategory) (vfs.File, error) {
	if err := f.Remove(oldname); err != nil {
		return nil, err
	}
	return f.Create(newname, c)
}

// FS is the file system.
func (f *Faults) FS() vfs.FS { return f.fs }

// Add adds a rule; the first that matches decides.
func (f *Faults) Add(r Fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &r)
}

// Clear removes all rules.
func (f *Faults) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Failed is how many operations the present rules have made fail, or wait.
func (f *Faults) Failed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.rules {
		n += r.failed
	}
	return n
}

func faultOp(k errorfs.OpKind) FaultOp {
	switch k {
	case errorfs.OpCreate, errorfs.OpReuseForWrite, errorfs.OpRename, errorfs.OpLink, errorfs.OpMkdirAll:
		return FaultCreate
	case errorfs.OpFileWrite, errorfs.OpFileWriteAt:
		return FaultWrite
	case errorfs.OpFileSync, errorfs.OpFileSyncData, errorfs.OpFileSyncTo:
		return FaultSync
	case errorfs.OpFileRead, errorfs.OpFileReadAt:
		return FaultRead
	case errorfs.OpRemove, errorfs.OpRemoveAll:
		return FaultRemove
	case errorfs.OpOpen, errorfs.OpOpenDir:
		return FaultOpen
	}
	return 0
}

// inject is asked before each operation.
func (f *Faults) inject(op errorfs.Op) error {
	until, err := f.rule(op)
	if until != nil {
		<-until
	}
	return err
}

// rule is what the rules say of an operation: what it waits for, and its error.
func (f *Faults) rule(op errorfs.Op) (until <-chan struct{}, err error) {
	kind := faultOp(op.Kind)
	if kind == 0 {
		return nil, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.rules {
		if r.Op&kind == 0 || r.Count > 0 && r.failed >= r.Count {
			continue
		}
		if r.Err == nil && r.Until == nil && op.Kind == errorfs.OpFileWriteAt {
			continue // in place: a full disk takes that
		}
		if ok, _ := filepath.Match(r.Path, filepath.Base(op.Path)); r.Path != "" && !ok {
			continue
		}
		if r.Skip > 0 {
			r.Skip--
			continue
		}
		r.failed++
		if r.Until != nil {
			return r.Until, nil
		}
		if r.Err != nil {
			return nil, r.Err
		}
		return nil, syscall.ENOSPC
	}
	return nil, nil
}
