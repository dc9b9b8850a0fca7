package resultjson

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

// A stream survives whatever the boundaries of its parts are, and text stays text.
func TestSplitter(t *testing.T) {
	for name, stream := range map[string]string{
		"empty":   "",
		"ascii":   "hello",
		"text":    "aé€😀z",
		"half":    "a\xe2\x82",
		"invalid": "\xff\xfea\x80é\xc3",
		"long":    strings.Repeat("x€😀", maxOutput/4),
		"binary":  strings.Repeat("\x80", 2*maxOutput+5),
	} {
		for _, size := range []int{1, 2, 3, 5, maxOutput - 1, 3 * maxOutput} {
			if len(stream) > 1000*size {
				continue
			}
			var s Splitter
			var all []byte
			take := func(pieces []Output) {
				for _, p := range pieces {
					all = append(all, checkOutput(t, name, p)...)
					if utf8.ValidString(stream) && p.Bytes != nil {
						t.Errorf("%s, parts of %d: text became bytes: %q", name, size, p.Bytes)
					}
				}
			}
			for rest := []byte(stream); len(rest) > 0; {
				part := bytes.Clone(rest[:min(size, len(rest))])
				take(s.Split(part))
				clear(part) // the reader reuses it
				rest = rest[len(part):]
			}
			take(s.End())
			if string(all) != stream {
				t.Errorf("%s, parts of %d: the stream changed", name, size)
			}
			if more := s.End(); more != nil {
				t.Errorf("%s, parts of %d: after the end: %v", name, size, more)
			}
		}
	}
}

// checkOutput sends a piece through JSON and returns its bytes.
func checkOutput(t *testing.T, name string, sent Output) []byte {
	t.Helper()
	text, err := json.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var p Output
	if err := json.Unmarshal(text, &p); err != nil {
		t.Fatal(err)
	}
	b := p.Bytes
	if b == nil {
		b = []byte(p.Text)
	}
	if len(b) == 0 || len(b) > maxOutput {
		t.Errorf("%s: a piece of %d bytes", name, len(b))
	}
	return b
}

func TestIncomplete(t *testing.T) {
	for text, want := range map[string]int{"": 0, "a": 0, "aä": 0, "a\xc3": 1, "€"[:2]: 2, "x\xf0\x9f\x98": 3, "\xff": 0, "a\x80\x80\x80\x80": 0} {
		if got := Incomplete([]byte(text)); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
