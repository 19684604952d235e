package cli

import (
	"fmt"
	"strings"
	"time"
)

const (
	leastAge = time.Second
	day      = 24 * time.Hour
)

// age is a flag that says for how long something is kept, as 36h or 30d; 0 is for
// ever.
type age time.Duration

func (a *age) Type() string { return "duration" }

func (a *age) String() string {
	switch d := time.Duration(*a); {
	case d == 0:
		return ""
	case d%day == 0:
		return fmt.Sprintf("%dd", d/day)
	default:
		return d.String()
	}
}

func (a *age) Set(text string) error {
	unit := time.Duration(1)
	number, days := strings.CutSuffix(text, "d")
	if days {
		number, unit = number+"h", 24
	}
	d, err := time.ParseDuration(number)
	if err != nil || d < leastAge/unit || d > 1<<62/unit {
		return fmt.Errorf("%q is no age of at least 1s, such as 36h or 30d", text)
	}
	*a = age(d * unit)
	return nil
}
