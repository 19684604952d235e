package guide

import (
	_ "embed"
	"strings"
	"text/template"

	"looptape/cmd/internal/manifest"
)

//go:embed skill.md
var skillText string

var skill = template.Must(template.New("skill").Funcs(template.FuncMap{
	"has":  func(verb string) bool { return manifest.Find(verb) != nil },
	"cli":  func(v manifest.Verb) string { return strings.Join(v.Command(), " ") },
	"tool": func(v manifest.Verb) string { return v.Tool() },
	"params": func(v manifest.Verb) string {
		var names []string
		for _, p := range v.Params {
			name := "`" + p.Name + "`"
			if p.Required {
				name += "*"
			}
			names = append(names, name)
		}
		return strings.Join(names, ", ")
	},
}).Parse(skillText))

// Skill is the text for agents: which verb to use for what, and how.
func Skill() string {
	var b strings.Builder
	if err := skill.Execute(&b, manifest.Verbs); err != nil {
		panic(err) // the template is part of the program
	}
	return b.String()
}

// Instructions are Skill's without the head and the list of verbs, for those who
// have that list in another form.
func Instructions() string {
	text := Skill()
	_, text, _ = strings.Cut(text, "\n---\n")
	text, _, _ = strings.Cut(text, "\n## Verbs\n")
	return strings.TrimSpace(text) + "\n"
}
