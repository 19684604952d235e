package checkpoint

import (
	"errors"
	"slices"
)

// ErrBase is what Complete returns for a base that does not lead up to a State.
var ErrBase = errors.New("checkpoint: not the base of this state")

// Complete puts in front of a State's history the rows that it was made without: those
// of bases, earlier States of the same terminal in the same epoch, the latest first, each
// of which was made without rows of the next. Rows that are in s already are not taken
// from them. What s has of the bases is their memory, so they are used up. Styles and
// links are in s several times afterwards if several had them.
func (s *State) Complete(bases ...*State) error {
	if len(bases) == 0 {
		return nil
	}
	first, n, styles := s.History.First, len(s.History.Rows), 0
	for _, base := range bases {
		have := base.History.First
		if base.Clock.Epoch != s.Clock.Epoch || base.Clock.Offset > s.Clock.Offset || base.Size != s.Size ||
			base.History.Hidden > 0 || s.History.Hidden > 0 || have > first || first-have > uint64(len(base.History.Rows)) {
			return ErrBase
		}
		n += int(first - have)
		first, styles = have, styles+len(base.Styles)
	}
	rows := make([]Row, n)
	copy(rows[n-len(s.History.Rows):], s.History.Rows)
	n -= len(s.History.Rows)
	s.Styles = slices.Grow(s.Styles, styles)
	first = s.History.First
	for _, base := range bases {
		old := base.History.Rows[:first-base.History.First]
		first = base.History.First
		if !s.takeStyles(base, old) {
			return ErrBase
		}
		n -= len(old)
		copy(rows[n:], old)
	}
	if n := len(rows) - s.Size.Scrollback; n > 0 {
		rows, first = rows[n:], first+uint64(n)
	}
	s.History.First, s.History.Rows = first, rows
	return nil
}

// takeStyles appends the styles and links of base up to the last that rows use, some of
// base's rows, and makes rows refer to those. It reports whether there are such styles.
func (s *State) takeStyles(base *State, rows []Row) bool {
	styles, links := len(s.Styles), len(s.Links)
	last, lastLink := 0, 0
	for _, r := range rows {
		for i := range r.Runs {
			n := r.Runs[i].Style
			if n < 0 || n >= len(base.Styles) {
				return false
			}
			r.Runs[i].Style += styles
			last = max(last, n)
		}
	}
	s.Styles = append(s.Styles, base.Styles[:min(last+1, len(base.Styles))]...)
	for i := styles; i < len(s.Styles); i++ {
		if v := &s.Styles[i]; v.Link > 0 {
			lastLink = max(lastLink, v.Link)
			v.Link += links
		}
	}
	s.Links = append(s.Links, base.Links[:min(lastLink, len(base.Links))]...)
	return true
}
