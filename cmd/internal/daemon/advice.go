package daemon

import (
	"fmt"
	"strings"
	"time"
)

const (
	// littleSpace is how much of the disk may be free before doctor warns, in bytes.
	littleSpace = 64 << 20
	// longLag is how long something may wait to become durable before doctor warns.
	longLag = 2 * time.Second
)

// advise says what is wrong and what to do about it: of the store, if the caller may
// know of it, of the panes and of the verbs that it may know of. It says as much
// however many panes there are.
func advise(st *storeHealth, panes []paneHealth, verbs []verbHealth, now time.Time) []string {
	a := adviser{list: []string{}}
	if st != nil {
		a.store(st, now)
	}
	a.panes(st, panes)
	a.verbs(verbs)
	return a.list
}

type adviser struct{ list []string }

func (a *adviser) say(format string, args ...any) {
	a.list = append(a.list, fmt.Sprintf(format, args...))
}

func (a *adviser) store(st *storeHealth, now time.Time) {
	switch st.State {
	case "failed":
		a.say("The store has failed (%s): nothing is recorded any more, what was recorded can be read. See to the disk of %s, then start the daemon again; its programs end with it.", st.Error, st.dir)
	case "read-only":
		a.say("The disk was full when the daemon started, and nothing can be recorded: free some space on the disk of %s, then start the daemon again.", st.dir)
	case "full":
		until := ""
		if st.needs > 0 && st.measured {
			until = fmt.Sprintf(" until %s are free there (now it is %s)", InBytes(st.needs), InBytes(st.Free))
		}
		a.say("The disk has been full for %s: free some space on the disk of %s%s, and the recording resumes by itself. 'looptape pane delete' frees what a recording takes. Until then programs wait for 10 s, and then go on unrecorded.", now.Sub(*st.FullSince).Round(time.Second), st.dir, until)
	default:
		if st.Damaged > 0 {
			a.say("Files of the store in %s are damaged, and hide more than what is lost: restart the daemon when its programs may end, and it mends them. See to that disk.", st.dir)
		}
		if st.measured && st.Free < littleSpace {
			a.say("The disk of %s has only %s left: free some space, or recording will stop.", st.dir, InBytes(st.Free))
		}
	}
}

func (a *adviser) panes(st *storeHealth, panes []paneHealth) {
	var unrecorded, lagging, damaged, faulty, short ids
	longest := time.Duration(0)
	for i := range panes {
		p := &panes[i]
		switch {
		case p.damaged:
			damaged.add(p)
		case p.Fault != "":
			faulty.add(p)
		case p.NotRecorded != nil:
			unrecorded.add(p)
		case p.LagSeconds > longLag.Seconds():
			lagging.add(p)
			longest = max(longest, time.Duration(p.LagSeconds*float64(time.Second)))
		}
		if p.Oldest > 0 && p.Offset-p.Oldest < p.Retain {
			short.add(p)
		}
	}
	if len(unrecorded) > 0 {
		a.say("Nothing is recorded of %s: the disk takes nothing. The programs go on, and the recording resumes behind a gap once there is space.", unrecorded)
	}
	if len(damaged) > 0 {
		a.say("The recording of %s is damaged: 'looptape verify --pane %s' says what is lost, the rest can be read.", damaged, damaged[0])
	}
	if len(faulty) > 0 {
		a.say("looptape failed on %s, and follows it no more; what was recorded before can be read. The log of the daemon says why: please report it.", faulty)
	}
	if st == nil || st.State != "ok" {
		return
	}
	if len(lagging) > 0 {
		a.say("What %s printed has waited for the disk of %s for up to %s: it is slow, or hangs. Programs wait once 4 MiB are ahead of it.", lagging, st.dir, longest.Round(time.Second))
	}
	if len(short) > 0 && st.KeepSeconds == 0 && uint64(st.Disk) > st.Cap/4*3 {
		a.say("%s have less of their output than they are to retain, since recordings may take %s on disk: give 'looptape serve --disk' more, or 'window create --retain' less.", short, InBytes(st.Cap))
	}
}

func (a *adviser) verbs(verbs []verbHealth) {
	var slow ids
	longest := 0.0
	for _, v := range verbs {
		if v.Warn {
			slow = append(slow, v.Verb)
			longest = max(longest, v.LongestMS)
		}
	}
	if len(slow) > 0 {
		a.say("Calls of %s held up a pane for up to %.0f ms, and its program with it: ask for fewer rows or bytes at a time.", slow, longest)
	}
}

// ids are ids of panes, or names of verbs.
type ids []string

func (l *ids) add(p *paneHealth) { *l = append(*l, p.Pane) }

// maxNamed is how many of them a sentence names.
const maxNamed = 5

func (l ids) String() string {
	if len(l) <= maxNamed {
		return strings.Join(l, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(l[:maxNamed], ", "), len(l)-maxNamed)
}

// InBytes writes a number of bytes for a person.
func InBytes(n uint64) string {
	units := []string{"B", "KiB", "MiB", "GiB", "TiB"}
	value, i := float64(n), 0
	for ; value >= 1024 && i < len(units)-1; i++ {
		value /= 1024
	}
	if i == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", value, units[i])
}
