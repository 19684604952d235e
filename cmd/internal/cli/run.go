package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"looptape/capture"
	"looptape/cmd/internal/wire"
)

func (a *app) runCommand() *cobra.Command {
	var cols, rows int
	var wait, attach bool
	cmd := &cobra.Command{
		Use:   "run [flags] -- COMMAND [ARGUMENT ...]",
		Short: "Run a program in a new recorded pane",
		Long: `Run a program in a new recorded pane, with this environment and in this
directory, and print the id of the pane. Starts a daemon when none runs. Without
a command it runs $SHELL.

The program reads from its pane's terminal: standard input is not passed on, also
with --wait. What is to be read comes by --attach, 'looptape attach', 'looptape
pane write', or a file: looptape run --wait -- sh -c 'sort <words'.`,
		Args: func(cmd *cobra.Command, _ []string) error { return cmd.ValidateFlagGroups() },
		RunE: func(cmd *cobra.Command, argv []string) error {
			if attach {
				if err := needTerminal(); err != nil {
					return err
				}
				cols, rows = terminalSize(os.Stdout)
			}
			c, err := a.connectOrStart(cmd.Context(), ownerUnless(), wire.CeilingMaxFrame)
			if err != nil {
				return err
			}
			defer c.Close()
			pane, err := open(cmd.Context(), c, argv, cols, rows)
			if err != nil {
				return err
			}
			if attach {
				return a.attachRun(cmd.Context(), pane.Pane)
			}
			if !wait {
				return a.printPane(pane)
			}
			return follow(cmd.Context(), c, pane.Pane)
		},
	}
	cmd.Flags().IntVar(&cols, "cols", 80, "width of the pane in columns")
	cmd.Flags().IntVar(&rows, "rows", 24, "height of the pane in rows")
	cmd.Flags().BoolVar(&wait, "wait", false, "print what the program writes, and exit with its exit code")
	cmd.Flags().BoolVar(&attach, "attach", false, "show the program on this terminal, as 'looptape attach' does, and exit with its exit code")
	cmd.MarkFlagsMutuallyExclusive("wait", "attach")
	cmd.MarkFlagsMutuallyExclusive("cols", "attach")
	cmd.MarkFlagsMutuallyExclusive("rows", "attach")
	cmd.Flags().SetInterspersed(false)
	return cmd
}

// paneIDs are the results of window.create.
type paneIDs struct {
	Session string `json:"session"`
	Window  string `json:"window"`
	Pane    string `json:"pane"`
}

func (a *app) printPane(p paneIDs) error {
	line, err := []byte(p.Pane), error(nil)
	if a.json {
		line, err = wire.Marshal(p)
	}
	if err == nil {
		_, err = fmt.Printf("%s\n", line)
	}
	if err != nil {
		return fmt.Errorf("the program runs in pane %s, but that cannot be printed: %w", p.Pane, err)
	}
	return nil
}

// open makes a session with one window that runs argv as this process would.
func open(ctx context.Context, c *wire.Client, argv []string, cols, rows int) (p paneIDs, err error) {
	cwd, err := os.Getwd()
	if err != nil {
		return p, &wire.Error{Code: "invalid_params.cwd", Message: fmt.Sprintf("this directory cannot be found any more, for the program to run in (%v): run it from another", err)}
	}
	if err := checkText(append([]string{cwd}, argv...)); err != nil {
		return p, err
	}
	raw, err := c.Call(ctx, "session.create", map[string]any{"provisional": true})
	if err == nil {
		err = json.Unmarshal(raw, &p)
	}
	if err != nil {
		return p, err
	}
	params := map[string]any{
		"session": p.Session, "cwd": cwd, "cols": cols, "rows": rows,
		"env": environment(), "clean_env": true,
	}
	if len(argv) > 0 {
		params["argv"] = argv
	}
	raw, err = c.Call(ctx, "window.create", params)
	if err != nil {
		c.Call(ctx, "session.kill", map[string]string{"session": p.Session})
		return p, err
	}
	return p, json.Unmarshal(raw, &p)
}

// checkText refuses what JSON cannot carry, rather than change it.
func checkText(texts []string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return &wire.Error{Code: "invalid_params.utf8", Message: fmt.Sprintf("%q is not UTF-8, and would not reach the program as it is: run it by a script", text)}
		}
	}
	return nil
}

// environment is this process's, without what describes its own terminal,
// without the token, and without what is not UTF-8, which it says.
func environment() map[string]string {
	env := map[string]string{}
	for _, kv := range without(os.Environ(), "LOOPTAPE_TOKEN", "TERM", "COLORTERM", "COLUMNS", "LINES") {
		name, value, ok := strings.Cut(kv, "=")
		switch {
		case !ok || name == "":
		case !utf8.ValidString(kv):
			fmt.Fprintf(os.Stderr, "looptape: the variable %q is not UTF-8: the program runs without it\n", name)
		default:
			env[name] = value
		}
	}
	return env
}

// follow copies what a pane writes to stdout, and exits as its program does.
// An interrupt ends the following, not the program.
func follow(ctx context.Context, c *wire.Client, pane string) error {
	code := 0
	err := untilSignal(ctx, func(ctx context.Context) (err error) {
		code, err = copyStream(ctx, c, pane)
		return err
	})
	if signal := exitCode(0); errors.As(err, &signal) {
		briefly(func() {
			fmt.Fprintf(os.Stderr, "\nlooptape: pane %s goes on: 'looptape attach %s' shows it and types into it, 'looptape pane kill --pane %s' ends it\n", pane, pane, pane)
		})
	}
	if err == nil && code != 0 {
		err = exitCode(code)
	}
	return err
}

// poll is how often a pane is asked whether its program has exited: a grandchild
// may hold the terminal, and may write to it.
const poll = 200 * time.Millisecond

// copyStream copies the stream until the program has exited and its output is
// copied, and returns its exit code.
func copyStream(ctx context.Context, c *wire.Client, pane string) (code int, err error) {
	place, at := map[string]any{"since": 0}, uint64(0)
	last := uint64(1<<63 - 1) // where the program's own output ends, once that is known
	for asked := time.Now(); at < last; {
		params := map[string]any{"pane": pane, "format": "raw", "max_bytes": 1 << 20, "wait_ms": poll.Milliseconds()}
		maps.Copy(params, place)
		var r capture.SinceResult
		if err := call(ctx, c, "pane.capture_since", params, &r); err != nil {
			return 0, err
		}
		if r.Data == nil {
			return 0, &wire.Error{Code: "internal.stream", Message: "the recording of pane " + pane + " is shorter than what was read of it before"}
		}
		if r.Missed {
			fmt.Fprintf(os.Stderr, "looptape: %d bytes are missing here\n", r.MissedBytes)
		}
		if _, err := os.Stdout.Write(*r.Data); err != nil {
			return 0, err
		}
		place, at = map[string]any{"cursor": r.Cursor}, r.Offset
		if r.Closed {
			break
		}
		if time.Since(asked) < poll || last < 1<<63-1 {
			continue
		}
		asked = time.Now()
		var info struct {
			State  string `json:"state"`
			Offset uint64 `json:"offset"`
		}
		if err := call(ctx, c, "pane.get", map[string]any{"pane": pane}, &info); err != nil {
			return 0, err
		}
		if info.State != "running" {
			last = info.Offset
		}
	}
	return exitOf(ctx, c, pane)
}

// exitOf is the exit code of a pane's program: its own, or 128 and the signal's
// number.
func exitOf(ctx context.Context, c *wire.Client, pane string) (int, error) {
	var info struct {
		Exit *struct {
			Code   *int   `json:"code"`
			Signal string `json:"signal"`
		} `json:"exit"`
	}
	if err := call(ctx, c, "pane.get", map[string]any{"pane": pane}, &info); err != nil {
		return 0, err
	}
	switch {
	case info.Exit == nil:
		return 0, &wire.Error{Code: "internal.exit", Message: "nobody knows how the program of pane " + pane + " ended"}
	case info.Exit.Code != nil:
		return *info.Exit.Code, nil
	}
	return 128 + int(unix.SignalNum(info.Exit.Signal)), nil
}

func call(ctx context.Context, c *wire.Client, verb string, params, into any) error {
	raw, err := c.Call(ctx, verb, params)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
