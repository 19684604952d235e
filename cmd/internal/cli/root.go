package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/wire"
)

// app is what all commands share: the global flags.
type app struct {
	dirFlag    string
	socketFlag string
	json       bool
	maxFrame   int
	running    bool // a command has begun: the command line was in order
	out        printed
}

// printed is stdout for those who do not look whether it can be written to: Main does.
type printed struct{ err error }

func (p *printed) Write(b []byte) (int, error) {
	if p.err == nil {
		_, p.err = os.Stdout.Write(b)
	}
	return len(b), nil
}

// exitCode is an error that only says with which code to exit.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// Main runs the command line of the process and returns its exit code.
func Main() int {
	a := &app{}
	err := a.root().Execute()
	var code exitCode
	if err == nil || errors.As(err, &code) {
		err = cmp.Or(a.out.err, err)
	}
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	var e *wire.Error
	if !errors.As(err, &e) {
		e = &wire.Error{Code: "internal.error", Message: err.Error()}
		if !a.running && a.out.err == nil { // cobra says so of flags and commands that it does not know
			e.Code = "invalid_params.usage"
		}
	}
	a.json = a.json || slices.Contains(os.Args[1:], "--json")
	a.printError(e)
	return e.Exit()
}

func (a *app) printError(e *wire.Error) {
	if a.json {
		if raw, err := wire.Marshal(map[string]*wire.Error{"error": e}); err == nil {
			if _, err := fmt.Fprintf(os.Stdout, "%s\n", raw); err == nil {
				return
			}
		}
	}
	fmt.Fprintf(os.Stderr, "looptape: %s\n", forPerson(e))
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "looptape",
		Short: "A flight recorder for terminals",
		Long: `looptape runs programs in recorded panes: a daemon appends every byte that they
write to a compressed log, follows it with an exact terminal, and answers from
both. Recordings outlive their programs and the daemon.

  looptape run --wait -- make test         run and record a program
  looptape attach                          show it on this terminal, and type into it
  looptape pane list                       what there is
  looptape pane capture --pane p0          the screen
  looptape pane capture-rows --pane p0 --tail 200
  looptape pane capture-since --pane p0    what is new, by a cursor
  looptape pane export --pane p0 --format asciicast`,
		Version:       daemon.Version,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(cmd *cobra.Command, _ []string) {
			a.running = true
			if cmd.Name() != "serve" {
				quitQuietly()
			}
		},
	}
	root.SetOut(&a.out)
	root.SetVersionTemplate("looptape {{.Version}}\n")
	flags := root.PersistentFlags()
	flags.StringVar(&a.dirFlag, "dir", "", "state directory (default $LOOPTAPE_DIR, else looptape in $XDG_STATE_HOME or ~/.local/state)")
	flags.StringVar(&a.socketFlag, "socket", "", "socket of the daemon (default $LOOPTAPE_SOCKET, else looptape.sock in the state directory)")
	flags.BoolVar(&a.json, "json", false, "print the result, or the error, as JSON on one line")
	flags.IntVar(&a.maxFrame, "max-frame", 0, "largest frame of the connection, in bytes (4096 to 67108864; default $LOOPTAPE_MAX_FRAME, else what suits the command)")
	root.AddCommand(a.serveCommand(), a.runCommand(), a.attachCommand(), a.importCommand(), a.verifyCommand(), a.mcpCommand(), a.shellIntegrationCommand())
	a.addVerbs(root)
	a.completeIDs(root)
	root.SetFlagErrorFunc(plainFlagError)
	strictHelp(root)
	return root
}

// dir is the state directory.
func (a *app) dir() (string, error) {
	dir, err := daemon.ResolveDir(a.dirFlag)
	if err != nil {
		err = &wire.Error{Code: "invalid_params.usage", Message: err.Error()}
	}
	return dir, err
}
