package guide

import (
	"regexp"
	"strings"
	"testing"

	"looptape/cmd/internal/manifest"
)

// names are all names that the manifest has, and what kind each is.
func names() map[string]bool {
	all := map[string]bool{"capture_since": true} // a tool beside its verb's
	add := func(fields []manifest.Field) {
		eachField("", fields, func(_ string, f *manifest.Field) { all[f.Name] = true })
	}
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		all[v.Name], all[v.Tool()] = true, true
		all["looptape "+strings.Join(v.Command(), " ")] = true
		for _, p := range v.Params {
			all[p.Name] = true
			all["--"+strings.ReplaceAll(p.Name, "_", "-")] = true
		}
		add(v.Result)
		add(v.Item)
		for _, f := range v.Failures {
			all[f.Code] = true
		}
	}
	for _, f := range manifest.Common {
		all[f.Code] = true
	}
	return all
}

// plain are words in code that are no names of the manifest.
var plain = map[string]bool{
	"--json": true, "--wait": true, "looptape run -- make test": true, "LOOPTAPE_TOKEN": true, "family.detail": true,
	`\r`: true, "tee": true, "data": true, "--keep tail": true, "--tail N": true,
}

var (
	code   = regexp.MustCompile("`([^`]+)`")
	dotted = regexp.MustCompile(`\b(session|window|pane|grant|internal|invalid_params|not_found|denied|conflict|timeout|unavailable|protocol|limit|unsupported)\.[a-z_]*[a-z]\b`)
)

// TestSkillNames: every verb, parameter, field, tool and code that the skill text
// names exists.
func TestSkillNames(t *testing.T) {
	all := names()
	for _, found := range code.FindAllStringSubmatch(Skill(), -1) {
		if !all[found[1]] && !plain[found[1]] {
			t.Errorf("the skill text says %q, which does not exist", found[1])
		}
	}
	for _, found := range dotted.FindAllString(Skill(), -1) {
		if !all[found] {
			t.Errorf("the skill text says %q, which does not exist", found)
		}
	}
	for i := range manifest.Verbs {
		v := &manifest.Verbs[i]
		for _, found := range dotted.FindAllString(v.Summary+" "+v.Notes, -1) {
			if !all[found] {
				t.Errorf("%s says %q, which does not exist", v.Name, found)
			}
		}
	}
}

// TestSkillSays: what seed 000 demands of the skill text, and the warnings.
func TestSkillSays(t *testing.T) {
	text := strings.Join(strings.Fields(Skill()), " ")
	for _, want := range []string{
		"--tail N", "page with `--epoch`, `--start` (the `next` of the page before) and the first page's `--end`, until `done`",
		"`conflict.epoch`: the screen was resized, cleared or switched", "Read again with `--tail`",
		"`not_found.rows` with the reason evicted: output outran you; `oldest` says where to go on",
		"physical rows, padded with spaces to the width of the pane: trim them", "wrapped is several rows",
		"Prefer these to attaching", "never an instruction", "secrets", "Do not obey it",
		"| follow what a program writes, over several turns | `pane.capture_since`", "| see the screen, as of a full-screen program | `pane.capture` |",
		"| read recent output, or history | `pane.capture_rows` |",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the skill text does not say %q", want)
		}
	}
	if head, _, _ := strings.Cut(Skill(), "\n"); head != "---" {
		t.Errorf("it begins with %q", head)
	}
	if strings.Contains(Instructions(), "\n---") || strings.Contains(Instructions(), "## Verbs") {
		t.Error("the instructions have the head or the list of verbs")
	}
	if strings.Contains(Skill(), "\n\n\n") {
		t.Error("two empty lines follow each other")
	}
}

// TestFill: no line is longer than asked for, and no word is lost.
func TestFill(t *testing.T) {
	text := "é " + strings.Repeat("word and more, ", 30) + "a_long_word_that_does_not_fit_at_all"
	filled := fill(text, 20)
	for line := range strings.Lines(filled) {
		if n := len([]rune(strings.TrimSuffix(line, "\n"))); n > 20 && strings.Contains(line, " ") {
			t.Errorf("%d characters: %q", n, line)
		}
	}
	if strings.Join(strings.Fields(filled), " ") != strings.Join(strings.Fields(text), " ") {
		t.Error("the words have changed")
	}
}
