package cli

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// completionPatience is how long a shell waits for the ids of a daemon.
const completionPatience = 2 * time.Second

// completeFlags has the values of a verb's flags completed as far as the manifest
// knows them.
func completeFlags(cmd *cobra.Command, v *manifest.Verb) {
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	for i := range v.Params {
		p := &v.Params[i]
		complete := cobra.NoFileCompletions
		switch {
		case p.Choices != nil:
			complete = cobra.FixedCompletions(p.Choices, cobra.ShellCompDirectiveNoFileComp)
		case p.Name == "cwd":
			complete = dirsOnly
		case idLists[p.Name] != nil:
			continue // completeIDs does it
		}
		cmd.RegisterFlagCompletionFunc(flagName(p), complete) // fails for a flag that is not there
	}
}

// completeIDs has the flags for ids completed in cmd and all commands below.
func (a *app) completeIDs(cmd *cobra.Command) {
	for kind := range idLists {
		if cmd.Flags().Lookup(kind) != nil {
			cmd.RegisterFlagCompletionFunc(kind, a.listIDs(kind))
		}
	}
	for _, sub := range cmd.Commands() {
		a.completeIDs(sub)
	}
}

func dirsOnly(*cobra.Command, []string, string) ([]cobra.Completion, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveFilterDirs
}

// idList says how the ids of a kind are listed.
type idList struct {
	verb  string   // lists them
	about []string // fields that describe one
}

var idLists = map[string]*idList{
	"session": {"session.list", []string{"name"}},
	"window":  {"window.list", []string{"pane"}},
	"pane":    {"pane.list", []string{"state", "argv"}},
}

// listIDs completes the ids of a kind, each with a description. Without a
// daemon there are none, and nobody is told.
func (a *app) listIDs(kind string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionPatience)
		defer cancel()
		return a.ids(ctx, kind), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

func (a *app) ids(ctx context.Context, kind string) (found []cobra.Completion) {
	c, err := a.connect(ctx, os.Getenv("LOOPTAPE_TOKEN"), wire.DefaultMaxFrame)
	if err != nil {
		return nil
	}
	defer c.Close()
	v := manifest.Find(idLists[kind].verb)
	raw, err := c.Call(ctx, v.Name, map[string]any{})
	if err != nil {
		return nil
	}
	list := v.Result[0]
	var lists map[string]json.RawMessage
	var items []map[string]json.RawMessage
	if json.Unmarshal(raw, &lists) != nil || json.Unmarshal(lists[list.Name], &items) != nil {
		return nil
	}
	for _, item := range items {
		about := ""
		for _, f := range list.Fields {
			if slices.Contains(idLists[kind].about, f.Name) {
				about += " " + cell(f.Type, item[f.Name])
			}
		}
		found = append(found, cobra.CompletionWithDesc(cell(manifest.String, item[kind]), about[1:]))
	}
	return found
}
