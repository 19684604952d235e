package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/wire"
)

// fails launches a daemon that is to refuse its directory, and returns what it
// says.
func (s *server) fails() string {
	s.t.Helper()
	s.launch()
	kill := time.AfterFunc(patience, func() { s.cmd.Process.Kill() })
	defer kill.Stop()
	err := s.cmd.Wait()
	code := s.cmd.ProcessState.ExitCode()
	s.cmd = nil
	if err == nil || code != 7 {
		s.t.Fatalf("the daemon ends with %v instead of code 7:\n%s", err, s.log)
	}
	return s.log.String()
}

// TestOtherOwner starts a daemon in a directory of somebody else's.
func TestOtherOwner(t *testing.T) {
	s := &server{t: t, ctx: t.Context()}
	if os.Geteuid() == 0 {
		s.dir = filepath.Join(t.TempDir(), "s")
		if err := errors.Join(os.Mkdir(s.dir, 0o700), os.Chown(s.dir, 12345, 12345)); err != nil {
			t.Fatal(err)
		}
	} else {
		s.dir = "/usr"
	}
	if said := s.fails(); !strings.Contains(said, " belongs to uid ") || !strings.Contains(said, "give another --dir") {
		t.Errorf("it says: %s", said)
	}
	if names, _ := os.ReadDir(s.dir); os.Geteuid() == 0 && len(names) > 0 {
		t.Errorf("it has made %v", names)
	}
}

// TestFullDirectory starts a daemon on a full disk, then frees it.
func TestFullDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount a small file system")
	}
	disk := t.TempDir()
	if err := unix.Mount("none", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(disk, unix.MNT_DETACH) })
	fill := filepath.Join(disk, "fill")
	if err := os.WriteFile(fill, make([]byte, 8<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("filling the disk: %v", err)
	}
	s := &server{t: t, ctx: t.Context(), dir: filepath.Join(disk, "s")}
	t.Cleanup(func() { s.end(syscall.SIGKILL) })
	if said := s.fails(); !strings.Contains(said, "is full: free some space") {
		t.Errorf("it says: %s", said)
	}
	if err := os.Remove(fill); err != nil {
		t.Fatal(err)
	}
	s.start()
	c := s.client()
	pane := s.run(c, 80, 24, "echo", "there is room")
	s.until(c, pane, "exited", exited)
	if got := s.raw(c, pane); string(got) != "there is room\r\n" {
		t.Errorf("recorded %q", got)
	}
}

// TestCorruptedStore damages each file of a store, one at a time. A daemon then
// refuses the store and says why, or serves what it holds and names what is
// damaged; it never serves anything else, and never falls over.
func TestCorruptedStore(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	flood := s.run(c, 80, 24, "seq", "1", "100000")
	small := s.run(c, 80, 24, "echo", "hello")
	s.until(c, flood, "exited", exited)
	s.until(c, small, "exited", exited)
	want := map[string][]byte{flood: s.raw(c, flood), small: s.raw(c, small)}
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("stop: %v\n%s", err, s.log)
	}
	outcomes := map[string]int{}
	for _, file := range regularFiles(t, filepath.Join(s.dir, "store")) {
		for _, part := range []float64{0, 0.5, 0.99} {
			damaged := s.copyDir(filepath.Join(t.TempDir(), "s"))
			outcome := damaged.serveDamaged(file, part, want)
			outcomes[outcome]++
		}
	}
	t.Logf("outcomes: %v", outcomes)
	if outcomes["refused"] == 0 || outcomes["internal.damaged"] == 0 || outcomes["served"] == 0 {
		t.Errorf("not every outcome was seen: %v", outcomes)
	}
}

func regularFiles(t *testing.T, dir string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		if info, err := d.Info(); err != nil || info.Size() == 0 {
			return err
		}
		rel, err := filepath.Rel(filepath.Dir(dir), path)
		files = append(files, rel)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func (s *server) copyDir(to string) *server {
	s.t.Helper()
	if err := os.CopyFS(to, os.DirFS(filepath.Join(s.dir, "store"))); err != nil {
		s.t.Fatal(err)
	}
	dir := filepath.Join(filepath.Dir(to), "d")
	if err := errors.Join(os.Mkdir(dir, 0o700), os.Rename(to, filepath.Join(dir, "store"))); err != nil {
		s.t.Fatal(err)
	}
	return &server{t: s.t, ctx: s.ctx, dir: dir}
}

// serveDamaged flips a byte of a file, at a part of its length, and sees what a
// daemon makes of it.
func (s *server) serveDamaged(file string, part float64, want map[string][]byte) (outcome string) {
	t := s.t
	t.Helper()
	path := filepath.Join(s.dir, file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[int(part*float64(len(data)))] ^= 0x10
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s.launch()
	defer s.end(syscall.SIGKILL)
	ended := make(chan error, 1)
	cmd := s.cmd
	go func() { ended <- cmd.Wait() }()
	defer func() { cmd.Process.Kill(); s.cmd = nil }()
	var c *wire.Client
	for deadline := time.Now().Add(patience); c == nil; time.Sleep(2 * time.Millisecond) {
		select {
		case <-ended:
			if code := cmd.ProcessState.ExitCode(); code != 7 || !strings.Contains(s.log.String(), "looptape: ") {
				t.Fatalf("%s at %v: exit code %d:\n%s", file, part, code, s.log)
			}
			return "refused"
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s at %v: neither listens nor ends", file, part)
		}
		c, _ = dial(s.dir)
	}
	defer c.Close()
	outcome = "served"
	for pane, bytes := range want {
		if code := s.compare(c, pane, bytes); code != "" {
			outcome = code
		}
	}
	return outcome
}

// compare reads a pane whose log may be damaged, and returns the code of the
// error that says so.
func (s *server) compare(c *wire.Client, pane string, want []byte) (code string) {
	s.t.Helper()
	var got bytes.Buffer
	_, err := c.Stream(s.ctx, "pane.export", obj{"pane": pane, "format": "raw"}, func(item json.RawMessage) error {
		var chunk struct{ Data []byte }
		err := json.Unmarshal(item, &chunk)
		got.Write(chunk.Data)
		return err
	})
	var e *wire.Error
	if errors.As(err, &e) {
		code = e.Code
		if code == "internal.error" {
			s.t.Errorf("damage is not said to be damage: %s", e.Message)
		}
	}
	if err == nil && !bytes.Equal(got.Bytes(), want) || !bytes.HasPrefix(want, got.Bytes()) {
		s.t.Errorf("%s: %d bytes that were never written, or only %d of %d: %v", pane, got.Len(), got.Len(), len(want), err)
	}
	return code
}

// TestRestartMends damages the recording of a pane in the middle. The daemon tells it
// and says to restart it; from then on it costs what it costs, and nothing else.
func TestRestartMends(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.client()
	flood := s.run(c, 80, 24, "seq", "1", "1500000")
	small := s.run(c, 80, 24, "echo", "hello")
	s.until(c, flood, "exited", exited)
	s.until(c, small, "exited", exited)
	want := s.raw(c, flood)
	if err := s.end(syscall.SIGTERM); err != nil {
		t.Fatalf("stop: %v\n%s", err, s.log)
	}
	name, largest := "", []byte(nil)
	for _, file := range regularFiles(t, filepath.Join(s.dir, "store")) {
		if b, err := os.ReadFile(filepath.Join(s.dir, file)); err != nil {
			t.Fatal(err)
		} else if strings.HasSuffix(file, ".sst") && len(b) > len(largest) {
			name, largest = filepath.Join(s.dir, file), b
		}
	}
	largest[len(largest)/2] ^= 0x10
	if err := os.WriteFile(name, largest, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, advised := range []bool{true, false} {
		s.start()
		c := s.client()
		r := s.verify(c, flood)
		if r.Sound || r.Lost == 0 || r.Lost > uint64(len(want))/2 || r.Offset < uint64(len(want)) {
			t.Errorf("of %d bytes: %+v", len(want), r)
		}
		if code := s.compare(c, flood, want); code != "internal.damaged" {
			t.Errorf("the export ends with %q", code)
		}
		if r := s.verify(c, small); !advised && !r.Sound {
			t.Errorf("the other pane: %+v", r)
		}
		said := strings.Join(call[struct{ Advice []string }](s, c, "doctor", obj{}).Advice, "\n")
		if strings.Contains(said, "restart the daemon") != advised {
			t.Errorf("doctor says %q", said)
		}
		if err := s.end(syscall.SIGTERM); err != nil {
			t.Fatalf("stop: %v\n%s", err, s.log)
		}
	}
}

// verified is the result of pane.verify.
type verified struct {
	Sound  bool   `json:"sound"`
	Lost   uint64 `json:"lost_bytes"`
	Offset uint64 `json:"offset"`
}

func (s *server) verify(c *wire.Client, pane string) (r verified) {
	s.t.Helper()
	result, err := c.Stream(s.ctx, "pane.verify", obj{"pane": pane}, func(json.RawMessage) error { return nil })
	if err == nil {
		err = json.Unmarshal(result, &r)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}
