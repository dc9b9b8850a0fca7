package mounts

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

const (
	firstID = 100_000

	// victimVar makes the test program a host that makes id maps and nothing else.
	victimVar = "GAOL_TEST_IDMAPS"
)

func TestMain(m *testing.M) {
	if os.Getenv(victimVar) != "" {
		makeIDMaps()
	}
	if dir := os.Getenv(guestVar); dir != "" {
		testInChroot(dir)
	}
	os.Exit(m.Run())
}

// makeIDMaps makes several at a time until it is killed.
func makeIDMaps() {
	fmt.Println("up")
	for range 16 {
		go func() {
			for {
				if f, err := newIDMap(swapIDs(1, GuestUID, firstID), swapIDs(1, GuestGID, firstID)); err == nil {
					f.Close()
				}
			}
		}()
	}
	select {}
}

// If a host is killed while it makes id maps, the processes that it made for them end. They
// share its standard output, which then reaches its end.
func TestHostIsKilledWhileItMapsIDs(t *testing.T) {
	for range 100 {
		host := exec.Command("/proc/self/exe")
		host.Env = append(os.Environ(), victimVar+"=1")
		out, err := host.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := host.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); line != "up\n" {
			t.Fatalf("the host prints %q, %v", line, err)
		}
		time.Sleep(rand.N(20 * time.Millisecond))
		if err := host.Process.Signal(unix.SIGKILL); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() {
			_, err := io.Copy(io.Discard, lines)
			ended <- err
		}()
		select {
		case err := <-ended:
			if err != nil {
				t.Error(err)
			}
		case <-time.After(time.Minute):
			t.Fatal("a process that the host started is left")
		}
		_ = host.Wait()
	}
}

func TestIDMapLeavesNoChild(t *testing.T) {
	f, err := newIDMap(swapIDs(0, 0, firstID), swapIDs(0, 0, firstID))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WALL|unix.WNOHANG|unix.WNOWAIT, nil); err != unix.ECHILD {
		t.Errorf("a child is left: %v", err)
	}
}

func TestSwapIDs(t *testing.T) {
	for owner, want := range map[int]string{
		0:     "[{0 101000 1} {1000 100000 1} {1 100001 999} {1001 101001 64535}]",
		1000:  "[{1000 101000 1} {0 100000 1000} {1001 101001 64535}]",
		4242:  "[{4242 101000 1} {1000 104242 1} {0 100000 1000} {1001 101001 3241} {4243 104243 61293}]",
		70000: "[{70000 101000 1} {0 100000 1000} {1001 101001 64535}]",
	} {
		if got := fmt.Sprint(swapIDs(owner, 1000, firstID)); got != want {
			t.Errorf("%d: %s, want %s", owner, got, want)
		}
	}
}

// In a mount for a jail of another kernel, files of the owner are the guest's, and root can make files and give them to the guest.
func TestCloneOutside(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root")
	}
	for _, owner := range []int{0, 4321, GuestUID, IDsPerJail} {
		dir := t.TempDir()
		if err := os.Chown(dir, owner, owner); err != nil {
			t.Fatal(err)
		}
		source, err := os.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer source.Close()
		mount, err := CloneOutside(Mount{Source: source, Access: ReadWrite}, firstID)
		if err != nil {
			t.Fatal(err)
		}
		defer mount.Close()
		var info unix.Stat_t
		guest := GuestOwner(firstID)
		if err := unix.Fstat(int(mount.Fd()), &info); err != nil || int(info.Uid) != guest.UID || int(info.Gid) != guest.GID {
			t.Errorf("owner %d: %d, %d, %v", owner, info.Uid, info.Gid, err)
		}
		fd, err := unix.Openat(int(mount.Fd()), "new", unix.O_CREAT|unix.O_WRONLY, 0o600)
		if err == nil {
			err = unix.Fchown(fd, guest.UID, guest.GID)
			unix.Close(fd)
		}
		if failed := unix.Stat(dir+"/new", &info); err != nil || failed != nil || int(info.Uid) != owner || int(info.Gid) != owner {
			t.Errorf("owner %d: the new file has %d, %d, %v, %v", owner, info.Uid, info.Gid, err, failed)
		}
	}
}
