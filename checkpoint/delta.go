package checkpoint

import "errors"

// ErrBase is what Complete returns for a base that does not lead up to a State.
var ErrBase = errors.New("checkpoint: not the base of this state")

// Complete puts in front of a State's history the rows that it was made without:
// those of base, an earlier State of the same terminal in the same epoch. Rows that
// are in s already are not taken from base. s shares memory with base afterwards.
func (s *State) Complete(base *State) error {
	have, first := base.History.First, s.History.First
	old := base.History.Rows
	if base.Clock.Epoch != s.Clock.Epoch || base.Clock.Offset > s.Clock.Offset || base.Size != s.Size ||
		base.History.Hidden > 0 || s.History.Hidden > 0 || have > first || first-have > uint64(len(old)) {
		return ErrBase
	}
	styles := make([]int, len(base.Styles))
	for i := range styles {
		styles[i] = s.addStyle(base, base.Styles[i])
	}
	rows := make([]Row, 0, int(first-have)+len(s.History.Rows))
	for _, r := range old[:first-have] {
		runs := make([]Run, len(r.Runs))
		for i, run := range r.Runs {
			if run.Style < 0 || run.Style >= len(styles) {
				return ErrBase
			}
			runs[i] = Run{run.Len, styles[run.Style]}
		}
		r.Runs = runs
		rows = append(rows, r)
	}
	rows = append(rows, s.History.Rows...)
	if n := len(rows) - s.Size.Scrollback; n > 0 {
		rows, have = rows[n:], have+uint64(n)
	}
	s.History.First, s.History.Rows = have, rows
	return nil
}

// addStyle returns the number that a style of base has in s.
func (s *State) addStyle(base *State, v Style) int {
	if v.Link > 0 && v.Link <= len(base.Links) {
		s.Links = append(s.Links, base.Links[v.Link-1])
		v.Link = len(s.Links)
	}
	for i := range s.Styles {
		if s.Styles[i] == v {
			return i
		}
	}
	s.Styles = append(s.Styles, v)
	return len(s.Styles) - 1
}
