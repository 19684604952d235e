package recorder

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"looptape/replay"
	"looptape/store"
)

// frames are all frames of a log, without their data.
func frames(t *testing.T, log *store.Log) (all []store.Frame) {
	t.Helper()
	r, err := log.Read(store.Pos{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for {
		f, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Data = nil
		all = append(all, f)
	}
}

// again respawns what p was with another program.
func again(t *testing.T, p *Pane, argv ...string) *Pane {
	t.Helper()
	log := p.Log()
	term, err := replay.Hydrate(log, log.End())
	if err != nil {
		t.Fatal(err)
	}
	all := frames(t, log)
	next, err := Respawn(t.Context(), log, term, all[len(all)-1].Time, Config{Argv: argv, Env: os.Environ(), Retain: 4 << 20, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		next.Stop()
		next.child.hangUp(0)
	})
	return next
}

// TestRespawn: another program goes on in the log of one that has ended, behind a
// mark and a full checkpoint, in the size that the pane had.
func TestRespawn(t *testing.T) {
	first := record(t, "sh", "-c", "read x; printf one; exit 3")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := first.Resize(ctx, 33, 7); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Write(ctx, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "end", first.Stopped())
	log := first.Log()
	term, err := replay.Hydrate(log, log.End())
	if err != nil {
		t.Fatal(err)
	}
	before := log.End()
	_, err = Respawn(t.Context(), log, term, store.Time{}, Config{Argv: []string{"no-such-program"}, Logger: slog.Default()})
	var start *StartError
	if !errors.As(err, &start) || start.Param != "argv" || log.End() != before {
		t.Errorf("no program: %v, the log ends at %v, not %v", err, log.End(), before)
	}

	second := again(t, first, "sh", "-c", "stty size; exit 4")
	waitFor(t, "second end", second.Stopped())
	if e, _, ok := second.Exit(); !ok || e.Number != 4 {
		t.Errorf("exit %+v", e)
	}
	third := again(t, second, "sleep", "1000")
	// The bytes and offsets are those of one stream: CR LF, "one", "7 33" CR LF.
	if got := string(output(t, log)); got != "\r\none7 33\r\n" {
		t.Errorf("recorded %q", got)
	}
	var respawns []store.Pos
	var marks []store.Kind
	all := frames(t, log)
	for i, f := range all {
		if i > 0 && (f.Time.Mono < all[i-1].Time.Mono || f.Time.Mono-all[i-1].Time.Mono > int64(2*patience)) {
			t.Errorf("frame %d at %v: %v after %v", i, f.Pos, time.Duration(f.Time.Mono), time.Duration(all[i-1].Time.Mono))
		}
		if f.Kind != store.Output {
			marks = append(marks, f.Kind)
		}
		if f.Kind == replay.MarkRespawn {
			respawns = append(respawns, f.End())
		}
	}
	want := []store.Kind{replay.MarkResize, replay.MarkExit, replay.MarkClosed, replay.MarkRespawn, replay.MarkExit, replay.MarkClosed, replay.MarkRespawn}
	if string(kindBytes(marks)) != string(kindBytes(want)) || respawns[0].Offset != 5 || respawns[1].Offset != 11 {
		t.Fatalf("marks %v, respawns at %v", marks, respawns)
	}
	for _, at := range respawns {
		if c, err := log.FullCheckpoint(at); err != nil || c.Pos != at {
			t.Errorf("behind the respawn at %v: checkpoint at %v, %v", at, c.Pos, err)
		}
	}
	if err := third.View(ctx, func(term *replay.Terminal, closed bool) {
		b := term.Bounds()
		history := ""
		for row := range term.Rows(b.Oldest, b.Active) {
			history += string(row.Text)[:5] + "|"
		}
		if closed || b.Cols != 33 || b.Rows != 7 || history != "     |one  |7 33 |" || term.Generation() != 2 {
			t.Errorf("closed %v, %+v, history %q, generation %d", closed, b, history, term.Generation())
		}
	}); err != nil {
		t.Error(err)
	}
}

func kindBytes(kinds []store.Kind) (b []byte) {
	for _, k := range kinds {
		b = append(b, byte(k))
	}
	return b
}

// TestRelease: a terminal that helpers of an exited program hold is hung up, with
// what they wrote recorded; one whose program runs is not.
func TestRelease(t *testing.T) {
	p := record(t, "sh", "-c", `(trap "" HUP; echo helper; exec sleep 1000) & read x; exit 0`)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := p.Await(ctx, 7); err != nil {
		t.Fatal(err)
	}
	if err := p.Release(ctx); !errors.Is(err, ErrRunning) {
		t.Errorf("while it runs: %v", err)
	}
	if _, err := p.Write(ctx, []byte("\n")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "exit", p.Exited())
	for range 2 { // twice is once
		if err := p.Release(ctx); err != nil {
			t.Fatal(err)
		}
	}
	for _, pid := range p.child.members() { // the cleanup would wait for it
		unix.Kill(pid, unix.SIGKILL)
	}
	marks := kinds(t, p.Log())
	if len(marks) != 2 || marks[0].Kind != replay.MarkExit || marks[1].Kind != replay.MarkClosed {
		t.Errorf("marks: %+v", marks)
	}
	if got := string(output(t, p.Log())); got != "helper\r\n\r\n" {
		t.Errorf("recorded %q", got)
	}
	if c, err := p.Log().FullCheckpoint(p.Log().End()); err != nil || c.Pos != p.Log().End() {
		t.Errorf("checkpoint at %v: %v", c.Pos, err)
	}
}
