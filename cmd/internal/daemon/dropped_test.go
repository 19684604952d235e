package daemon

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"looptape/cmd/internal/attach"
)

// TestDroppedAttachments drops connections in the middle of a line, of the answer to
// pane.attach, of frames in both directions: nothing of them stays in the daemon, no
// goroutine and no descriptor, and the pane that they were attached to goes on.
func TestDroppedAttachments(t *testing.T) {
	d := startSubject(t)
	var made struct{ Session, Pane string }
	d.must("session.create", nil, &made)
	d.must("window.create", map[string]any{"session": made.Session, "argv": []string{"sh", "-c", "while :; do seq 1 20000; sleep 0.05; done"}}, &made)
	attachLine := func(mode string) string {
		return fmt.Sprintf(`{"id":1,"verb":"hello","params":{"proto":1,"token":%q}}`+"\n"+`{"id":2,"verb":"pane.attach","params":{"pane":%q,"mode":%q,"cols":80,"rows":24,"history":1000}}`+"\n", d.token, made.Pane, mode)
	}
	before, files := runtime.NumGoroutine(), descriptors()
	n := 2000
	if testing.Short() {
		n = 200
	}
	var all sync.WaitGroup
	slots := make(chan struct{}, 50)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			nc, err := net.Dial("unix", d.socket)
			if err != nil {
				t.Error(err)
				return
			}
			defer nc.Close()
			nc.SetDeadline(time.Now().Add(patience))
			drop(t, nc, i%6, attachLine)
		})
	}
	all.Wait()
	for deadline := time.Now().Add(patience); runtime.NumGoroutine() > before+5 || descriptors() > files+5; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			stacks := make([]byte, 1<<20)
			t.Fatalf("%d goroutines, %d before; %d descriptors, %d before\n%.5000s", runtime.NumGoroutine(), before, descriptors(), files, stacks[:runtime.Stack(stacks, true)])
		}
	}
	type at struct{ Offset uint64 }
	var first, later at
	d.must("pane.get", map[string]any{"pane": made.Pane}, &first)
	for deadline := time.Now().Add(patience); later.Offset <= first.Offset; time.Sleep(time.Millisecond) {
		if d.must("pane.get", map[string]any{"pane": made.Pane}, &later); time.Now().After(deadline) {
			t.Fatalf("the pane stands still at %d", first.Offset)
		}
	}
}

// drop leaves a connection at one of six places.
func drop(t *testing.T, nc net.Conn, place int, attachLine func(mode string) string) {
	input := attach.Append(nil, attach.Frame{Type: attach.Input, Data: []byte("typed")})
	in := bufio.NewReader(nc)
	read := func(lines, bytes int) {
		for range lines {
			if _, err := in.ReadString('\n'); err != nil {
				t.Error(err)
			}
		}
		io.CopyN(io.Discard, in, int64(bytes))
	}
	switch place {
	case 0: // in the middle of the request
		line := attachLine("read")
		io.WriteString(nc, line[:len(line)-2])
	case 1: // before the answer is read
		io.WriteString(nc, attachLine("write"))
	case 2: // behind the answer, in the middle of the first frame
		io.WriteString(nc, attachLine("read"))
		read(2, 100)
	case 3: // in the middle of a frame from the client
		io.WriteString(nc, attachLine("write"))
		read(2, 5000)
		nc.Write(input[:len(input)-3])
	case 4: // in the middle of the length of one
		io.WriteString(nc, attachLine("write")+string(input[:2]))
		read(2, 0)
	case 5: // behind one that is none
		io.WriteString(nc, attachLine("read"))
		read(2, 0)
		io.WriteString(nc, "\xff\xff\xff\xff\x63")
	}
}

// descriptors is the number of this process's descriptors, 0 where nobody tells.
func descriptors() int {
	names, _ := os.ReadDir("/proc/self/fd")
	return len(names)
}
