package network

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"gaol/policy"
	"gaol/runtime"
	"gaol/test/harness"
	"gaol/test/internettest"
)

// hostMode selects what this test binary does instead of running tests.
const hostMode = "GAOL_TEST_NETWORK_HOST"

func init() {
	var err error
	switch os.Getenv(hostMode) {
	case "":
		return
	case "busy":
		err = runHost(`"allow"`, `
			import net from 'node:net';
			const s = net.connect(7, 'api.example.com').once('data', () => { console.log('up'); });
			setInterval(() => s.write('x'), 1);`)
	case "next": // clears the state of dead hosts
		err = runHost(`"allow"`, `console.log('up')`)
	case "unasked":
		err = runHost(unaskedRules, unaskedRequests)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// runHost runs a program in a runtime with a network scope, and passes on its output.
func runHost(network, code string) error {
	p, err := policy.Parse([]byte(`{"network":` + network + `}`))
	if err != nil {
		return err
	}
	rt, err := runtime.Create(context.Background(), harness.Options(runtime.Options{Permissions: p}))
	if err != nil {
		return err
	}
	_, err = rt.Run(context.Background(), code, runtime.RunOptions{OnStdout: func(b []byte) { _, _ = os.Stdout.Write(b) }})
	return errors.Join(err, rt.Close(), runtime.CloseIdle())
}

// hostCommand returns the command of a process that uses the SDK.
func hostCommand(mode string) *exec.Cmd {
	host := exec.Command("/proc/self/exe")
	host.Env = append(os.Environ(), hostMode+"="+mode, harness.ParentVar+"="+harness.Parent)
	return host
}

// startHost starts a process that uses the SDK, and waits until its guest prints a line.
func startHost(t *testing.T, mode string) *exec.Cmd {
	t.Helper()
	host := hostCommand(mode)
	host.Stderr = os.Stderr
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = host.Process.Kill(); _ = host.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "up\n" {
		t.Fatalf("the host prints %q, %v", line, err)
	}
	return host
}

// If the process that uses gaol is killed, its connections are closed, and no process, BPF link
// or network namespace is left.
func TestKilledHostLeavesNothing(t *testing.T) {
	needBPF(t)
	serveInternet(t)
	ended := make(chan error, 2)
	serve := func(c net.Conn) {
		_, _ = c.Write([]byte("x")) // the guest is connected before, to this process
		_, err := io.Copy(io.Discard, c)
		ended <- err
	}
	internettest.Listen(t, publicV4, 7, serve)
	internettest.Listen(t, publicV6, 7, serve)
	before := harness.TakeInventory()
	host := startHost(t, "busy")
	spaces := networkSpaces(t, harness.TakeInventory().Processes, before.Processes)
	if len(spaces) != 1 || len(linksOf(t, spaces)) == 0 {
		t.Errorf("network namespaces %v with links %v: this test proves nothing", spaces, linksOf(t, spaces))
	}
	if err := host.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = host.Wait()
	<-ended
	harness.WaitFor(t, "the jail's processes have ended", func() bool { return len(harness.TakeInventory().Processes) == len(before.Processes) })
	harness.WaitFor(t, "no link is left", func() bool { return len(linksOf(t, spaces)) == 0 })
	harness.WaitFor(t, "no process is in the namespace", func() bool {
		return !slices.ContainsFunc(harness.Glob("/proc/[0-9]*/ns/net", "/proc/[0-9]*/task/[0-9]*/ns/net"), func(path string) bool {
			inode, err := inodeOf(path)
			return err == nil && slices.Contains(spaces, inode)
		})
	})
	_ = startHost(t, "next").Wait()
	before.CheckLeaks(t)
}

// networkSpaces returns the inodes of the network namespaces of processes, except for those in
// before and for this process's own.
func networkSpaces(t *testing.T, processes, before []string) (list []uint64) {
	t.Helper()
	own, err := inodeOf("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range processes {
		inode, err := inodeOf(filepath.Join("/proc", pid, "ns/net"))
		if err == nil && inode != own && !slices.Contains(before, pid) && !slices.Contains(list, inode) {
			list = append(list, inode)
		}
	}
	return list
}

func inodeOf(path string) (uint64, error) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return st.Ino, err
}

// linksOf returns the BPF links that are attached to network namespaces.
func linksOf(t *testing.T, spaces []uint64) (ids []link.ID) {
	t.Helper()
	all := new(link.Iterator)
	defer all.Close()
	for all.Next() {
		info, err := all.Link.Info()
		if err != nil {
			t.Fatal(err)
		}
		if n := info.NetNs(); n != nil && slices.Contains(spaces, uint64(n.NetnsIno)) {
			ids = append(ids, info.ID)
		}
	}
	if err := all.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}
