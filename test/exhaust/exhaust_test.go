package exhaust

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/tier"
)

// Variables of `make attack`: how long TestExhaust makes each kind of object, and a part of
// the names of those that it makes. With the first it also prints a table.
const (
	attackVar     = "GAOL_TEST_ATTACK"
	attackOnlyVar = "GAOL_TEST_ATTACK_ONLY"
)

// mostUnbounded is how many bytes a run may make the kernel hold beyond its limits. More is
// a hole.
const mostUnbounded = 64 << 20

// late lists objects that only the host bounds, by killing the run. How much the kernel
// holds by then depends on how busy the machine is. SECURITY.md has figures of a quiet one.
// A page fragment is one byte that keeps 32 KiB in memory, and counts as a byte. ext4 remembers where the parts of files
// are, 72 bytes for each, until memory is short.
var late = map[string]int64{
	"disk: extents":                  192 << 20,
	"disk: holes":                    192 << 20,
	"POSIX locks":                    192 << 20,
	"open folders, mount":            192 << 20,
	"TCP connections":                512 << 20,
	"TCP filled":                     512 << 20,
	"TCP not accepted":               512 << 20,
	"TCP not accepted, filled":       512 << 20,
	"TCP not accepted, filled, open": 512 << 20,
	"TCP orphans":                    512 << 20,
	"TCP page fragments":             1200 << 20,
	"UDP filled":                     512 << 20,
	"UDP errors":                     512 << 20,
}

// mostOf is the limit in bytes for objects of a kind.
func mostOf(name string) int64 { return max(mostUnbounded, late[name]) }

// Kernel objects that a guest creates are charged to its cgroup or bounded otherwise. What
// no cgroup is charged for is measured on the machine as a whole. The test first creates
// objects of a few kinds at a time for a moment, and then those of each suspicious kind
// alone and for longer.
func TestExhaust(t *testing.T) {
	tier.Alone(t)
	a := attack{duration: 2 * time.Second, program: buildExhaust(t), print: t.Log}
	if text := os.Getenv(attackVar); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		a.duration, a.print = d, func(row ...any) { fmt.Println(row...) }
	}
	a.print(tableHead)
	names := a.list(t)
	if os.Getenv(attackVar) == "" {
		names = a.suspicious(t, names)
	}
	for i, name := range names {
		t.Run(name, func(t *testing.T) { a.alone(t, name, harness.Launchers[i%len(harness.Launchers)]) })
	}
	t.Run("refused", a.refused)
}

// attack is how objects are created.
type attack struct {
	program  []byte
	duration time.Duration // of each kind
	print    func(row ...any)
}

// list returns the names of all kinds of objects.
func (a attack) list(t *testing.T) []string {
	rt := a.create(t, "", runtime.LauncherExec)
	var names []string
	for name := range strings.Lines(harness.Output(t, rt, runtime.RunOptions{}, exhaustPath, "list")) {
		if strings.Contains(name, os.Getenv(attackOnlyVar)) {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// suspicious returns the kinds of which a moment suffices to create some that are not
// bounded. Of kinds that are tried at the same time, each may be the cause.
func (a attack) suspicious(t *testing.T, names []string) []string {
	const atOnce, most = 4, 12 << 20
	a.duration = 300 * time.Millisecond
	var found []string
	for some := range slices.Chunk(names, atOnce) {
		all := make([]*exhausted, len(some))
		for i, name := range some {
			all[i] = a.make(t, name, harness.Launchers[i%len(harness.Launchers)])
		}
		before := settled()
		var wg sync.WaitGroup
		for _, e := range all {
			wg.Go(func() { a.run(t, e, before) })
		}
		wg.Wait()
		for _, e := range all {
			if e.lost > most {
				found = append(found, e.name)
			} else if e.count == "" {
				t.Errorf("%s: nothing was tried", e.name)
			}
		}
	}
	return found
}

// alone creates objects of one kind. What looks like a small hole may be caused by other
// work on the machine, and is measured again.
func (a attack) alone(t *testing.T, name string, launcher runtime.Launcher) {
	var e *exhausted
	for range 3 {
		next := a.make(t, name, launcher)
		before := settled()
		a.run(t, next, before)
		next.left = settled().since(before).uncharged()
		if e == nil || next.lost < e.lost {
			e = next
		}
		if most := mostOf(name); e.lost <= most || e.lost > 3*most {
			break
		}
	}
	a.print(e.row())
	if e.lost > mostOf(name) {
		t.Errorf("%s objects hold %d MiB that no limit bounds", e.count, e.lost>>20)
	}
}

// refused tries the system calls that create further objects. Guests may use none of them.
func (a attack) refused(t *testing.T) {
	rt := a.create(t, "", runtime.LauncherExec)
	for line := range strings.Lines(harness.Output(t, rt, runtime.RunOptions{}, exhaustPath, "refused")) {
		errno, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		a.print(fmt.Sprintf("| %s | 0 | | | | | | refused: %s |", name, errno))
		if errno == "-" {
			t.Errorf("%s can be made", name)
		}
	}
}
