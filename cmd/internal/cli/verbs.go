package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"looptape/cmd/internal/guide"
	"looptape/cmd/internal/manifest"
	"looptape/cmd/internal/wire"
)

// addVerbs adds a command for each verb of the manifest below root.
func (a *app) addVerbs(root *cobra.Command) {
	groups := map[string]*cobra.Command{}
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		words := v.Command()
		parent := root
		if len(words) == 2 {
			if parent = groups[words[0]]; parent == nil {
				parent = &cobra.Command{Use: words[0], Short: fmt.Sprintf("Verbs about a %s", words[0]), RunE: needsVerb, Args: cobra.ArbitraryArgs}
				groups[words[0]] = parent
				root.AddCommand(parent)
			}
		}
		parent.AddCommand(a.verbCommand(v, words[len(words)-1]))
	}
}

func needsVerb(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return &wire.Error{Code: "invalid_params.usage", Message: fmt.Sprintf("%s has no verb %q: '%s --help' lists them", cmd.CommandPath(), args[0], cmd.CommandPath())}
	}
	return cmd.Help()
}

// extras are flags of some verbs' commands that are the CLI's own.
type extras struct {
	output string // a file, of what streams bytes
	save   bool   // of grant.create
}

func (a *app) verbCommand(v *manifest.Verb, name string) *cobra.Command {
	var x extras
	cmd := &cobra.Command{Use: name, Short: v.Summary, Long: guide.Help(v), Args: noArgs}
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return a.runVerb(cmd, v, x) }
	for i := range v.Params {
		p := &v.Params[i]
		usage := p.Summary
		if p.Choices != nil {
			usage += " (" + strings.Join(p.Choices, ", ") + ")"
		}
		if limits := limits(p); limits != "" {
			usage += " (" + limits + ")"
		}
		switch p.Type {
		case manifest.Boolean:
			cmd.Flags().Bool(flagName(p), false, usage)
		default:
			cmd.Flags().Var(&text{kind: flagKind(p)}, flagName(p), usage)
		}
	}
	completeFlags(cmd, v)
	if v.Streams && v.Item[0].Type == manifest.Bytes {
		cmd.Flags().StringVar(&x.output, "output", "", "write to this file, which appears when it is complete")
	}
	if v.Name == "grant.create" {
		cmd.Flags().BoolVar(&x.save, "save", false, "save the token for LOOPTAPE_TOKEN=@NAME instead of showing it")
	}
	return cmd
}

// limits are the range and the default of a parameter.
func limits(p *manifest.Param) string {
	var parts []string
	switch {
	case p.Min != nil && p.Max != nil && *p.Max != manifest.Largest:
		parts = append(parts, fmt.Sprintf("%d to %d", *p.Min, *p.Max))
	case p.Min != nil && *p.Min > 0:
		parts = append(parts, fmt.Sprintf("at least %d", *p.Min))
	case p.MaxBytes > 0:
		parts = append(parts, fmt.Sprintf("at most %d bytes", p.MaxBytes))
	}
	if p.Default != nil {
		parts = append(parts, fmt.Sprintf("default %v", p.Default))
	}
	return strings.Join(parts, ", ")
}

// noArgs refuses arguments, and says how their like is given.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	for _, name := range []string{"pane", "window", "session"} {
		if cmd.Flags().Lookup(name) != nil {
			return fmt.Errorf("%s takes no arguments but flags: --%s %s", cmd.CommandPath(), name, args[0])
		}
	}
	return fmt.Errorf("%s takes no arguments but flags: '%s --help' lists them", cmd.CommandPath(), cmd.CommandPath())
}

func flagName(p *manifest.Param) string { return strings.ReplaceAll(p.Name, "_", "-") }

// flagKind is the word for a flag's value in a help text.
func flagKind(p *manifest.Param) string {
	switch p.Type {
	case manifest.Array:
		return "JSON array, or one element"
	case manifest.Object:
		return "JSON object"
	case manifest.Bytes:
		return "base64"
	}
	return string(p.Type)
}

// text is a flag that takes any text: what it means is the daemon's to say.
type text struct {
	given []string
	kind  string
}

func (t *text) String() string     { return strings.Join(t.given, " ") }
func (t *text) Set(s string) error { t.given = append(t.given, s); return nil }
func (t *text) Type() string       { return t.kind }

// runVerb calls v with the flags that were given.
func (a *app) runVerb(cmd *cobra.Command, v *manifest.Verb, x extras) error {
	if v.Binary {
		return a.attachVerb(cmd, v)
	}
	params := parameters(cmd, v)
	frame := wire.CeilingMaxFrame
	if v.Name == "pane.capture" || v.Name == "pane.capture_rows" {
		frame = wire.DefaultMaxFrame
	}
	c, err := a.connect(cmd.Context(), os.Getenv("LOOPTAPE_TOKEN"), frame)
	if err != nil {
		return err
	}
	defer c.Close()
	if v.Name == "pane.verify" && !a.json {
		result, err := a.verifyPane(cmd.Context(), c, params)
		if err == nil && !result.Sound {
			err = unsound
		}
		return err
	}
	if v.Streams {
		if x.output == "" && cmd.Flags().Changed("output") {
			return &wire.Error{Code: "invalid_params.usage", Message: "--output needs the name of a file"}
		}
		return a.stream(cmd.Context(), c, v, params, x.output)
	}
	if x.save {
		return a.saveGrant(cmd, c, v, params)
	}
	if v.Name == "grant.revoke" {
		return a.revokeGrant(cmd, c, v, params)
	}
	result, err := c.Call(cmd.Context(), v.Name, params)
	if err != nil {
		return err
	}
	if err = a.print(v, result); err != nil && v.Name == "grant.create" {
		err = fmt.Errorf("the token was made, but cannot be shown: 'looptape grant revoke --name %s' ends it (%w)", params["name"], err)
	}
	return err
}

// parameters are the flags that were given, as the daemon is to read them.
func parameters(cmd *cobra.Command, v *manifest.Verb) map[string]json.RawMessage {
	params := map[string]json.RawMessage{}
	for i := range v.Params {
		p := &v.Params[i]
		flag := cmd.Flags().Lookup(flagName(p))
		if !flag.Changed {
			continue
		}
		t, ok := flag.Value.(*text)
		switch {
		case !ok: // a boolean
			params[p.Name] = json.RawMessage(flag.Value.String())
		case p.Type == manifest.Array:
			params[p.Name] = array(t.given)
		case p.Name == "cwd":
			params[p.Name] = argument(p, absolute(t.given[len(t.given)-1]))
		default:
			params[p.Name] = argument(p, t.given[len(t.given)-1])
		}
	}
	return params
}

// absolute is a path that is the daemon's to enter, which runs elsewhere.
func absolute(path string) string {
	if path == "" {
		return ""
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	return path
}

var integer = regexp.MustCompile(`^-?(0|[1-9][0-9]*)$`)

// argument makes JSON of a flag's text. Text that is not of the parameter's
// type goes along as a string, for the daemon to refuse.
func argument(p *manifest.Param, text string) json.RawMessage {
	switch p.Type {
	case manifest.Integer:
		if integer.MatchString(text) {
			return json.RawMessage(text)
		}
	case manifest.Object:
		if json.Valid([]byte(text)) {
			return json.RawMessage(text)
		}
	}
	raw, _ := wire.Marshal(text) // a string can always be written
	return raw
}

// array makes a JSON array of a flag that may be given several times: each time
// an array, whose elements are added, or one element. What begins as an array and
// is none goes along as a string, for the daemon to refuse.
func array(given []string) json.RawMessage {
	all := []json.RawMessage{}
	for _, text := range given {
		var several []json.RawMessage
		one, _ := wire.Marshal(text)
		switch {
		case len(text) < 2 || text[0] != '[': // "[" alone is a key
			all = append(all, one)
		case json.Unmarshal([]byte(text), &several) != nil:
			return one
		default:
			all = append(all, several...)
		}
	}
	raw, _ := wire.Marshal(all)
	return raw
}
