package jail

import (
	"net"
	"os"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/enter"
)

// A host dies before pid 1 has set its death signal, and its socket stays open, so pid 1
// gets neither a signal nor a hangup. It executes nothing, and ends when the socket is closed.
func TestHostIsKilledBeforeTheDeathSignal(t *testing.T) {
	const name = "gaol-test-death"
	const piece = "if (do_step("
	const wait = `(prctl(PR_SET_NAME, "` + name + `"), read_all(&(char){ 0 }, 1), false)` // for the byte that is written below
	patchEntryProgram(t, piece, `if (list[current - 1].op == STEP_DEATH_SIGNAL && `+wait+`) fail(errno); else `+piece)
	host, _ := startHost(t)
	waitFor(t, "pid 1 to come to its death signal", func() bool { return len(processesNamed(t, name)) == 1 })
	socket := socketOf(t, host.Process.Pid)
	defer socket.Close()
	if err := host.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	if _, err := socket.Write([]byte{0}); err != nil {
		t.Fatal(err)
	}
	if step, _, err := enter.ReadReport(socket, nil); err != nil || step == 0 {
		t.Errorf("pid 1 reports %#x, %v; zero means that it executes its program", step, err)
	}
	socket.Close()
	waitFor(t, "pid 1 to end", func() bool { return len(jailProcesses(t)) == 0 && len(processesNamed(t, name)) == 0 })
	if err := sweep(stateDir); err != nil {
		t.Error(err)
	}
	if left := leftovers(); len(left) > 0 {
		t.Errorf("after a sweep: %v", left)
	}
}

// socketOf duplicates the only socket of a process.
func socketOf(t *testing.T, pid int) *net.UnixConn {
	t.Helper()
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(pidfd)
	entries, err := os.ReadDir("/proc/" + strconv.Itoa(pid) + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		number, err := strconv.Atoi(e.Name())
		if err != nil {
			t.Fatal(err)
		}
		fd, err := unix.PidfdGetfd(pidfd, number, 0)
		if err != nil {
			continue // it was closed
		}
		f := os.NewFile(uintptr(fd), "socket")
		conn, err := net.FileConn(f) // fails if it is not a socket
		f.Close()
		if err == nil {
			return conn.(*net.UnixConn)
		}
	}
	t.Fatal("the host has no socket")
	return nil
}
