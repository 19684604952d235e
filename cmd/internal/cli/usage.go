package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/wire"
)

// plainFlagError says what is wrong with the value of a flag without the names of Go's
// functions.
func plainFlagError(_ *cobra.Command, err error) error {
	var n *strconv.NumError
	if !errors.As(err, &n) {
		return err
	}
	text, _, _ := strings.Cut(err.Error(), ": strconv.")
	switch {
	case errors.Is(n.Err, strconv.ErrRange):
		return fmt.Errorf("%s: it is out of range", text)
	case n.Func == "ParseBool":
		return fmt.Errorf("%s: it is true or false", text)
	}
	return fmt.Errorf("%s: it is a whole number", text)
}

// strictHelp makes usage errors of topics and shells that do not exist, of which cobra
// only prints what there is.
func strictHelp(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		switch cmd.Name() {
		case "help":
			cmd.Args = func(_ *cobra.Command, topic []string) error {
				if _, rest, err := root.Find(topic); err != nil || len(rest) > 0 {
					return fmt.Errorf("there is no command %q: 'looptape help' lists them", strings.Join(topic, " "))
				}
				return nil
			}
		case "completion":
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			cmd.Args = cobra.ArbitraryArgs
			cmd.RunE = func(cmd *cobra.Command, args []string) error {
				if len(args) > 0 {
					return oneOf(cmd, "a shell", args, names)
				}
				return cmd.Help()
			}
		}
	}
}

// oneOf is an error unless args is one of choices; what is the word for them.
func oneOf(cmd *cobra.Command, what string, args, choices []string) error {
	if len(args) == 1 && slices.Contains(choices, args[0]) {
		return nil
	}
	given := ""
	if len(args) > 0 {
		given = fmt.Sprintf(", not %q", strings.Join(args, " "))
	}
	return &wire.Error{Code: "invalid_params.usage", Message: fmt.Sprintf("%s needs %s%s: %s", cmd.CommandPath(), what, given, strings.Join(choices, ", "))}
}

// hints are what messages of the daemon advise, and what that is on the command line.
var hints = strings.NewReplacer(
	"connect with a larger max_frame", "give a larger --max-frame",
	"raise max_bytes", "raise --max-bytes",
	"goes by paste, or by pane.write", "goes by --paste, or by 'looptape pane write'",
)

// forPerson is the message of an error as the command line puts it: parameters are
// flags there.
func forPerson(e *wire.Error) string {
	message := hints.Replace(e.Message)
	var data struct {
		Param  string  `json:"param"`
		Epoch  *uint32 `json:"epoch"`
		Oldest uint64  `json:"oldest"`
		End    uint64  `json:"end"`
	}
	if raw, err := wire.Marshal(e.Data); err != nil || json.Unmarshal(raw, &data) != nil {
		return message
	}
	flag := "--" + strings.ReplaceAll(data.Param, "_", "-")
	verb, rest, missing := strings.Cut(message, " needs "+data.Param)
	switch {
	case e.Code == "invalid_params.missing" && missing:
		message = fmt.Sprintf("looptape %s needs %s%s", strings.NewReplacer(".", " ", "_", "-").Replace(verb), flag, rest)
	case strings.HasPrefix(message, data.Param+" must be "):
		message = flag + strings.TrimPrefix(message, data.Param)
	case e.Code == "conflict.epoch" && data.Epoch != nil:
		message = fmt.Sprintf("%s: the current one is %d, with the rows %d to %d", message, *data.Epoch, data.Oldest, max(data.End, 1)-1)
	}
	return message
}
