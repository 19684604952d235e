package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"looptape/capture"
	"looptape/cmd/internal/wire"
)

// unsound is the exit code of a verification that found damage or drift.
const unsound = exitCode(1)

func (a *app) verifyCommand() *cobra.Command {
	var pane string
	cmd := &cobra.Command{
		Use:   "verify [--pane PANE]",
		Short: "Read all recordings again and check them",
		Long: `Read all recordings again, or that of one pane: every checksum and every frame,
and compare each checkpoint with what the log before it replays to. Prints what
is wrong and what is lost by it. The exit code is 0 if all is sound, else 1.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.connect(cmd.Context(), ownerUnless(), wire.CeilingMaxFrame)
			if err != nil {
				return err
			}
			defer c.Close()
			panes := []string{pane} // which the daemon looks up
			if pane == "" {
				if panes, err = listPanes(cmd.Context(), c); err != nil {
					return err
				}
			}
			return a.verify(cmd.Context(), c, panes)
		},
	}
	cmd.Flags().StringVar(&pane, "pane", "", "only the recording of this pane")
	return cmd
}

func listPanes(ctx context.Context, c *wire.Client) (ids []string, err error) {
	var list struct {
		Panes []struct {
			Pane string `json:"pane"`
		} `json:"panes"`
	}
	err = call(ctx, c, "pane.list", map[string]any{}, &list)
	for _, p := range list.Panes {
		ids = append(ids, p.Pane)
	}
	return ids, err
}

// verified is what was found in a pane.
type verified struct {
	capture.VerifyResult
	Found []capture.VerifyItem `json:"found"`
}

// verify verifies panes one after the other and prints what it finds as it goes.
func (a *app) verify(ctx context.Context, c *wire.Client, panes []string) error {
	results, sound := []verified{}, true
	for _, pane := range panes {
		v, err := a.verifyPane(ctx, c, map[string]string{"pane": pane})
		if err != nil {
			return err
		}
		sound = sound && v.Sound
		results = append(results, v)
	}
	if a.json {
		raw, err := wire.Marshal(map[string][]verified{"panes": results})
		if err != nil {
			return err
		}
		fmt.Fprintf(&a.out, "%s\n", raw)
	}
	if !sound {
		return unsound
	}
	return nil
}

// verdict is unsound if the result of pane.verify says so.
func verdict(result json.RawMessage) error {
	var r capture.VerifyResult
	if err := json.Unmarshal(result, &r); err != nil {
		return err
	}
	if !r.Sound {
		return unsound
	}
	return nil
}

// verifyPane calls pane.verify and, unless the output is to be JSON, prints what it
// finds as it goes.
func (a *app) verifyPane(ctx context.Context, c *wire.Client, params any) (v verified, err error) {
	v.Found = []capture.VerifyItem{}
	progress := &progress{what: "verified", shown: !a.json && isTerminal(os.Stderr)}
	raw, err := c.Stream(ctx, "pane.verify", params, func(raw json.RawMessage) error {
		var item capture.VerifyItem
		if err := json.Unmarshal(raw, &item); err != nil {
			return err
		}
		if item.Kind == capture.VerifyProgress {
			progress.show(item.Offset, item.End)
			return nil
		}
		v.Found = append(v.Found, item)
		if !a.json {
			progress.clear()
			printFinding(&a.out, item)
		}
		return nil
	})
	progress.clear()
	if err == nil {
		err = json.Unmarshal(raw, &v.VerifyResult)
	}
	if err != nil || a.json {
		return v, err
	}
	verdict := "sound"
	if !v.Sound {
		verdict = fmt.Sprintf("not sound: %d damages, %d bytes lost, %d checkpoints that drifted", v.Damages, v.LostBytes, v.Drifts)
	}
	fmt.Fprintf(&a.out, "%s: offsets %d to %d, %d frames, %d checkpoints, %d compared: %s\n", v.Pane, v.From, v.Offset, v.Frames, v.Checkpoints, v.Compared, verdict)
	return v, nil
}

func printFinding(w io.Writer, item capture.VerifyItem) {
	fmt.Fprintf(w, "%s at offset %d: %s", item.Kind, item.Offset, item.What)
	if item.LostBytes > 0 {
		fmt.Fprintf(w, "; %d bytes are lost", item.LostBytes)
	}
	if item.End > item.Offset {
		fmt.Fprintf(w, "; no screen behind it can be shown before offset %d", item.End)
	}
	fmt.Fprintln(w)
}
