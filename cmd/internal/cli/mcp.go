package cli

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/daemon"
	"looptape/cmd/internal/guide"
	"looptape/cmd/internal/mcp"
	"looptape/cmd/internal/wire"
)

func (a *app) mcpCommand() *cobra.Command {
	var token string
	start := true
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Offer the verbs as MCP tools, on stdin and stdout",
		Long: `Offer the verbs as the tools of an MCP server that speaks on stdin and stdout,
until stdin ends. Whoever calls the tools acts as LOOPTAPE_TOKEN or --token says:
without one they may read panes and change nothing, with @owner they may do all.

When a tool is called and no daemon runs, one is started, as by run; with
--start=false the call fails, and says how to start one.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("token") {
				token = os.Getenv("LOOPTAPE_TOKEN")
			}
			dial := a.connectOrStart
			if !start {
				dial = a.connect
			}
			err := mcp.Serve(cmd.Context(), mcp.Config{
				Dial: func(ctx context.Context) (*wire.Client, error) {
					return dial(ctx, token, wire.DefaultMaxFrame)
				},
				Version: daemon.Version, Instructions: guide.Instructions(), In: os.Stdin, Out: os.Stdout,
			})
			if err == nil {
				return nil
			}
			// Stdout is the client's, and nothing but the protocol.
			fmt.Fprintf(os.Stderr, "looptape: the MCP client broke the protocol, or went away: %v\n", err)
			return exitCode((&wire.Error{Code: "protocol.mcp"}).Exit())
		},
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().StringVar(&token, "token", "", "whom the tools act as (default $LOOPTAPE_TOKEN): @owner, @name of a saved token, or a token, which others can see here")
	cmd.Flags().BoolVar(&start, "start", true, "start a daemon when none runs")
	return cmd
}
