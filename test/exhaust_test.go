package test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"gaol/runtime"
)

// Variables of `make attack`: how long TestExhaust makes each kind of object, and a part of
// the names of those that it makes. With the first it also prints a table.
const (
	attackVar     = "GAOL_TEST_ATTACK"
	attackOnlyVar = "GAOL_TEST_ATTACK_ONLY"
)

// Whatever kernel objects a guest makes, those that its cgroup is not charged for are few,
// or small.
func TestExhaust(t *testing.T) {
	a := attack{duration: 250 * time.Millisecond, memory: 64 << 20, most: 16 << 20}
	if text := os.Getenv(attackVar); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		a.duration, a.most = d, 64<<20
		fmt.Println(tableHead)
	}
	a.program = buildExhaust(t)
	for i, mode := range a.modes(t) {
		launcher := launchers[i%len(launchers)]
		t.Run(mode.name, func(t *testing.T) {
			e := a.make(t, mode, launcher)
			for range 2 { // others' memory can only be told from a hole's by measuring again
				if e.lost > a.most {
					e = fewer(e, a.make(t, mode, launcher))
				}
			}
			if os.Getenv(attackVar) != "" {
				fmt.Println(e.row(a.most))
			}
			t.Log(e.row(a.most))
			switch {
			case e.lost > a.most:
				t.Errorf("%s objects hold %d MiB that no cgroup is charged for", e.count, e.lost>>20)
			case mode.refused && e.count != "0":
				t.Errorf("%s is to be refused", mode.name)
			}
		})
	}
}

// attack is how objects are made.
type attack struct {
	program  []byte
	duration time.Duration // of each kind
	memory   int64         // of each run, bytes
	most     int64         // bytes that may be uncharged; more is a hole
}

// objects is a mode of testdata/exhaust.
type objects struct {
	name    string
	refused bool
}

// buildExhaust compiles the program that makes objects.
func buildExhaust(t testing.TB) []byte {
	t.Helper()
	to := t.TempDir() + "/exhaust"
	cc := exec.Command("cc", append([]string{"-static", "-Os", "-s", "-o", to}, glob("testdata/exhaust/*.c")...)...)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	program, err := os.ReadFile(to)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// modes are those that the program lists.
func (a attack) modes(t testing.TB) []objects {
	t.Helper()
	rt := a.runtime(t, runtime.LauncherExec)
	defer rt.Close()
	var all []objects
	for _, line := range strings.Split(output(t, rt, runtime.RunOptions{}, exhaustPath, "list"), "\n") {
		how, name, _ := strings.Cut(line, " ")
		if strings.Contains(name, os.Getenv(attackOnlyVar)) {
			all = append(all, objects{name, how == "refused"})
		}
	}
	return all
}

// make makes objects of one kind and measures what they use.
func (a attack) make(t testing.TB, mode objects, launcher runtime.Launcher) exhausted {
	t.Helper()
	rt := a.runtime(t, launcher)
	e := exhausted{mode: mode, before: settled(t)}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	progress := make(chan string, 1)
	go func() {
		defer close(progress)
		res, err := a.start(ctx, rt, mode.name, launcher, progress)
		if err != nil {
			t.Errorf("%s: %v", mode.name, err)
			return
		}
		if e.cause = res.Cause; len(res.Stderr) > 0 {
			t.Errorf("%s: %s", mode.name, res.Stderr)
		}
	}()
	e.follow(t, progress, cancel)
	if err := rt.Close(); err != nil {
		t.Error(err)
	}
	e.left = settled(t).since(e.before).uncharged()
	return e
}
