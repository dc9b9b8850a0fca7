package zygote

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail"
	"gaol/jail/cgroup"
	"gaol/jail/zygote"
	"gaol/test/harness"
)

// faulty is a zygote whose first child works, whose next children each have one fault while
// they enter the jail, and whose later children work again. Of each two children, one is
// killed and one stops at the same point: before each statement of enter or begin_program
// in src/child.c, and after the last. Then, for each step of enum step, the call of one
// child fails.
type faulty struct {
	points int
	steps  []string // those that a child checks with must, in the order of enum step
}

const faultySource = `
static int turn; /* the number of the last fork */

static void point(int n)
{
	if ((turn - 2) / 2 == n && turn >= 2)
		kill(getpid(), turn % 2 ? SIGSTOP : SIGKILL);
}
`

// source is zygote.Source with the faults.
func (f *faulty) source(t *testing.T) string {
	t.Helper()
	source := zygote.Source
	for _, head := range []string{"static void enter(napi_env env, int pidfd)\n{\n", "static void begin_program(void)\n{\n"} {
		before, rest, ok1 := strings.Cut(source, head)
		body, after, ok2 := strings.Cut(rest, "\n}\n")
		if !ok1 || !ok2 {
			t.Fatalf("%q is not in the source as expected", head)
		}
		source = before + head + f.withPoints(body) + "\n}\n" + after
	}
	for at, what := range map[string]string{
		"static pid_t fork_into(int cgroup)\n{\n":           "\tturn++;\n",
		"static void must(enum step step, int result)\n{\n": fmt.Sprintf("\tif (turn - 2 - 2 * %d == (int)step - 1) {\n\t\terrno = EXFULL;\n\t\tresult = -1;\n\t}\n", f.points),
		"enum step {\n": "",
	} {
		if strings.Count(source, at) != 1 {
			t.Fatalf("%q is not in the source once", at)
		}
		source = strings.Replace(source, at, at+what, 1)
	}
	at := strings.Index(source, "/* As fork, but")
	return source[:at] + faultySource + source[at:]
}

// withPoints adds a fault point before each statement of a function's body, and after the
// last.
func (f *faulty) withPoints(body string) string {
	body = regexp.MustCompile(`(?m)^\t\b`).ReplaceAllStringFunc(body, func(tab string) string {
		f.points++
		return fmt.Sprintf("\tpoint(%d);\n%s", f.points-1, tab)
	}) + fmt.Sprintf("\n\tpoint(%d);", f.points)
	f.points++
	return body
}

func compileFaulty(t *testing.T, source string) []byte {
	t.Helper()
	to := filepath.Join(t.TempDir(), "zygote.so")
	cc := exec.Command("cc", "-x", "c", "-shared", "-fPIC", "-O2", "-Wall", "-Werror", "-o", to, "-")
	cc.Stdin = strings.NewReader(source)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	object, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return object
}

func (f *faulty) failSteps(t *testing.T, j *jail.Jail, pool *zygote.Pool) {
	t.Helper()
	var failed []string
	for range strings.Count(enumStep(t), "STEP_") {
		exit, err := forkOnce(t, j, pool, whole)
		if err == nil && exit.Code == ranCode {
			continue // a step that is checked elsewhere, for example by the zygote
		}
		step, ok := errors.AsType[*jail.StepError](err)
		if !ok || !errors.Is(err, unix.EXFULL) {
			t.Errorf("after %v: %+v, %v", failed, exit, err)
			continue
		}
		failed = append(failed, step.Step)
		harness.CheckNoRuns(t)
	}
	want := f.steps
	if v, err := cgroup.Detect(); err == nil && v == cgroup.V2 {
		want = slices.DeleteFunc(slices.Clone(want), func(s string) bool { return s == "cgroup" }) // on v2 a child is created in its cgroup
	}
	if !slices.Equal(slices.Sorted(slices.Values(failed)), slices.Sorted(slices.Values(want))) {
		t.Errorf("failed at %v, want %v", failed, want)
	}
}

func enumStep(t *testing.T) string {
	t.Helper()
	_, list, _ := strings.Cut(zygote.Source, "enum step {")
	list, _, ok := strings.Cut(list, "}")
	if !ok {
		t.Fatal("the source has no enum step")
	}
	return list
}
