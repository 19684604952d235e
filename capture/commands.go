package capture

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"

	"looptape/store"
)

// Bounds of one answer of commands.
const (
	commandsScan   = 64 << 20 // of the stream that are looked through
	commandsWindow = 4 << 20  // of it at a time, from the end on
)

// CommandsRequest asks for the newest commands of a shell that marks them (OSC 133).
type CommandsRequest struct {
	Pane   string  `json:"pane"`
	Limit  int     `json:"limit"`
	Before *uint64 `json:"before"` // only commands whose end was marked by this offset; nil is all

	Frame int `json:"-"` // bounds the size of the result as JSON, in bytes; 0 does not
}

// CommandsResult is an answer of commands, the oldest first. Those before From are for
// the next answer, if there is More.
type CommandsResult struct {
	Pane     string    `json:"pane"`
	Commands []Command `json:"commands"`
	From     uint64    `json:"from"`
	More     bool      `json:"more"`
}

// Command is a command of a shell. Its output are the bytes [Start, End) of the
// stream; End is missing while it runs, Exit also where nobody knows it. Behind a gap
// that is whether the end is that of the same command, and where the shell is: there
// is no Exit, no Seconds and no Cwd then.
type Command struct {
	Start   uint64   `json:"start"`
	End     *uint64  `json:"end,omitempty"`
	Command string   `json:"command,omitempty"` // if the shell tells it
	Exit    *int     `json:"exit,omitempty"`
	Seconds *float64 `json:"duration_seconds,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
}

// Commands returns the newest commands, as far back as 64 MiB of the stream reach: or
// farther, where the end of a command that began there is all that they have.
func Commands(ctx context.Context, p Pane, q CommandsRequest) (*CommandsResult, error) {
	log := p.Log()
	hi, past := log.End().Offset, false
	if q.Before != nil && *q.Before < hi {
		hi, past = *q.Before, true
	}
	r := &CommandsResult{Pane: q.Pane}
	var marks []mark
	for lo := hi; ; {
		commands, end := pair(marks, past)
		r.Commands, r.From = commands, lo
		r.More = lo > log.Oldest()
		if end != nil && r.More {
			r.From = max(end.end, end.start+1) // so that the next answer has it
			if r.From >= hi && end.kind == programEnd && hi-lo >= commandsScan {
				r.From = lo // of any program, not of a shell that marks: nothing to look for
			}
		}
		if len(r.Commands) > q.Limit || !r.More || hi-lo >= commandsScan && r.From < hi {
			r.keep(len(r.Commands) - q.Limit)
			break
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from := max(log.Oldest(), lo-min(lo, commandsWindow))
		window := commandMarks{most: q.Limit + 2}
		err := marksIn(log, from, lo, window.add)
		if errors.Is(err, store.ErrEvicted) {
			continue
		}
		if err != nil {
			return nil, err
		}
		marks, lo = append(window.marks, marks...), from
	}
	for i := range r.Commands {
		c := &r.Commands[i]
		c.Command, c.Cwd = commandLine(c.Command), Directory(c.Cwd)
	}
	size := 256 + 2*len(q.Pane)
	for i := len(r.Commands) - 1; i >= 0 && q.Frame > 0; i-- {
		size += 256 + 2*(len(r.Commands[i].Command)+len(r.Commands[i].Cwd))
		if size > q.Frame && i == len(r.Commands)-1 {
			return nil, &Error{"unsupported.result_size", "a command alone does not fit the frame: connect with a larger max_frame", nil}
		}
		if size > q.Frame {
			r.keep(i + 1)
			break
		}
	}
	return r, nil
}

// keep leaves the first n commands for the next answer.
func (r *CommandsResult) keep(n int) {
	if n > 0 {
		r.From, r.More = r.Commands[n].Start, true
		r.Commands = r.Commands[n:]
	}
}

// commandMarks are those of a stretch of the stream that pair needs, in its order.
type commandMarks struct {
	marks []mark
	most  int  // commands, the newest
	begun int  // commands of marks
	over  bool // the last command of marks has ended
}

// add takes the next mark.
func (l *commandMarks) add(m mark) {
	same := len(l.marks) > 0 && l.marks[len(l.marks)-1].kind == m.kind
	switch m.kind {
	case directory:
		if same {
			l.marks[len(l.marks)-1] = m
			return
		}
	case lost:
		if same {
			return
		}
	case outputStart:
		if l.begun++; l.begun >= 2*l.most {
			l.cut()
		}
		l.over = false
	case programEnd: // which also ends what is known of the directory
		if same {
			return
		}
		l.over = true
	case promptStart, commandEnd:
		if l.over {
			return
		}
		l.over = true
	default:
		return
	}
	l.marks = append(l.marks, m)
}

// cut drops the oldest commands, but for the directory that they leave behind.
func (l *commandMarks) cut() {
	first, left := len(l.marks), 0
	for left < l.most {
		if first--; l.marks[first].kind == outputStart {
			left++
		}
	}
	kept := l.marks[:0]
	for i := first - 1; i >= 0; i-- {
		m := l.marks[i]
		if m.kind == directory {
			kept = append(kept, m)
		}
		if m.kind == directory || m.kind == lost || m.kind == programEnd {
			break
		}
	}
	l.marks, l.begun = append(kept, l.marks[first:]...), l.most+1
}

// pair makes commands of marks, with the texts of Command and Cwd as the marks have
// them. A command that was begun in front of them is not among these; end is what
// ends that, or nil. past says that there are marks behind these.
func pair(marks []mark, past bool) (commands []Command, end *mark) {
	commands = []Command{}
	cwd, running, gap := "", -1, false // the command that runs; bytes of it are missing
	for i := range marks {
		m := &marks[i]
		switch m.kind {
		case directory:
			cwd = m.text
			continue
		case lost:
			cwd, gap = "", true
			continue
		case programEnd:
			cwd = ""
		}
		if running >= 0 {
			c := &commands[len(commands)-1]
			if c.finish(&marks[running], m); gap {
				c.Exit, c.Seconds = nil, nil
			}
		} else if m.kind != outputStart && len(commands) == 0 && end == nil {
			end = m
		}
		running = -1
		if m.kind == outputStart {
			commands = append(commands, Command{Start: m.end, Command: m.text, Cwd: cwd})
			running, gap = i, false
		}
	}
	if running >= 0 && past {
		commands = commands[:len(commands)-1]
	}
	return commands, end
}

// finish ends a command that was begun at one mark, at another.
func (c *Command) finish(begin, end *mark) {
	c.End = &end.start
	took := float64(end.time.Wall-begin.time.Wall) / 1e9
	if took >= 0 {
		c.Seconds = &took
	}
	if end.kind != commandEnd {
		return
	}
	code, _, _ := strings.Cut(end.text, ";")
	if n, err := strconv.Atoi(code); err == nil && n >= 0 && n <= 255 {
		c.Exit = &n
	}
}

// commandLine is the command that the options of OSC 133 C tell: cmdline_url, which
// is escaped as in a URL, or cmdline.
func commandLine(options string) string {
	for option := range strings.SplitSeq(options, ";") {
		if text, ok := strings.CutPrefix(option, "cmdline_url="); ok {
			if plain, err := url.PathUnescape(text); err == nil {
				return strings.ToValidUTF8(plain, "\uFFFD")
			}
		}
		if text, ok := strings.CutPrefix(option, "cmdline="); ok {
			return strings.ToValidUTF8(text, "\uFFFD")
		}
	}
	return ""
}

// Directory is the directory that OSC 7 names: the path of a file URI of this host,
// which may be left out or be localhost; what else there is, as it is.
func Directory(text string) string {
	if u, err := url.Parse(text); err == nil && u.Scheme == "file" && u.Path != "" && isHere(u.Hostname()) {
		text = u.Path
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

func isHere(host string) bool {
	if host == "" || strings.EqualFold(host, "localhost") {
		return true
	}
	own, err := os.Hostname()
	return err == nil && strings.EqualFold(host, own)
}

// nthCommand finds a command by its number: -1 is the newest. Its error is
// not_found.command.
func nthCommand(ctx context.Context, p Pane, n int) (Command, error) {
	q := CommandsRequest{Limit: -n}
	for {
		r, err := Commands(ctx, p, q)
		if err != nil {
			return Command{}, err
		}
		if len(r.Commands) >= q.Limit {
			return r.Commands[len(r.Commands)-q.Limit], nil
		}
		if !r.More {
			why := "the shell has to mark its commands, see 'looptape shell-integration --help'"
			if known := -n - q.Limit + len(r.Commands); known > 0 {
				why = fmt.Sprintf("%d are known, so that the oldest is %d", known, -known)
			}
			return Command{}, &Error{"not_found.command", fmt.Sprintf("there is no command %d: %s", n, why), nil}
		}
		q.Limit -= len(r.Commands)
		q.Before = &r.From
	}
}
