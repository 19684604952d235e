package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines hands the SDK only lines that are messages, since at any other it gives up
// the session. It answers these itself, as JSON-RPC 2.0 says, section 5.1, and goes on.
type lines struct {
	in   *bufio.Reader
	from io.Closer
	out  io.Writer
	rest []byte // of a line
}

func newLines(in io.ReadCloser, out io.Writer) *lines {
	return &lines{in: bufio.NewReaderSize(in, 64<<10), from: in, out: out}
}

func (l *lines) Close() error { return l.from.Close() }

func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, whole, err := l.next()
		if len(bytes.TrimSpace(line)) > 0 {
			if wrong := check(line, whole); wrong != nil {
				if _, err := l.out.Write(wrong); err != nil {
					return 0, err
				}
			} else {
				l.rest = append(bytes.TrimRight(line, "\r\n"), '\n')
			}
		}
		if err != nil && len(l.rest) == 0 {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

// next reads a line; of one that is longer than the SDK takes, the beginning.
func (l *lines) next() (line []byte, whole bool, err error) {
	whole = true
	for {
		piece, err := l.in.ReadSlice('\n')
		if whole = whole && len(line)+len(piece) < sdk.DefaultMaxLineLength; whole {
			line = append(line, piece...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}

// check returns the answer to a line that is no message.
func check(line []byte, whole bool) []byte {
	if !whole {
		return complain(nil, jsonrpc.CodeInvalidRequest, fmt.Sprintf("Invalid Request: a line of %d bytes or more", sdk.DefaultMaxLineLength))
	}
	var batch []json.RawMessage
	if json.Unmarshal(line, &batch) == nil && len(batch) > 0 { // old versions of MCP have them
		for _, m := range batch {
			if wrong := check(m, true); wrong != nil {
				return wrong
			}
		}
		return nil
	}
	if !json.Valid(line) {
		return complain(nil, jsonrpc.CodeParseError, "Parse error: a line that is not JSON")
	}
	if _, err := jsonrpc.DecodeMessage(line); err != nil {
		var m struct {
			ID json.RawMessage `json:"id"`
		}
		_ = json.Unmarshal(line, &m) // else it has none
		return complain(m.ID, jsonrpc.CodeInvalidRequest, "Invalid Request: "+err.Error())
	}
	return nil
}

// complain is an answer to what is no message: with the id that it has, if that can be one.
func complain(id json.RawMessage, code int, message string) []byte {
	if len(id) == 0 || id[0] != '"' && id[0] != '-' && (id[0] < '0' || id[0] > '9') {
		id = json.RawMessage("null")
	}
	type wrong struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
	b, err := json.Marshal(struct {
		Version string          `json:"jsonrpc"`
		ID      json.RawMessage `json:"id"`
		Error   wrong           `json:"error"`
	}{"2.0", id, wrong{code, message}})
	if err != nil {
		panic(err) // of strings and numbers
	}
	return append(b, '\n')
}

// turns is a writer for several: each Write goes out as one.
type turns struct {
	mu sync.Mutex
	io.WriteCloser
}

func (t *turns) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.WriteCloser.Write(b)
}
