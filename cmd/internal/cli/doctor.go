package cli

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"looptape/cmd/internal/daemon"
)

// doctorAnswer is what is printed of the result of doctor.
type doctorAnswer struct {
	Server  string    `json:"server"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	Advice  []string  `json:"advice"`
	Store   *struct {
		State      string     `json:"state"`
		Disk       uint64     `json:"disk_bytes"`
		Cap        uint64     `json:"cap_bytes"`
		Free       uint64     `json:"free_bytes"`
		LastCommit *time.Time `json:"last_commit"`
		Sync       float64    `json:"sync_interval_seconds"`
		Keep       float64    `json:"keep_for_seconds"`
	} `json:"store"`
	Verbs []doctorVerb `json:"verbs"`
	Panes []doctorPane `json:"panes"`
	More  bool         `json:"more"`
}

type doctorVerb struct {
	Verb       string  `json:"verb"`
	Calls      uint64  `json:"calls"`
	Unfinished uint64  `json:"unfinished"`
	LongestMS  float64 `json:"longest_hold_ms"`
	Errors     []struct {
		Code   string `json:"code"`
		Reason string `json:"reason"`
		Count  uint64 `json:"count"`
	} `json:"errors"`
}

type doctorPane struct {
	Pane     string  `json:"pane"`
	State    string  `json:"state"`
	Offset   uint64  `json:"offset"`
	Lag      uint64  `json:"lag_bytes"`
	Oldest   uint64  `json:"oldest"`
	Retain   uint64  `json:"retain"`
	Gaps     uint64  `json:"gaps"`
	GapBytes uint64  `json:"gap_bytes"`
	Dropped  uint64  `json:"dropped_replies"`
	Since    *uint64 `json:"not_recorded_since"`
	Fault    string  `json:"fault"`
}

// printDoctor prints how the daemon is: the daemon, the panes, the verbs, and at the
// end, where it is seen, what is to be done.
func printDoctor(w, _ io.Writer, result []byte) error {
	var d doctorAnswer
	if err := json.Unmarshal(result, &d); err != nil {
		return err
	}
	fmt.Fprintf(w, "%s, pid %d, since %s (up %s)\n", d.Server, d.PID, d.Started.Local().Format(time.RFC3339), ago(d.Started))
	if s := d.Store; s != nil {
		fmt.Fprintf(w, "store: %s, %s of at most %s, %s free on the disk", s.State, daemon.InBytes(s.Disk), daemon.InBytes(s.Cap), daemon.InBytes(s.Free))
		if s.LastCommit != nil {
			fmt.Fprintf(w, ", last commit %s ago", ago(*s.LastCommit))
		}
		if s.Sync > 0 {
			fmt.Fprintf(w, ", synced every %v s", s.Sync)
		}
		if s.Keep > 0 {
			fmt.Fprintf(w, ", kept for %v", time.Duration(s.Keep*float64(time.Second)))
		}
		fmt.Fprintln(w)
	}
	if len(d.Panes) > 0 {
		fmt.Fprintln(w)
		printPanes(w, d.Panes)
	}
	if len(d.Verbs) > 0 {
		fmt.Fprintln(w)
		printVerbs(w, d.Verbs)
	}
	if d.More {
		fmt.Fprintln(w, "(there is more than fits: --max-frame)")
	}
	fmt.Fprintln(w)
	if len(d.Advice) == 0 {
		fmt.Fprintln(w, "All is well.")
	}
	for _, sentence := range d.Advice {
		fmt.Fprintf(w, "! %s\n", sentence)
	}
	return nil
}

func printPanes(w io.Writer, panes []doctorPane) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PANE\tSTATE\tWROTE\tKEPT\tRETAIN\tNOT DURABLE\tNOTES")
	for _, p := range panes {
		var notes []string
		if p.Gaps > 0 {
			gaps := "gaps"
			if p.Gaps == 1 {
				gaps = "gap"
			}
			notes = append(notes, fmt.Sprintf("%d %s, %s missing", p.Gaps, gaps, daemon.InBytes(p.GapBytes)))
		}
		if p.Since != nil {
			notes = append(notes, fmt.Sprintf("not recorded since offset %d", *p.Since))
		}
		if p.Dropped > 0 {
			notes = append(notes, fmt.Sprintf("%s of replies not read", daemon.InBytes(p.Dropped)))
		}
		if p.Fault != "" {
			notes = append(notes, p.Fault)
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", p.Pane, p.State,
			daemon.InBytes(p.Offset), daemon.InBytes(p.Offset-min(p.Oldest, p.Offset)), daemon.InBytes(p.Retain),
			daemon.InBytes(p.Lag), cmp.Or(strings.Join(notes, "; "), "-"))
	}
	table.Flush()
}

func printVerbs(w io.Writer, verbs []doctorVerb) {
	table := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "VERB\tCALLS\tUNFINISHED\tLONGEST HOLD\tERRORS")
	for _, v := range verbs {
		var errors []string
		for _, e := range v.Errors {
			code := e.Code
			if e.Reason != "" {
				code += " (" + e.Reason + ")"
			}
			errors = append(errors, fmt.Sprintf("%d %s", e.Count, code))
		}
		fmt.Fprintf(table, "%s\t%d\t%d\t%.1f ms\t%s\n", v.Verb, v.Calls, v.Unfinished, v.LongestMS, cmp.Or(strings.Join(errors, ", "), "-"))
	}
	table.Flush()
}

// ago is how long ago something was, in its largest unit.
func ago(t time.Time) string {
	d := max(time.Since(t), 0)
	switch {
	case d < time.Second:
		return fmt.Sprintf("%d ms", d.Milliseconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}
