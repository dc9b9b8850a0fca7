package zygote

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"gaol/jail/enter"
	"gaol/jail/step"
)

func TestEncode(t *testing.T) {
	e := Entry{
		JoinFiles: make([]*os.File, 1), Limits: []enter.Limit{{Resource: 7, Most: 1 << 33}}, Filter: make([]byte, 2*enter.InstructionLen),
	}
	if got, want := e.encode(true), words(1, 1, 1, 2, 1000, 1000, 0, 0, 7, 0, 0, 2, 0, 0, 0, 0); !bytes.Equal(got, want) {
		t.Errorf("request % x, want % x", got, want)
	}
	e = Entry{Ruleset: os.Stdin, RulesetFlags: 3, OnListener: func(*os.File, syscall.Conn) {}}
	if got, want := e.encode(false), words(0, 0, 0, 0, 1000, 1000, hasRuleset|hasListener, 3); !bytes.Equal(got, want) || len(e.files()) != 1 {
		t.Errorf("the entry is % x, want % x, with %v", got, want, e.files())
	}
	p := Program{Args: []string{"node", "-x", "main"}, Script: 2, Env: []string{"A=1"}, Dir: "/work", Terminal: true, Files: make([]*os.File, 3)}
	const text = "node\x00-x\x00main\x00A=1\x00/work\x00"
	got, err := p.encode()
	if want := append(words(2, 1, 3, 3, 1, len(text)), text...); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the program is %q, %v, want %q", got, err, want)
	}
}

func TestEncodeErrors(t *testing.T) {
	good := Program{Args: []string{"sh"}, Dir: "/", Files: make([]*os.File, 3)}
	if _, err := good.encode(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*Program){
		"no program": func(p *Program) { p.Args = nil }, "script": func(p *Program) { p.Script = 1 }, "two files": func(p *Program) { p.Files = p.Files[:2] },
		"seven files": func(p *Program) { p.Files = make([]*os.File, 7) }, "NUL": func(p *Program) { p.Env = []string{"A=\x00"} },
	} {
		p := good
		spoil(&p)
		if _, err := p.encode(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	good.Env = []string{strings.Repeat("x", 8<<20)}
	if _, err := good.encode(); !errors.Is(err, syscall.E2BIG) {
		t.Errorf("too much text: %v", err)
	}
}

// steps names each enum step of the C source.
func TestSteps(t *testing.T) {
	_, list, _ := strings.Cut(Source, "enum step {")
	list, _, _ = strings.Cut(list, "}")
	if n := strings.Count(list, "STEP_"); n != len(steps)-1 {
		t.Errorf("%d names of steps, the C source has %d", len(steps)-1, n)
	}
	if err, ok := errors.AsType[*step.Error](stepError(3, uint32(syscall.ENOMEM))); !ok || err.Step != "clone" || !errors.Is(err, syscall.ENOMEM) {
		t.Errorf("step 3 is %v", err)
	}
	for _, number := range []uint32{0, 99} {
		if err := stepError(number, 1); !errors.Is(err, errUnexpected) {
			t.Errorf("step %d: %v", number, err)
		}
	}
}
