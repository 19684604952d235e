package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"looptape/cmd/internal/attach"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

func (a *app) attachCommand() *cobra.Command {
	var read bool
	cmd := &cobra.Command{
		Use:   "attach [PANE]",
		Short: "Show a pane on this terminal, and type into it",
		Long: `Show a pane on this terminal and type into its program; without PANE, into the one
whose program was started last and still runs. The pane takes the size of this
terminal.

Ctrl-\ d leaves: press Ctrl-\, then d. The program goes on. Ctrl-\ Ctrl-\ types one
Ctrl-\; before any other key, Ctrl-\ is typed as it is.

With --read nothing is typed, and the pane keeps its size: where it is larger than
this terminal, the part around the cursor is shown. q and Ctrl-C leave as well.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			pane := ""
			if len(args) > 0 {
				pane = args[0]
			}
			return a.attach(cmd.Context(), pane, read)
		},
		ValidArgsFunction: a.listIDs("pane"),
	}
	cmd.Flags().BoolVar(&read, "read", false, "show only: type nothing, and leave the size alone")
	return cmd
}

// attach shows a pane; "" is the one that was started last.
func (a *app) attach(ctx context.Context, pane string, read bool) error {
	if err := needTerminal(); err != nil {
		return err
	}
	if pane == "" {
		c, err := a.connect(ctx, ownerUnless(), wire.CeilingMaxFrame)
		if err != nil {
			return err
		}
		pane, err = newestPane(ctx, c)
		c.Close()
		if err != nil {
			return err
		}
	}
	mode := "write"
	if read {
		mode = "read"
	}
	_, err := a.show(ctx, ownerUnless(), map[string]json.RawMessage{"pane": quote(pane), "mode": quote(mode)})
	return err
}

// attachRun shows a pane that was just made, and exits as its program does if that
// ends meanwhile.
func (a *app) attachRun(ctx context.Context, pane string) error {
	status, err := a.show(ctx, ownerUnless(), map[string]json.RawMessage{"pane": quote(pane), "mode": quote("write")})
	if code := exitCodeOf(status); err == nil && code != 0 {
		err = exitCode(code)
	}
	return err
}

func quote(s string) json.RawMessage {
	raw, _ := wire.Marshal(s) // a string can always be written
	return raw
}

// newestPane is the pane whose program was started last, of those that run.
func newestPane(ctx context.Context, c *wire.Client) (newest string, err error) {
	var list struct {
		Panes []struct {
			Pane    string
			Started time.Time
		}
	}
	if err := call(ctx, c, "pane.list", map[string]any{"state": "running"}, &list); err != nil {
		return "", err
	}
	var started time.Time
	for _, p := range list.Panes {
		if !p.Started.Before(started) {
			newest, started = p.Pane, p.Started
		}
	}
	if newest == "" {
		err = &wire.Error{Code: "not_found.pane", Message: "no program runs in any pane: 'looptape run --attach -- COMMAND' starts one"}
	}
	return newest, err
}

func needTerminal() error {
	for _, f := range []*os.File{os.Stdin, os.Stdout} {
		if !isTerminal(f) {
			return &wire.Error{Code: "invalid_params.terminal", Message: "attaching needs a terminal for input and output: 'looptape pane capture-since' follows a pane without one"}
		}
	}
	return nil
}

// show attaches to a pane and shows it until the end, which it prints.
func (a *app) show(ctx context.Context, token string, params map[string]json.RawMessage) (attach.Status, error) {
	var pane, mode string
	json.Unmarshal(params["pane"], &pane)
	json.Unmarshal(params["mode"], &mode)
	if inside := os.Getenv("LOOPTAPE_PANE"); inside != "" && inside == pane {
		return attach.Status{}, &wire.Error{Code: "conflict.pane", Message: fmt.Sprintf("this is pane %s itself, which would show itself in itself: unset LOOPTAPE_PANE if it is not", pane)}
	}
	fixed := params["cols"] != nil || params["rows"] != nil
	if mode == "write" && !fixed {
		cols, rows := terminalSize(os.Stdout)
		params["cols"], params["rows"] = fmt.Appendf(nil, "%d", cols), fmt.Appendf(nil, "%d", rows)
	}
	socket, h, err := a.greeting(token, wire.CeilingMaxFrame)
	if err != nil {
		return attach.Status{}, err
	}
	client, err := attach.Dial(ctx, socket, h, params)
	if err != nil {
		return attach.Status{}, a.refused(token, err)
	}
	defer client.Close()
	s := newSession(client, pane, mode != "write", fixed)
	end, err := s.run()
	if err != nil {
		return attach.Status{}, err
	}
	if end.exited {
		s.printLast(os.Stdout)
	}
	return end.status, end.say(os.Stderr, pane)
}

// attachVerb is the command of the verb itself, which obeys LOOPTAPE_TOKEN.
func (a *app) attachVerb(cmd *cobra.Command, v *manifest.Verb) error {
	if err := needTerminal(); err != nil {
		return err
	}
	_, err := a.show(cmd.Context(), os.Getenv("LOOPTAPE_TOKEN"), parameters(cmd, v))
	return err
}

// exitCodeOf is the exit code of a program that ended so: its own, or 128 and the
// signal's number.
func exitCodeOf(s attach.Status) int {
	switch {
	case s.Code != nil:
		return *s.Code
	case s.Signal != "":
		return 128 + int(unix.SignalNum(s.Signal))
	}
	return 0 // it goes on, or nobody knows
}
