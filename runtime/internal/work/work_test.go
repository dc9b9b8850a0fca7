package work

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gaol/internal/snippet"
	"gaol/runtime/snippets/bundle"
	"gaol/runtime/snippets/lint"
	"gaol/test/tier"
)

const parent = "/gaol-test-work"

func open(tb testing.TB) *Domain {
	tb.Helper()
	if os.Geteuid() != 0 {
		tb.Skip("needs root")
	}
	d := Of(fmt.Sprintf("%s-%d", parent, os.Getpid()))
	tb.Cleanup(func() {
		d.limit = maxTime
		if err := CloseIdle(); err != nil {
			tb.Error(err)
		}
		for _, pattern := range []string{"/sys/fs/cgroup/*%s/j*", "/sys/fs/cgroup%s/j*"} {
			if left, _ := filepath.Glob(fmt.Sprintf(pattern, d.parent)); len(left) > 0 {
				tb.Errorf("left behind: %v", left)
			}
			parents, _ := filepath.Glob(strings.TrimSuffix(fmt.Sprintf(pattern, d.parent), "/j*"))
			for _, dir := range parents {
				_ = os.Remove(dir) // fails if groups are left, which is an error already, or another test uses it
			}
		}
	})
	return d
}

// ternaries is code that takes esbuild exponential time.
func ternaries(n int) string { return "x=" + strings.Repeat("a?(b):c=>d?", n) + "1" }

func TestOperations(t *testing.T) {
	for name, d := range map[string]*Domain{"subprocess": open(t), "in process": InProcess} {
		t.Run(name, func(t *testing.T) { testOperations(t, d) })
	}
}

func testOperations(t *testing.T, d *Domain) {
	ctx := t.Context()
	p, err := d.Compile(ctx, Source{Code: []byte("let a: number = 1\n\nthrow new Error('x')")})
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(p.Code(), "new Error")
	line := 1 + strings.Count(before, "\n")
	column := 1 + len(before) - (strings.LastIndex(before, "\n") + 1)
	if l, c, ok := p.Position(line, column); l != 3 || c != 7 || !ok {
		t.Errorf("position %d:%d, %v of\n%s", l, c, ok, p.Code())
	}
	_, err = d.Compile(ctx, Source{Code: []byte("let a = = 1"), Cell: true})
	if e, ok := errors.AsType[*snippet.SyntaxError](err); !ok || e.Column != 9 || !strings.Contains(e.Frame(), "let a = =") {
		t.Errorf("%v", err)
	}
	if code, err := d.Translate(ctx, "a.ts", "enum A { b }\xff", false); code != "" || err == nil || !strings.Contains(err.Error(), "UTF-8") {
		t.Errorf("%q, %v", code, err)
	}
	if code, err := d.Translate(ctx, "a.ts", "let a: string", true); !strings.HasPrefix(code, "let a;") || err != nil {
		t.Errorf("%q, %v", code, err)
	}
	none := func(string) bool { return false }
	if s, err := d.SyntaxOf(ctx, "function f(module) {} require(1)", none); s != (snippet.Syntax{CommonJS: true}) || err != nil {
		t.Errorf("%+v, %v", s, err)
	}
	files := []bundle.File{{Path: "src/main.ts", Source: "export const a: number = 1"}}
	b, problems, err := bundle.Bundle(ctx, files, bundle.Options{Run: d.Bundle})
	if err != nil || b == nil || !strings.Contains(b.Code, "var a = 1") {
		t.Errorf("%v, %v, %v", b, problems, err)
	}
	rules := lint.Directive()
	files[0].Source = "eval('1')"
	_, problems, err = bundle.Bundle(ctx, files, bundle.Options{Rules: &rules, Run: d.Bundle})
	if err != nil || len(problems) != 1 || problems[0].Rule != lint.Name {
		t.Errorf("%v, %v", problems, err)
	}
	schema := []byte(`{"type": "object", "properties": {"pattern": {"type": "string"}, "$ref": {}, "patternProperties": {}}}`)
	if err := d.CheckSchema(ctx, schema); err != nil {
		t.Error(err)
	}
	if err := d.CheckSchema(ctx, []byte(`{"type": 1}`)); !errors.Is(err, ErrSchema) {
		t.Error(err)
	}
	if err := d.Validate(ctx, schema, []byte(`{"pattern": 1}`)); err == nil || errors.Is(err, ErrSchema) {
		t.Error(err)
	}
}

// The time limit of a check does not include the wait for a turn.
func TestCheckWaits(t *testing.T) {
	d := open(t)
	for range cap(d.slots) {
		d.slots <- struct{}{}
	}
	checked := make(chan error)
	go func() { checked <- d.CheckSchema(t.Context(), []byte(`{"type": "object"}`)) }()
	time.Sleep(maxCheckTime + 100*time.Millisecond)
	for range cap(d.slots) {
		<-d.slots
	}
	if err := <-checked; err != nil {
		t.Error(err)
	}
}

// Each input exhausts what bounds it, fails alone, and leaves the domain as it was.
func TestHostileCode(t *testing.T) {
	tier.Soak(t)
	d := open(t)
	for name, tc := range map[string]struct {
		source Source
		reason string
	}{
		"time":   {Source{Code: []byte(ternaries(60))}, "took longer than"},
		"stack":  {Source{Code: []byte("let a: any = " + strings.Repeat("!", 200_000) + "1")}, "nests too deeply"},
		"memory": {Source{Code: []byte("enum A { a0 = 'xxxxxxxxxxxxxxxx', " + enumMembers(40) + "}")}, "memory"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.Compile(t.Context(), tc.source)
			if _, ok := errors.AsType[*snippet.SyntaxError](err); !ok || !strings.Contains(err.Error(), tc.reason) {
				t.Errorf("%v, want %s", err, tc.reason)
			}
			if _, err := d.Compile(t.Context(), Source{Code: []byte("1 + 1")}); err != nil {
				t.Error(err)
			}
		})
	}
}

func enumMembers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "a%d = a%d + a%d, ", i+1, i, i)
	}
	return b.String()
}

// A canceled operation ends its process, and returns why.
func TestCanceled(t *testing.T) {
	d := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the client has gone")
	started := make(chan struct{})
	go func() {
		<-started
		for len(d.slots) == 0 { // until the operation has begun
			time.Sleep(time.Millisecond)
		}
		cancel(cause)
	}()
	close(started)
	if _, err := d.Translate(ctx, "a.ts", ternaries(60), false); !errors.Is(err, cause) {
		t.Error(err)
	}
	if len(d.idle) != 0 {
		t.Errorf("%d processes", len(d.idle))
	}
}

// Operations take turns at the processes, and hostile ones do not stop others of the domain for longer
// than their time.
func TestProcesses(t *testing.T) {
	d := open(t)
	errs := make(chan error, 20)
	for i := range cap(errs) {
		go func() {
			p, err := d.Compile(t.Context(), Source{Code: fmt.Appendf(nil, "let a: number = %d", i)})
			if err == nil && !strings.Contains(p.Code(), fmt.Sprint(i)) {
				err = errors.New(p.Code())
			}
			errs <- err
		}()
	}
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := len(d.idle); n < 1 || n > maxProcesses {
		t.Errorf("%d processes", n)
	}
}

// The kernel's OOM killer or root may kill an idle process.
func TestKilledWhileIdle(t *testing.T) {
	d := open(t)
	for range 2 {
		if _, err := d.Compile(t.Context(), Source{Code: []byte("1")}); err != nil {
			t.Fatal(err)
		}
		d.mu.Lock()
		p := d.idle[0]
		d.mu.Unlock()
		p.Kill()
		<-p.Done()
	}
}

// BenchmarkCompile compares both kinds of domains in turns.
func BenchmarkCompile(b *testing.B) {
	confined := open(b)
	for name, code := range map[string]string{
		"JavaScript": "const f = (a) => ({ a });\nf(1);\nf(2)",
		"TypeScript": "interface A { b: string }\nconst f = (a: A): string => a.b;\nf({ b: 'c' })",
	} {
		for kind, d := range map[string]*Domain{"in process": InProcess, "confined": confined} {
			b.Run(name+"/"+kind, func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					if _, err := d.Compile(b.Context(), Source{Code: fmt.Appendf(nil, "%s // %d", code, i)}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
