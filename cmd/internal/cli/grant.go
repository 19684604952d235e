package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/grant"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// saveGrant is grant.create with --save. What stands in for the token on stdout
// is, like a token, what LOOPTAPE_TOKEN is to be set to.
func (a *app) saveGrant(cmd *cobra.Command, c *wire.Client, v *manifest.Verb, params map[string]json.RawMessage) error {
	var name string
	json.Unmarshal(params["name"], &name)
	var file *tokenFile
	if grant.CheckName(name) == nil { // else the daemon says what is wrong with it
		var err error
		if file, err = reserveToken(name); err != nil {
			return err
		}
		defer file.done()
	}
	result, err := c.Call(cmd.Context(), v.Name, params)
	if err != nil {
		return err
	}
	if file == nil {
		return errors.New("the daemon took a name under which no token can be saved: revoke it")
	}
	if err := file.save(result); err != nil {
		return err
	}
	if a.json {
		return a.print(v, result)
	}
	fmt.Fprintln(&a.out, "@"+name)
	return nil
}

// revokeGrant is grant.revoke, after which a file that holds the token is of no use.
func (a *app) revokeGrant(cmd *cobra.Command, c *wire.Client, v *manifest.Verb, params map[string]json.RawMessage) error {
	var name string
	json.Unmarshal(params["name"], &name)
	saved := a.savedToken(cmd.Context(), name)
	result, err := c.Call(cmd.Context(), v.Name, params)
	if err != nil {
		return err
	}
	if saved != "" {
		if err := os.Remove(saved); err != nil {
			return fmt.Errorf("the token is revoked, but still saved: %w", err)
		}
		if !a.json {
			fmt.Fprintf(os.Stderr, "looptape: removed %s, where it was saved\n", saved)
		}
	}
	return a.print(v, result)
}

// savedToken is the file that holds the daemon's token called name, or "": one that is
// saved under that name may be another daemon's.
func (a *app) savedToken(ctx context.Context, name string) string {
	path, err := savedPath(name)
	if err != nil {
		return ""
	}
	c, err := a.connect(ctx, "@"+name, wire.DefaultMaxFrame)
	if err != nil {
		return ""
	}
	defer c.Close()
	if c.Welcome.Caller != name {
		return ""
	}
	return path
}

func printGrant(w, notes io.Writer, result []byte) error {
	fmt.Fprintln(notes, "looptape: this is the only time that the token is shown: keep it, or create with --save")
	return printField("token")(w, notes, result)
}

func printGrants(w, _ io.Writer, result []byte) error {
	var list struct {
		Grants []grant.Entry `json:"grants"`
		More   bool          `json:"more"`
	}
	if err := json.Unmarshal(result, &list); err != nil {
		return err
	}
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tCREATED\tGRANTS")
	for _, e := range list.Grants {
		created, may := "-", "-"
		if !e.Created.IsZero() {
			created = e.Created.Local().Format(time.RFC3339)
		}
		if len(e.Grants) > 0 {
			var grants []string
			for _, g := range e.Grants {
				grants = append(grants, g.String())
			}
			may = strings.Join(grants, "; ")
		}
		fmt.Fprintf(table, "%s\t%s\t%s\n", e.Name, created, may)
	}
	if list.More {
		fmt.Fprintln(table, "(there are more than fit)")
	}
	return table.Flush()
}
