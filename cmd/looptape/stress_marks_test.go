package main_test

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"looptape/cmd/internal/wire"
)

// The commands of the stress, and the readers that look for them and for lines.

// stressMarks makes commands of the lines: one begins with the 250th of each 500, and
// ends with the 500th. The lines keep their length.
const stressMarks = `NR%500==250 {$0 = "\033]133;C;x\007begin"} NR%500==0 {$0 = sprintf("\033]133;D;%d\007end", 100+NR/500%100)} 1`

// stressText is a line as a program writes it, by its number from 0 on.
func stressText(program, line int) string {
	switch stressMark(line) {
	case 10:
		return "\x1b]133;C;x\abegin\r\n"
	case 12:
		return fmt.Sprintf("\x1b]133;D;%d\aend\r\n", stressExit(line))
	}
	return fmt.Sprintf("%d\r\n", (stressFirst+program)*stressEach+line)
}

// stressMark is how many bytes of a line are a mark.
func stressMark(line int) int {
	switch (line + 1) % 500 {
	case 250:
		return 10
	case 0:
		return 12
	}
	return 0
}

// stressExit is the exit code in a line that ends a command.
func stressExit(line int) int { return 100 + (line+1)/500%100 }

// stressCommand is a command that a pane's programs will have run.
type stressCommand struct {
	begin, start uint64 // of its mark, and behind that
	end, behind  uint64 // of the mark of its end, and behind that; or where its program ends
	exit         int    // -1 if that is not marked
}

// commands are all commands, in order.
func (p *stressPane) commands() (all []stressCommand) {
	for i, begin := range p.begins[:len(p.begins)-1] {
		over := p.begins[i+1]
		for line := uint64(249); begin+line*stressLine+10 <= over; line += 500 {
			at, end := begin+line*stressLine, begin+(line+250)*stressLine
			c := stressCommand{begin: at, start: at + 10, end: end, behind: end + 12, exit: stressExit(int(line) + 250)}
			if c.behind > over {
				c.end, c.behind, c.exit = over, over, -1
			}
			all = append(all, c)
		}
	}
	return all
}

// needles are where the lines begin whose numbers end with 7770, and which are whole.
func (p *stressPane) needles() (all []uint64) {
	for i, begin := range p.begins[:len(p.begins)-1] {
		for line := uint64(7770); begin+line*stressLine+stressDigits <= p.begins[i+1]; line += 10000 {
			all = append(all, begin+line*stressLine)
		}
	}
	return all
}

// stressWaits waits for lines and for ends of commands, from the first byte on, and
// passes over none but what it is told is missing.
func stressWaits(p *stressPane, r *rand.Rand) stressReader {
	at, cursor := uint64(0), ""
	needles, commands := p.needles(), p.commands()
	return func(s *stress, c *wire.Client) (bool, error) {
		q := obj{"timeout_ms": r.IntN(50), "command": r.IntN(20) == 0, "exit": r.IntN(2) == 0}
		pattern := q["command"] == false || r.IntN(2) == 0
		if pattern {
			q["pattern"] = `^\d{11}7770$`
		}
		if q["pane"] = p.id; cursor != "" {
			q["cursor"] = cursor
		} else {
			q["since"] = at
		}
		a, err := try[stressWaited](s.server, c, "pane.wait", q)
		if code(err) == "conflict.respawned" {
			cursor = ""
			return false, nil
		}
		info, err2 := try[paneInfo](s.server, c, "pane.get", obj{"pane": p.id})
		if err == nil {
			err = err2
		}
		if err != nil {
			return false, fmt.Errorf("at %d: %w", at, err)
		}
		from := at // everything that begins here or behind it is to be found
		if a.MissedBytes > 0 {
			if from = info.Oldest; from < at+a.MissedBytes {
				return false, fmt.Errorf("at %d: %d bytes are said to be missing, the oldest is %d", at, a.MissedBytes, from)
			}
		}
		if err := a.check(p, at, from, pattern, q["command"] == true, needles, commands); err != nil {
			return false, fmt.Errorf("at %d, the oldest is %d: %w: %+v", at, info.Oldest, err, a)
		}
		at, cursor = a.Offset, a.Cursor
		return a.Reason == "exit" && info.Offset == at, nil
	}
}

// stressWaited is an answer of pane.wait.
type stressWaited struct {
	Reason  string
	Matched struct {
		Start, End uint64
		Line       string
	}
	Exit        *int
	Cursor      string
	Offset      uint64
	MissedBytes uint64 `json:"missed_bytes"`
}

// check compares an answer to a wait from at on, which is to pass over nothing that
// begins at from or behind it, with what the programs write.
func (a *stressWaited) check(p *stressPane, at, from uint64, pattern, command bool, needles []uint64, commands []stressCommand) error {
	if a.Offset < at || a.Reason == "exit" && !slices.Contains(p.begins[1:], a.Offset) {
		return fmt.Errorf("no exit is there")
	}
	i, _ := slices.BinarySearch(needles, from)
	found := a.Reason == "pattern"
	if found && (!slices.Contains(needles, a.Matched.Start) || a.Matched.End != a.Matched.Start+stressDigits || a.Offset != a.Matched.End) {
		return fmt.Errorf("there is no such line")
	}
	if passed := i < len(needles) && needles[i]+stressDigits <= a.Offset; pattern && passed && (!found || needles[i] < a.Matched.Start) {
		return fmt.Errorf("the line at %d was passed over", needles[i])
	}
	found = false
	for _, c := range commands {
		if c.exit < 0 || c.behind <= at || c.behind > a.Offset {
			continue
		}
		if a.Reason == "command" && c.behind == a.Offset {
			found = a.Matched.End == c.end && a.Exit != nil && *a.Exit == c.exit && (a.Matched.Start == c.start || a.Matched.Start == c.end && c.begin < max(at, from))
			break
		}
		if command && c.end >= from {
			return fmt.Errorf("%+v was passed over", c)
		}
	}
	if a.Reason == "command" && !found {
		return fmt.Errorf("there is no such end of a command")
	}
	return nil
}

// stressCommands lists the commands page by page, from the newest to the oldest.
func stressCommands(p *stressPane, r *rand.Rand) stressReader {
	commands := p.commands()
	next := -1 // the command in front of which a page ends; -1 is the newest
	var before uint64
	return func(s *stress, c *wire.Client) (bool, error) {
		q := obj{"pane": p.id, "limit": 1 + r.IntN(1000)}
		if next >= 0 {
			q["before"] = before
		}
		first, err := try[paneInfo](s.server, c, "pane.get", obj{"pane": p.id})
		if err != nil {
			return false, err
		}
		a, err := try[struct {
			Commands []struct {
				Start uint64
				End   *uint64
				Exit  *int
			}
			From uint64
			More bool
		}](s.server, c, "pane.commands", q)
		if err != nil {
			return false, err
		}
		last, err := try[paneInfo](s.server, c, "pane.get", obj{"pane": p.id})
		if err != nil {
			return false, err
		}
		n := len(a.Commands)
		if next < 0 {
			newest := slices.IndexFunc(commands, func(c stressCommand) bool { return c.start > first.Offset })
			if next = newest; newest < 0 {
				next = len(commands)
			}
			if n > 0 { // or one that has begun since
				next = max(next, 1+slices.IndexFunc(commands, func(c stressCommand) bool { return c.start == a.Commands[n-1].Start }))
			}
		}
		if n > next {
			return false, fmt.Errorf("%d commands, where %d end at %d", n, next, last.Offset)
		}
		for i, got := range a.Commands {
			want := commands[next-n+i]
			running := got.End == nil && got.Exit == nil && i == n-1 && q["before"] == nil && want.behind >= first.Offset
			over := got.End != nil && *got.End == want.end && (got.Exit == nil) == (want.exit < 0) && (got.Exit == nil || *got.Exit == want.exit)
			if got.Start != want.start || !running && !over {
				return false, fmt.Errorf("command %d is %+v, not %+v", next-n+i, got, want)
			}
		}
		if next, before = next-n, a.From; a.More {
			return false, nil
		}
		if next > 0 && commands[next-1].begin >= last.Oldest {
			return false, fmt.Errorf("the oldest byte is %d, but %+v is not listed", last.Oldest, commands[next-1])
		}
		next = -1
		return true, nil
	}
}
