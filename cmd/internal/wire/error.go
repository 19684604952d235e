package wire

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// Error is the error object of the protocol: what a verb that failed answers,
// on the wire, in the CLI and over MCP (contract.md section 3).
type Error struct {
	Code    string `json:"code"` // family.detail
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// UnmarshalJSON keeps Data as it was written: a json.RawMessage.
func (e *Error) UnmarshalJSON(b []byte) error {
	var raw struct {
		Code    string          `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	}
	if err := json.Unmarshal(b, &raw); err != nil {
		return err
	}
	*e = Error{Code: raw.Code, Message: raw.Message}
	if raw.Data != nil {
		e.Data = raw.Data
	}
	return nil
}

// AsError makes an error object of any error. One that carries none is
// internal.error: a fault of looptape's, not of the caller's.
func AsError(err error) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	return &Error{Code: "internal.error", Message: err.Error()}
}

// Families are the families of error codes, in the order of the exit codes that
// they give the CLI, from 1 on.
var Families = []string{
	"internal", "invalid_params", "not_found", "denied", "conflict",
	"timeout", "unavailable", "protocol", "limit", "unsupported",
}

// Exit is the exit code of a command that fails with e: 1 to 10 by e's family,
// 1 for a family that is not known.
func (e *Error) Exit() int {
	family, _, _ := strings.Cut(e.Code, ".")
	return max(1, slices.Index(Families, family)+1)
}
