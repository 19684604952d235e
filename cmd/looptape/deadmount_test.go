package main_test

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// deadMount is a file system, served through /dev/fuse by this process, that does not
// answer: whoever asks it for something waits in the kernel, as on a network file
// system whose server is gone. There is one directory with one file in it, a script
// that sleeps.
type deadMount struct {
	t    *testing.T
	dir  string
	fuse *os.File

	mu      sync.Mutex
	answers []uint32 // opcodes that are answered nevertheless
	alive   bool     // all are
	held    []fuseRequest
}

// A process that waits for an answer can be killed as long as its request has not been
// read, and not afterwards. Without answers, nothing is read behind the first request,
// which is the mount's own.

const deadScript = "#!/bin/sh\nexec sleep 1000\n"

// Opcodes, see linux/fuse.h.
const (
	fuseLookup  = 1
	fuseForget  = 2
	fuseGetattr = 3
	fuseOpen    = 14
	fuseRead    = 15
	fuseInit    = 26
	fuseAccess  = 34
	fuseForgets = 42
)

type fuseRequest struct {
	opcode       uint32
	unique, node uint64
}

// newDeadMount mounts one until the test ends. It holds all requests but those listed,
// or reads none if none are. The kernel keeps the answers.
func newDeadMount(t *testing.T, answers ...uint32) *deadMount {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a file system")
	}
	fuse, err := os.OpenFile("/dev/fuse", os.O_RDWR, 0)
	if err != nil {
		t.Skip("there is no FUSE here: ", err)
	}
	m := &deadMount{t: t, dir: t.TempDir(), fuse: fuse, answers: append(answers, fuseInit)}
	if err := unix.Mount("fuse", m.dir, "fuse", unix.MS_NODEV, fmt.Sprintf("fd=%d,rootmode=40000,user_id=0,group_id=0", fuse.Fd())); err != nil {
		fuse.Close()
		t.Skip("there is no FUSE here: ", err)
	}
	served := make(chan struct{})
	go m.serve(len(answers) > 0, served)
	t.Cleanup(func() {
		unix.Unmount(m.dir, unix.MNT_FORCE) // whoever waits gets an error
		unix.Unmount(m.dir, unix.MNT_DETACH)
		<-served
		fuse.Close()
	})
	return m
}

// serve answers requests until the file system is unmounted; the test waits for it.
func (m *deadMount) serve(all bool, done chan<- struct{}) {
	defer close(done)
	buf := make([]byte, 256<<10)
	for {
		n, err := unix.Read(int(m.fuse.Fd()), buf)
		if err == unix.EINTR || err == unix.ENOENT { // ENOENT: the caller was interrupted
			continue
		}
		if err != nil || n < 40 {
			return
		}
		r := fuseRequest{binary.NativeEndian.Uint32(buf[4:]), binary.NativeEndian.Uint64(buf[8:]), binary.NativeEndian.Uint64(buf[16:])}
		m.mu.Lock()
		if m.alive || slices.Contains(m.answers, r.opcode) {
			m.answer(r)
		} else {
			m.held = append(m.held, r)
		}
		m.mu.Unlock()
		if !all {
			return
		}
	}
}

// revive answers everything from now on.
func (m *deadMount) revive() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.alive = true
	for _, r := range m.held {
		m.answer(r)
	}
}

// asked waits until there is a request that has not been read.
func (m *deadMount) asked() {
	m.t.Helper()
	p := []unix.PollFd{{Fd: int32(m.fuse.Fd()), Events: unix.POLLIN}}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		if n, err := unix.Poll(p, 100); n > 0 || err != nil && err != unix.EINTR {
			return
		}
	}
	m.t.Fatal("nobody asks for anything")
}

// hold waits until n requests of a kind have no answer.
func (m *deadMount) hold(opcode uint32, n int) {
	m.t.Helper()
	var held []fuseRequest
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		m.mu.Lock()
		held = slices.DeleteFunc(slices.Clone(m.held), func(r fuseRequest) bool { return r.opcode != opcode })
		m.mu.Unlock()
		if len(held) >= n {
			return
		}
	}
	m.t.Fatalf("%d requests wait, not %d", len(held), n)
}

// answer answers a request. Whoever asked may have gone meanwhile: an error is nothing.
func (m *deadMount) answer(r fuseRequest) {
	const root, file = 1, 2
	le := binary.NativeEndian
	attr := func(node uint64) []byte {
		mode, size := uint32(syscall.S_IFDIR|0o755), uint64(0)
		if node == file {
			mode, size = syscall.S_IFREG|0o755, uint64(len(deadScript))
		}
		b := le.AppendUint64(nil, node)
		b = le.AppendUint64(b, size)
		b = append(b, make([]byte, 44)...) // blocks and times
		b = le.AppendUint32(b, mode)
		b = le.AppendUint32(b, 1)
		return append(b, make([]byte, 20)...)
	}
	const valid = 3600 // seconds
	var body []byte
	errno := syscall.Errno(0)
	switch r.opcode {
	case fuseForget, fuseForgets:
		return
	case fuseInit:
		body = make([]byte, 64)
		le.PutUint32(body, 7)
		le.PutUint32(body[4:], 31)
		le.PutUint32(body[20:], 4096) // largest write
	case fuseGetattr:
		body = append(le.AppendUint64(nil, valid), make([]byte, 8)...)
		body = append(body, attr(r.node)...)
	case fuseLookup: // of the file, by whatever name
		body = append(le.AppendUint64(nil, file), make([]byte, 8)...)
		body = le.AppendUint64(body, valid)
		body = le.AppendUint64(body, valid)
		body = append(body, make([]byte, 8)...)
		body = append(body, attr(file)...)
	case fuseOpen:
		body = make([]byte, 16)
	case fuseRead:
		body = []byte(deadScript)
	default:
		errno = syscall.ENOSYS // it does not have that: go on without
	}
	out := le.AppendUint32(nil, uint32(16+len(body)))
	out = le.AppendUint32(out, uint32(-int32(errno)))
	out = le.AppendUint64(out, r.unique)
	unix.Write(int(m.fuse.Fd()), append(out, body...))
}
