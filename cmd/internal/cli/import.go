package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/wire"
)

// importChunk is how much of a file goes into one call, in bytes.
const importChunk = 512 << 10

func (a *app) importCommand() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "import [flags] FILE",
		Short: "Make an archive of another recorder's asciicast",
		Long: `Make an archive of an asciicast of version 2 or 3, as asciinema records it, in a
session of its own, and print the id of the pane. It has the times, sizes, markers
and the exit of the file, and is read like any pane. What was typed is left out.
FILE may be -, standard input. Starts a daemon when none runs. A file that cannot
be read is refused with the number of the line. Of an import that does not come to
its end, killed ones included, nothing stays.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("looptape import needs one FILE, or - for standard input")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			in, title := os.Stdin, "import"
			if args[0] != "-" {
				f, err := os.Open(args[0])
				if err != nil {
					return &wire.Error{Code: "invalid_params.file", Message: err.Error()}
				}
				defer f.Close()
				in, title = f, filepath.Base(args[0])
			}
			if !cmd.Flags().Changed("name") {
				name = title
			}
			if err := checkText([]string{name}); err != nil {
				return err
			}
			return untilSignal(cmd.Context(), func(ctx context.Context) error { return a.importFile(ctx, in, name) })
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of the session (default: that of the file)")
	return cmd
}

// importFile imports a file into a new session, which is there when the pane is.
func (a *app) importFile(ctx context.Context, in io.Reader, name string) error {
	c, err := a.connectOrStart(ctx, ownerUnless(), wire.CeilingMaxFrame)
	if err != nil {
		return err
	}
	defer c.Close()
	var made paneIDs
	if err := call(ctx, c, "session.create", map[string]any{"name": name, "provisional": true}, &made); err != nil {
		return err
	}
	raw, err := sendFile(ctx, c, made.Session, in)
	if err != nil {
		return err
	}
	var result struct {
		Pane    string `json:"pane"`
		Ignored int    `json:"ignored"`
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return err
	}
	if result.Ignored > 0 && !a.json {
		fmt.Fprintf(os.Stderr, "looptape: %d events, such as input, have no place in a recording and were left out\n", result.Ignored)
	}
	line := []byte(result.Pane)
	if a.json {
		line = raw
	}
	if _, err = fmt.Printf("%s\n", line); err != nil {
		return fmt.Errorf("the file was imported as pane %s, but that cannot be printed: %w", result.Pane, err)
	}
	return nil
}

// sendFile sends a file in pieces, as they come, and returns the last result.
func sendFile(ctx context.Context, c *wire.Client, session string, in io.Reader) (json.RawMessage, error) {
	chunk := make([]byte, min(importChunk, c.Welcome.MaxFrame/4*3-512))
	params := map[string]any{"session": session}
	for {
		n, err := in.Read(chunk)
		end := errors.Is(err, io.EOF)
		if err != nil && !end {
			return nil, &wire.Error{Code: "invalid_params.file", Message: err.Error()}
		}
		params["data"], params["end"] = chunk[:n], end
		raw, err := c.Call(ctx, "pane.import", params)
		if err != nil || end {
			return raw, err
		}
		var result struct {
			Import string `json:"import"`
		}
		if err := json.Unmarshal(raw, &result); err != nil {
			return nil, err
		}
		params["import"] = result.Import
	}
}
