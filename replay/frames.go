package replay

import (
	"encoding/binary"
	"fmt"

	"looptape/store"
)

// The marks of a pane's log: frames that are no bytes of the stream, but change
// the Terminal or say what became of the program. Integers are big-endian.
//
//	kind          data                                     effect on the Terminal
//	16 Resize     u16 cols, u16 rows (1..65535)            Terminal.Resize
//	17 Exit       u8 how (0 code, 1 signal), u32 number    none
//	18 Closed     -                                        none
//	19 Restart    u32 skip                                 Terminal.Restart(skip)
//	20 Respawn    -                                        Terminal.Respawn
//	21 Marker     UTF-8, at most 64 KiB                    none
//	22 Imported   -                                        none
//
// Exit stands where the program's own output ended, Closed where the last
// process let go of the PTY: behind it come no more bytes of this program.
// Restart stands where one daemon stopped recording, cleanly (skip 0) or as the
// next one found it (then skip is the number of epochs that may have been lost).
// Respawn stands where another program takes over; a full checkpoint follows it.
// Imported is the first frame of what another recorder recorded, at the time at which
// that began; a Marker is one of its markers, with its label.
const (
	MarkResize store.Kind = 16 + iota
	MarkExit
	MarkClosed
	MarkRestart
	MarkRespawn
	MarkMarker
	MarkImported
)

// Exit is how a program ended.
type Exit struct {
	Signaled bool
	Number   int // the exit code (0..255), or the number of the signal
}

// AppendResize appends the data of a Resize mark to dst.
func AppendResize(dst []byte, cols, rows int) []byte {
	dst = binary.BigEndian.AppendUint16(dst, uint16(cols))
	return binary.BigEndian.AppendUint16(dst, uint16(rows))
}

// ParseResize reads the data of a Resize mark.
func ParseResize(data []byte) (cols, rows int, err error) {
	if len(data) != 4 {
		return 0, 0, fmt.Errorf("resize mark of %d bytes instead of 4", len(data))
	}
	cols, rows = int(binary.BigEndian.Uint16(data)), int(binary.BigEndian.Uint16(data[2:]))
	if cols == 0 || rows == 0 {
		return 0, 0, fmt.Errorf("resize mark to %dx%d", cols, rows)
	}
	return cols, rows, nil
}

// AppendExit appends the data of an Exit mark to dst.
func AppendExit(dst []byte, e Exit) []byte {
	how := byte(0)
	if e.Signaled {
		how = 1
	}
	return binary.BigEndian.AppendUint32(append(dst, how), uint32(e.Number))
}

// ParseExit reads the data of an Exit mark.
func ParseExit(data []byte) (Exit, error) {
	if len(data) != 5 || data[0] > 1 {
		return Exit{}, fmt.Errorf("malformed exit mark of %d bytes", len(data))
	}
	return Exit{Signaled: data[0] == 1, Number: int(binary.BigEndian.Uint32(data[1:]))}, nil
}

// AppendRestart appends the data of a Restart mark to dst.
func AppendRestart(dst []byte, skip uint32) []byte {
	return binary.BigEndian.AppendUint32(dst, skip)
}

// Apply brings t from one side of the frame to the other. It is the only place
// where frames become screens, for the live pane and for every replay. Kinds
// that it does not know have no effect: a newer looptape may have written them.
func Apply(t *Terminal, f store.Frame) error {
	switch f.Kind {
	case store.Output:
		t.Feed(f.Data)
	case store.Gap:
		t.Gap(f.Lost)
	case MarkResize:
		cols, rows, err := ParseResize(f.Data)
		if err != nil {
			return err
		}
		t.Resize(cols, rows)
	case MarkRestart:
		if len(f.Data) != 4 {
			return fmt.Errorf("restart mark of %d bytes instead of 4", len(f.Data))
		}
		t.Restart(binary.BigEndian.Uint32(f.Data))
	case MarkRespawn:
		t.Respawn()
	}
	return nil
}
