package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"looptape/cmd/internal/attach"
	"looptape/cmd/internal/mirror"
	"looptape/cmd/internal/wire"
	"looptape/replay"
)

const (
	// framePause is the least time between two drawings: what comes faster is not
	// for eyes.
	framePause = 10 * time.Millisecond
	// notePause is how long a note is shown.
	notePause = 3 * time.Second
)

// session is an attachment on the terminal of this process.
type session struct {
	client *attach.Client
	pane   string
	read   bool // types nothing
	fixed  bool // the viewport does not follow the terminal
	before *unix.Termios

	over  chan end      // holds one: why it is over
	dirty chan struct{} // holds one: there may be something to draw
	stop  chan struct{} // closed when nothing more is to be drawn

	mu         sync.Mutex
	emulator   attach.Emulator
	cols, rows int
	note       string
	bells      int         // that are to be rung
	told       *wire.Error // by the daemon, last

	drawing sync.Mutex // held while the terminal is written to; guards what follows
	mirror  mirror.Mirror
	entered bool // the terminal is to be left again
	asleep  bool // the terminal is somebody else's until SIGCONT
}

// end is how an attachment ended: exactly one of its fields is set, or detached.
type end struct {
	detached bool
	exited   bool
	status   attach.Status
	signal   syscall.Signal
	err      error
}

func newSession(c *attach.Client, pane string, read, fixed bool) *session {
	s := &session{
		client: c, pane: pane, read: read, fixed: fixed,
		over: make(chan end, 1), dirty: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	s.emulator.Events = s.event
	s.mirror.ReadOnly = read
	s.cols, s.rows = terminalSize(os.Stdout)
	return s
}

// run shows the pane until the end. The terminal is then as it was before.
func (s *session) run() (end, error) {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, unix.SIGTERM, unix.SIGHUP, unix.SIGINT, unix.SIGQUIT)
	defer signal.Stop(ends)
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGWINCH, unix.SIGTSTP, unix.SIGCONT)
	defer signal.Stop(signals)
	signal.Stop(quits)
	defer signal.Notify(quits, unix.SIGQUIT)
	var err error
	if s.before, err = rawMode(os.Stdin); err != nil {
		return end{}, fmt.Errorf("set up the terminal: %w", err)
	}
	defer s.restore()
	if s.read {
		s.say(fmt.Sprintf("reading %s; to leave press Ctrl-\\ and then d, or q", s.pane))
	} else {
		s.say(fmt.Sprintf("attached to %s; to leave press Ctrl-\\ and then d", s.pane))
	}
	go s.receive()
	go s.typeKeys()
	go s.draw()
	go s.obey(signals)
	select {
	case sig := <-ends:
		return end{signal: sig.(syscall.Signal)}, nil
	case e := <-s.over:
		if e.detached {
			s.client.Detach()
		}
		return e, e.err
	}
}

// obey does what the terminal and its shell ask for. It ends when s.stop is closed;
// restore waits for it by taking s.drawing.
func (s *session) obey(signals <-chan os.Signal) {
	defer s.caught()
	for {
		select {
		case sig := <-signals:
			switch sig {
			case unix.SIGWINCH:
				s.resized()
			case unix.SIGTSTP:
				s.suspend()
			case unix.SIGCONT:
				s.resume()
			}
		case <-s.stop:
			return
		}
	}
}

// finish says that it is over, unless somebody has.
func (s *session) finish(e end) {
	select {
	case s.over <- e:
	default:
	}
}

// caught makes an end of a panic.
func (s *session) caught() {
	if r := recover(); r != nil {
		s.finish(end{err: fmt.Errorf("panic: %v\n%s", r, debug.Stack())})
	}
}

// receive obeys the daemon. It ends with the connection; nobody waits for it.
func (s *session) receive() {
	defer s.caught()
	for {
		f, err := s.client.Next()
		if err != nil {
			s.finish(end{err: s.broken(err)})
			return
		}
		s.mu.Lock()
		switch f.Type {
		case attach.Error:
			s.told = attach.ParseError(f.Data)
		default:
			err = s.emulator.Apply(f)
		}
		s.mu.Unlock()
		switch {
		case err != nil:
			s.finish(end{err: err})
			return
		case f.Type == attach.Error:
			s.say(s.told.Message)
		case f.Type == attach.Exit:
			status, err := attach.ParseStatus(f.Data)
			s.finish(end{exited: true, status: status, err: err})
			return
		}
		s.stir()
	}
}

// broken is what the end of the connection means.
func (s *session) broken(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if errors.Is(err, io.EOF) && s.told != nil {
		return s.told
	}
	return &wire.Error{Code: "unavailable.connection", Message: fmt.Sprintf("the connection to the daemon broke: 'looptape pane get --pane %s' says whether the pane is still there", s.pane)}
}

// typeKeys sends what is typed. It ends when the terminal does, or the connection;
// nobody waits for it.
func (s *session) typeKeys() {
	defer s.caught()
	var keys mirror.Keys
	buf := make([]byte, 32<<10)
	for {
		n, err := os.Stdin.Read(buf)
		if err != nil {
			s.finish(end{signal: syscall.SIGHUP})
			return
		}
		s.quiet()
		input, detach := keys.Feed(buf[:n])
		if s.read {
			detach = detach || bytes.ContainsAny(input, "q\x03")
		} else if err := s.client.Input(input); err != nil {
			return // receive finds out why
		}
		if detach {
			s.finish(end{detached: true}) // before the daemon is told, who then ends the connection
			return
		}
	}
}

// event is told what the program does beside its screen; s.mu is held.
func (s *session) event(e replay.Event) {
	if e.Kind == replay.Bell {
		s.bells++
	}
}

// say shows a note for a while.
func (s *session) say(note string) {
	s.mu.Lock()
	s.note = note
	s.mu.Unlock()
	s.stir()
	time.AfterFunc(notePause, func() {
		s.mu.Lock()
		if s.note == note {
			s.note = ""
		}
		s.mu.Unlock()
		s.stir()
	})
}

// quiet takes the note away.
func (s *session) quiet() {
	s.mu.Lock()
	was := s.note
	s.note = ""
	s.mu.Unlock()
	if was != "" {
		s.stir()
	}
}

// stir has the terminal drawn.
func (s *session) stir() {
	select {
	case s.dirty <- struct{}{}:
	default:
	}
}

// resized follows the size of the terminal.
func (s *session) resized() {
	cols, rows := terminalSize(os.Stdout)
	s.mu.Lock()
	s.cols, s.rows = cols, rows
	s.mu.Unlock()
	if !s.read && !s.fixed {
		s.client.Viewport(cols, rows) // receive finds out when it fails
	}
	s.stir()
}

// draw draws what there is to draw. It ends when s.stop is closed; restore waits for it
// by taking s.drawing.
func (s *session) draw() {
	defer s.caught()
	s.onTerminal(s.enter)
	for {
		select {
		case <-s.dirty:
		case <-s.stop:
			return
		}
		s.onTerminal(s.drawOnce)
		time.Sleep(framePause)
	}
}

// onTerminal runs f, which holds s.drawing then, unless the terminal is being restored.
func (s *session) onTerminal(f func()) {
	s.drawing.Lock()
	defer s.drawing.Unlock()
	select {
	case <-s.stop:
	default:
		f()
	}
}

func (s *session) enter() {
	s.entered = true
	io.WriteString(os.Stdout, mirror.Enter)
}

func (s *session) drawOnce() {
	if s.asleep {
		return
	}
	s.mu.Lock()
	var out []byte
	if s.emulator.Term != nil {
		out = s.mirror.Append(out, s.emulator.Term, s.cols, s.rows, s.note)
	}
	if s.bells > 0 { // many at once are one
		out = append(out, 7)
		s.bells = 0
	}
	s.mu.Unlock()
	if len(out) > 0 {
		os.Stdout.Write(out) // a terminal that has gone shows in typeKeys
	}
}

// suspend stops this process as its shell expects; SIGCONT resumes it.
func (s *session) suspend() {
	s.onTerminal(func() {
		os.Stdout.Write(s.mirror.Leave(nil))
		setMode(os.Stdin, s.before)
		s.asleep = true
		unix.Kill(unix.Getpid(), unix.SIGSTOP) // which takes effect now or soon
	})
}

// resume draws everything anew on a terminal that others have used.
func (s *session) resume() {
	s.onTerminal(func() {
		s.asleep = false
		rawMode(os.Stdin)
		s.mirror = mirror.Mirror{ReadOnly: s.read}
		s.enter()
	})
	s.resized()
}

// restore makes the terminal what it was before. One that takes nothing is waited for
// for a while only.
func (s *session) restore() {
	close(s.stop)
	briefly(s.tidy)
	setMode(os.Stdin, s.before)
}

// tidy ends when the terminal has taken the last bytes.
func (s *session) tidy() {
	s.drawing.Lock()
	defer s.drawing.Unlock()
	if s.entered {
		os.Stdout.Write(s.mirror.Leave(nil))
	}
}

// printLast prints the last screen of a program that has exited, unless that was none
// to read behind it.
func (s *session) printLast(w io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.emulator.Term
	if t == nil || t.Bounds().Screen != replay.Primary {
		return
	}
	b := t.Bounds()
	last := 0
	y := 0
	for r := range t.Rows(b.Active, b.End) {
		if y++; len(bytes.TrimSpace(r.Text)) > 0 {
			last = y
		}
	}
	var out []byte
	for y := range last {
		out = append(t.AppendRow(out, y, s.cols), '\n')
	}
	w.Write(out)
}

// say says on w how the attachment ended. The error is that of a command that was ended
// by a signal.
func (e end) say(w io.Writer, pane string) error {
	goesOn := fmt.Sprintf("it goes on, and 'looptape attach %s' comes back to it", pane)
	switch {
	case e.detached:
		fmt.Fprintf(w, "looptape: left %s: %s\n", pane, goesOn)
	case e.signal != 0:
		fmt.Fprintf(w, "looptape: left %s by %s: %s\n", pane, unix.SignalName(e.signal), goesOn)
		return endedBy(e.signal)
	default:
		how := "has ended, and nobody knows how"
		switch s := e.status; {
		case s.Code != nil:
			how = fmt.Sprintf("has exited with code %d", *s.Code)
		case s.Signal != "":
			how = "was ended by " + s.Signal
		}
		if !e.status.Closed {
			how += "; others hold its terminal"
		}
		fmt.Fprintf(w, "looptape: the program of %s %s\n", pane, strings.TrimSpace(how))
	}
	return nil
}
