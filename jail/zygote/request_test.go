package zygote

import (
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"gaol/jail/enter"
)

func words(b []byte) []uint32 {
	var ws []uint32
	for ; len(b) >= 4; b = b[4:] {
		ws = append(ws, binary.NativeEndian.Uint32(b))
	}
	return ws
}

func TestEncode(t *testing.T) {
	r := Request{
		Args: []string{"node", "-x", "main"}, Script: 2, Env: []string{"A=1"}, Dir: "/work",
		Files: make([]*os.File, 3), JoinFiles: make([]*os.File, 1), UID: 1000, GID: 1001,
		Limits: []enter.Limit{{Resource: 7, Most: 1 << 33}}, Filter: make([]byte, 2*instructionLen),
	}
	b, err := r.encode()
	if err != nil {
		t.Fatal(err)
	}
	const text = "node\x00-x\x00main\x00A=1\x00/work\x00"
	want := []uint32{2, 3, 1, 1, 2, 3, 1, uint32(len(text)), 1000, 1001, 7, 0, 0, 2, 0, 0, 0, 0}
	head := b[:len(b)-len(text)]
	for i, w := range words(head) {
		if i >= len(want) || w != want[i] {
			t.Fatalf("encoded as %v, want %v", words(head), want)
		}
	}
	if string(b[len(head):]) != text {
		t.Errorf("text %q, want %q", b[len(head):], text)
	}
}

func TestCheck(t *testing.T) {
	good := Request{Args: []string{"sh"}, Dir: "/", Files: make([]*os.File, 3)}
	if err := good.check(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Request){
		"no program": func(r *Request) { r.Args = nil }, "script": func(r *Request) { r.Script = 1 }, "two files": func(r *Request) { r.Files = r.Files[:2] },
		"six files": func(r *Request) { r.Files = make([]*os.File, 6) }, "NUL": func(r *Request) { r.Env = []string{"A=\x00"} },
	} {
		r := good
		spoil(&r)
		if r.check() == nil {
			t.Errorf("%s: no error", name)
		}
	}
	good.Env = []string{strings.Repeat("x", maxText)}
	if _, err := good.encode(); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("too much text: %v", err)
	}
}

// The names of steps follow enum step of the C source.
func TestSteps(t *testing.T) {
	_, list, _ := strings.Cut(Source, "enum step {")
	list, _, _ = strings.Cut(list, "}")
	if n := strings.Count(list, "STEP_"); n != len(steps)-1 {
		t.Errorf("%d steps have names, the C source has %d", len(steps)-1, n)
	}
	if err, ok := errors.AsType[*StepError](stepError(3, uint32(syscall.ENOMEM))); !ok || err.Step != "clone" || !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("step 3 is %v", err)
	}
	for _, step := range []uint32{0, 99} {
		if err := stepError(step, 1); !errors.Is(err, errUnexpected) {
			t.Errorf("step %d: %v", step, err)
		}
	}
}
