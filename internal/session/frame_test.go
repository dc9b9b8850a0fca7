package session

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name    string
		from    Side
		message []byte
		ok      bool
	}{
		{"request", Client, Append(nil, KindRequest, 1, []byte(`{}`)), true},
		{"cancel", Client, Append(nil, KindCancel, 7), true},
		{"end of input", Client, Append(nil, KindStdin, 7), true},
		{"credit of the client", Client, AppendCredit(nil, 1, Stdout, 9), true},
		{"credit of the server", Server, AppendCredit(nil, 1, Stdin, 9), true},
		{"call", Server, Append(nil, KindCall, 1, []byte{0, 0, 0, 3}, []byte(`[]`)), true},

		{"nothing", Client, nil, false},
		{"short", Client, []byte{1, 0, 0, 0}, false},
		{"id 0", Client, Append(nil, KindCancel, 0), false},
		{"unknown kind", Client, Append(nil, 99, 1), false},
		{"a server's kind", Client, Append(nil, KindResult, 1, []byte(`{}`)), false},
		{"a client's kind", Server, Append(nil, KindRequest, 1, []byte(`{}`)), false},
		{"empty request", Client, Append(nil, KindRequest, 1), false},
		{"cancel with a body", Client, Append(nil, KindCancel, 1, []byte(`x`)), false},
		{"long input", Client, Append(nil, KindStdin, 1, make([]byte, MaxChunk+1)), false},
		{"credit for the other direction", Client, AppendCredit(nil, 1, Stdin, 9), false},
		{"credit for no stream", Client, AppendCredit(nil, 1, Streams, 9), false},
		{"short credit", Client, Append(nil, KindCredit, 1, []byte{1}), false},
		{"short call", Server, Append(nil, KindCall, 1, []byte{0, 0, 0, 3}), false},
	} {
		if _, err := Parse(tc.from, tc.message); (err == nil) != tc.ok || err != nil && !errors.Is(err, ErrFrame) {
			t.Errorf("%s: %v", tc.name, err)
		}
	}
}

// FuzzParse: what Parse accepts is what Append writes.
func FuzzParse(f *testing.F) {
	f.Add(false, Append(nil, KindRequest, 1, []byte(`{"method":"listSandboxes"}`)))
	f.Add(false, AppendCredit(nil, 5, Events, 1))
	f.Add(true, Append(nil, KindCall, 1, []byte{0, 0, 0, 3}, []byte(`[1]`)))
	f.Fuzz(func(t *testing.T, server bool, message []byte) {
		from := Client
		if server {
			from = Server
		}
		parsed, err := Parse(from, message)
		if err != nil {
			if !errors.Is(err, ErrFrame) {
				t.Errorf("%v", err)
			}
			return
		}
		if again := Append(nil, parsed.Kind, parsed.ID, parsed.Body); !bytes.Equal(again, message) {
			t.Errorf("%x became %x", message, again)
		}
		switch parsed.Kind {
		case KindCredit:
			parsed.Credit()
		case KindCall:
			parsed.Call()
		}
	})
}

// TestCredit: a sender that has used its credit waits for more, or for the end of its context.
func TestCredit(t *testing.T) {
	c := NewCredit()
	if err := c.Add(1); !errors.Is(err, ErrFrame) {
		t.Errorf("more than the window: %v", err)
	}
	if err := c.Take(t.Context(), Window+5); err != nil { // the last frame may be longer
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	errEnd := errors.New("end")
	cancel(errEnd)
	if err := c.Take(ctx, 1); !errors.Is(err, errEnd) {
		t.Errorf("without credit: %v", err)
	}
	taken := make(chan error)
	go func() { taken <- c.Take(t.Context(), 1) }()
	if err := errors.Join(c.Add(5), c.Add(1)); err != nil {
		t.Fatal(err)
	}
	if err := <-taken; err != nil {
		t.Error(err)
	}
}

// TestBuffer: bytes arrive in order, credit is returned for the bytes that were read, and the window holds.
func TestBuffer(t *testing.T) {
	returned := 0
	b := NewBuffer()
	b.Return = func(n uint32) { returned += int(n) }
	piece := strings.Repeat("x", MaxChunk)
	for range Window / MaxChunk {
		if err := b.Add([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Add([]byte("y")); !errors.Is(err, ErrFrame) {
		t.Errorf("beyond the window: %v", err)
	}
	if _, err := io.CopyN(io.Discard, b, Window-1); err != nil {
		t.Fatal(err)
	}
	if returned < Window/2 || returned > Window {
		t.Errorf("credit for %d bytes was returned", returned)
	}
	if err := b.Add([]byte("y")); err != nil {
		t.Error(err)
	}
	b.Close(nil)
	if err := b.Add([]byte("z")); err != nil { // dropped
		t.Error(err)
	}
	if rest, err := io.ReadAll(b); err != nil || string(rest) != "xy" {
		t.Errorf("%q %v", rest, err)
	}
}
