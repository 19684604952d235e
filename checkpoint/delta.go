package checkpoint

import "errors"

// ErrBase is what Complete returns for a base that does not lead up to a State.
var ErrBase = errors.New("checkpoint: not the base of this state")

// Complete puts in front of a State's history the rows that it was made without:
// those of base, an earlier State of the same terminal in the same epoch. Rows that
// are in s already are not taken from base. What s has of base is base's memory, so
// base is used up. Styles and links are in s twice afterwards if both had them.
func (s *State) Complete(base *State) error {
	have, first := base.History.First, s.History.First
	old := base.History.Rows
	if base.Clock.Epoch != s.Clock.Epoch || base.Clock.Offset > s.Clock.Offset || base.Size != s.Size ||
		base.History.Hidden > 0 || s.History.Hidden > 0 || have > first || first-have > uint64(len(old)) {
		return ErrBase
	}
	styles, links := len(s.Styles), len(s.Links)
	s.Links = append(s.Links, base.Links...)
	for _, v := range base.Styles {
		if v.Link > 0 {
			v.Link += links
		}
		s.Styles = append(s.Styles, v)
	}
	rows := make([]Row, 0, int(first-have)+len(s.History.Rows))
	for _, r := range old[:first-have] {
		for i := range r.Runs {
			if r.Runs[i].Style < 0 || r.Runs[i].Style >= len(base.Styles) {
				return ErrBase
			}
			r.Runs[i].Style += styles
		}
		rows = append(rows, r)
	}
	rows = append(rows, s.History.Rows...)
	if n := len(rows) - s.Size.Scrollback; n > 0 {
		rows, have = rows[n:], have+uint64(n)
	}
	s.History.First, s.History.Rows = have, rows
	return nil
}
