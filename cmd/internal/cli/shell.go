package cli

import (
	"embed"
	"fmt"

	"github.com/spf13/cobra"
)

// shells are the snippets, looptape.SHELL.
//
//go:embed shell
var shells embed.FS

func (a *app) shellIntegrationCommand() *cobra.Command {
	names := []string{"bash", "zsh", "fish"}
	return &cobra.Command{
		Use:   "shell-integration bash|zsh|fish",
		Short: "Print what makes a shell mark its commands",
		Long: `Print what makes a shell mark its prompts, its commands and their exit codes (OSC
133) and its directory (OSC 7). With the marks, 'looptape pane commands' lists
what was run, and --command -1 reads the output of the last command.

  bash  eval "$(looptape shell-integration bash)"     in ~/.bashrc
  zsh   eval "$(looptape shell-integration zsh)"      in ~/.zshrc
  fish  looptape shell-integration fish | source      in ~/.config/fish/config.fish

bash tells what a command was by its history only: what that does not keep, such as a
command that equals the last one under HISTCONTROL=ignoredups or ignoreboth, or one
that begins with a space, has no name there.`,
		Args:      func(cmd *cobra.Command, args []string) error { return oneOf(cmd, "a shell", args, names) },
		ValidArgs: names,
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := shells.ReadFile("shell/looptape." + args[0])
			if err == nil {
				_, err = fmt.Printf("%s", text)
			}
			return err
		},
	}
}
