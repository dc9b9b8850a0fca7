package lifecycle

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
	"gaol/test/tier"
)

const (
	victimVar = "GAOL_TEST_VICTIM"   // the action of a victim: a name of victims
	stateVar  = "GAOL_TEST_STATEDIR" // mounted over /run/gaol
	killers   = 2

	goneTime    = 10 * time.Second // within which a killed host's processes must end
	blockedTime = 60 * time.Second // within which a blocked process must end: see isBlocked
	startTime   = 60 * time.Second // within which a victim must do everything once
)

// A host that is killed at any moment of creating, running, closing, filling a pool or
// starting a zygote leaves no process: the kernel kills them. The next host removes
// everything else.
//
// The victims run below a process that adopts orphans, which therefore sees every process
// that a victim leaves. Each such process and its victims have their own parent cgroup and
// state folder, so that no other host removes their leftovers.
func TestHostIsKilledAtRandom(t *testing.T) {
	tier.Alone(t)
	kills := harness.Count(t, harness.KillsVar, 24)
	began := time.Now()
	var all sync.WaitGroup
	for i := range killers {
		state := t.TempDir()
		all.Go(func() {
			share := (kills + i) / killers
			total, err := runKiller(i, share, state)
			if err != nil {
				t.Errorf("killer %d: %v", i, err)
			}
			for _, failure := range total.Failures {
				t.Error(failure)
			}
			t.Logf("%d hosts were killed, %d of them with processes and %d leaving state; %d left processes; the slowest end took %v",
				total.Kills, total.Busy, total.Untidy, total.Failed, total.Slowest)
			if total.Kills != share || total.Busy < share/2 || total.Untidy < share/4 {
				t.Errorf("%d hosts should have been killed, many of them busy: the test proves little", share)
			}
		})
	}
	all.Wait()
	t.Logf("%d kills took %v", kills, time.Since(began).Round(time.Second))
}

// killTotal is a killer's output, as JSON.
type killTotal struct {
	Kills    int
	Busy     int // victims that had processes when they were killed
	Untidy   int // victims that left cgroups or state
	Failed   int // victims that left processes
	Slowest  time.Duration
	Failures []string
}

func runKiller(i, kills int, state string) (total killTotal, err error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), hostMode+"=killer", fmt.Sprintf("%s=%s-killer%d", harness.ParentVar, harness.Parent, i), stateVar+"="+state, harness.KillsVar+"="+strconv.Itoa(kills))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL}
	text, err := cmd.Output()
	if err != nil {
		return total, err
	}
	return total, json.Unmarshal(text, &total)
}

// runKillerHost kills as many victims as the environment says.
func runKillerHost() {
	k := &killer{rounds: map[string]time.Duration{}}
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		k.fail("adopt orphans: %v", err)
	}
	kills, _ := strconv.Atoi(os.Getenv(harness.KillsVar))
	for i := range kills {
		name := victimNames[i%len(victimNames)]
		if err := k.kill(name); err != nil {
			k.fail("%s: %v", name, err)
			break
		}
	}
	k.clear()
	_ = json.NewEncoder(os.Stdout).Encode(k.killTotal)
}

type killer struct {
	killTotal
	rounds map[string]time.Duration // how long a victim takes to do everything once
}

func (k *killer) fail(format string, args ...any) {
	failure := fmt.Sprintf(format, args...)
	fmt.Fprintln(os.Stderr, failure)
	k.Failures = append(k.Failures, failure)
}

// kill starts a victim, kills it, and waits until its processes are gone. The first victim
// of a name is killed after it has done everything once, the others at a random moment of
// that time.
func (k *killer) kill(name string) error {
	cmd, lines, err := startVictim(name)
	if err != nil {
		return err
	}
	watchdog := time.AfterFunc(startTime, func() { _ = cmd.Process.Kill() })
	defer watchdog.Stop()
	if line := readLine(lines); line != "up" {
		return fmt.Errorf("a victim prints %q", line)
	}
	if whole, known := k.rounds[name]; known {
		time.Sleep(rand.N(whole * 5 / 4))
	} else {
		began := time.Now()
		if line := readLine(lines); line != "round" {
			return fmt.Errorf("a victim prints %q", line)
		}
		k.rounds[name] = time.Since(began)
	}
	if len(childrenOf(cmd.Process.Pid)) > 0 {
		k.Busy++
	}
	if err := cmd.Process.Kill(); err != nil {
		return err
	}
	killed := time.Now()
	_ = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != unix.SIGKILL {
		return fmt.Errorf("a victim ended before it was killed: %v", cmd.ProcessState)
	}
	if k.Kills++; k.Kills%100 == 0 {
		fmt.Fprintf(os.Stderr, "%d hosts were killed, %d left processes\n", k.Kills, k.Failed)
	}
	if left := waitOrphans(killed); len(left) > 0 {
		k.Failed++
		k.fail("kill %d, of a host that did %q, left after %v:\n  %s", k.Kills, name, time.Since(killed).Round(time.Millisecond), describe(left))
		for _, p := range left {
			_ = unix.Kill(p.pid, unix.SIGKILL) // the pid cannot be reused: no other process reaps it
		}
	}
	k.Slowest = max(k.Slowest, time.Since(killed))
	if len(stateOfVictims()) > 0 {
		k.Untidy++
	}
	return nil
}

func startVictim(name string) (*exec.Cmd, *bufio.Reader, error) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), hostMode+"=victim", victimVar+"="+name)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: unix.SIGKILL, Unshareflags: unix.CLONE_NEWNS} // for the state folder
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, nil, err
	}
	return cmd, bufio.NewReader(out), cmd.Start()
}

func readLine(r *bufio.Reader) string {
	line, _ := r.ReadString('\n')
	return strings.TrimSpace(line)
}

// clear starts one more host, which makes a jail and closes it, and then expects nothing to
// be left.
func (k *killer) clear() {
	cmd, lines, err := startVictim("last")
	if err != nil {
		k.fail("start the last host: %v", err)
		return
	}
	up, done := readLine(lines), readLine(lines)
	if err := cmd.Wait(); err != nil || up != "up" || done != "round" {
		k.fail("the last host: %v, says %q and %q", err, up, done)
	}
	if left := waitOrphans(time.Now()); len(left) > 0 {
		k.fail("the last host left:\n  %s", describe(left))
	}
	if left := stateOfVictims(); len(left) > 0 {
		k.fail("not cleared: %v", left)
	}
	harness.RemoveParent()
	if left := harness.Glob("/sys/fs/cgroup/*"+harness.Parent, "/sys/fs/cgroup"+harness.Parent); len(left) > 0 {
		k.fail("not removed: %v", left)
	}
}

// stateOfVictims lists the state of jails and the cgroups of victims.
func stateOfVictims() []string {
	return harness.Glob(os.Getenv(stateVar)+"/jails/*", os.Getenv(stateVar)+"/oci/*", "/sys/fs/cgroup/*"+harness.Parent+"/*/cgroup.procs", "/sys/fs/cgroup"+harness.Parent+"/*/cgroup.procs")
}
