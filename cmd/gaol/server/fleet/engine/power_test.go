package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// powerVar enables TestPowerLoss, which needs the kernel's dm-flakey.
const powerVar = "GAOL_TEST_POWER"

// TestPowerLoss cuts the power of a disk while messages are submitted, several times. All messages that the engine has acknowledged before
// exist afterwards.
func TestPowerLoss(t *testing.T) {
	if os.Getenv(powerVar) == "" {
		t.Skip("make test-vm runs this test: it needs dm-flakey")
	}
	for _, servers := range []int{1, 3} {
		t.Run(fmt.Sprint(servers, " servers"), func(t *testing.T) {
			if acknowledged, lost := losePower(t, program, servers); acknowledged == 0 || lost > 0 {
				t.Errorf("%d of %d acknowledged messages are lost", lost, acknowledged)
			}
		})
	}
	t.Run("without sync_interval", func(t *testing.T) { // else the disk would keep everything
		lazy := filepath.Join(t.TempDir(), "nats-server")
		script := "#!/bin/sh\n/bin/sed -i 's/\"always\"/\"1h\"/' \"$2\" && exec " + program + " \"$@\"\n"
		if err := os.WriteFile(lazy, []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		if acknowledged, lost := losePower(t, lazy, 1); lost == 0 {
			t.Errorf("all of %d messages are there", acknowledged)
		}
	})
}

// losePower submits messages to servers with their files on one disk, and returns how many they have acknowledged, and how many of these
// are lost.
func losePower(t *testing.T, program string, servers int) (acknowledged, lost int) {
	t.Helper()
	disk := newDisk(t)
	var names []string
	const rounds = 3
	for round := range rounds + 1 {
		disk.mount(t)
		c, end := disk.startEngine(t, program, servers)
		for _, name := range names {
			if data, err := c.Queued(t.Context(), 1, name); string(data) != name {
				t.Logf("%s: %q, %v", name, data, err)
				lost++
			}
		}
		if round == rounds || lost > 0 {
			end()
			disk.unmount(t)
			break
		}
		names = append(names, disk.submit(t, c, round)...)
		end()
		disk.unmount(t)
		disk.set(t, disk.linear)
	}
	t.Logf("%d messages, %d lost", len(names), lost)
	return len(names), lost
}

// disk is a disk whose power can be cut.
type disk struct {
	name, dir        string // of the device mapper; where it is mounted
	linear, powerOff string // its tables
	off              atomic.Bool
}

// sh runs a command, and returns its output.
func sh(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(args[0], args[1:]...).CombinedOutput()
	if err != nil {
		t.Fatalf("%q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// newDisk makes a disk with a file system.
func newDisk(t *testing.T) *disk {
	t.Helper()
	file := filepath.Join(t.TempDir(), "disk")
	const size = 512 << 20
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Truncate(file, size)); err != nil {
		t.Fatal(err)
	}
	loop := sh(t, "losetup", "--find", "--show", file)
	t.Cleanup(func() { sh(t, "losetup", "--detach", loop) })
	end := fmt.Sprintf("0 %d ", size/512)
	d := &disk{name: "gaol-power-" + strconv.Itoa(os.Getpid()), dir: t.TempDir(), linear: end + "linear " + loop + " 0", powerOff: end + "flakey " + loop + " 0 0 3600 1 drop_writes"}
	sh(t, "dmsetup", "create", d.name, "--table", d.linear)
	t.Cleanup(func() { sh(t, "dmsetup", "remove", "--retry", d.name) })
	sh(t, "mke2fs", "-q", "-t", "ext4", d.device())
	return d
}

func (d *disk) device() string { return "/dev/mapper/" + d.name }

func (d *disk) mount(t *testing.T) {
	t.Helper()
	sh(t, "mount", d.device(), d.dir)
}

func (d *disk) unmount(t *testing.T) {
	t.Helper()
	sh(t, "umount", d.dir)
}

// set gives the disk another table, without writing the file system's cache first.
func (d *disk) set(t *testing.T, table string) {
	t.Helper()
	d.off.Store(table == d.powerOff)
	sh(t, "dmsetup", "suspend", "--nolockfs", d.name)
	sh(t, "dmsetup", "load", d.name, "--table", table)
	sh(t, "dmsetup", "resume", d.name)
}

// startEngine starts one server, or a cluster of three, with files on the disk. The caller ends it.
func (d *disk) startEngine(t *testing.T, program string, servers int) (c *Client, end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	all, routes := make([]atomic.Pointer[Server], servers), make([]string, servers)
	for i := range all {
		routes[i] = openRoute(ctx, t, &all[i])
	}
	for i := range all {
		o := Options{Program: program, Dir: filepath.Join(d.dir, strconv.Itoa(i)), Token: token, Log: logger(t)}
		if servers > 1 {
			o.Cluster = &Cluster{Name: "test", Server: "server" + strconv.Itoa(i), Routes: slices.Delete(slices.Clone(routes), i, i+1)}
		}
		err := os.MkdirAll(o.Dir, 0o700)
		if err == nil {
			var s *Server
			s, err = Start(ctx, o)
			all[i].Store(s)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	c, err := Connect(all[0].Load().Dial, Access{Secret: token, Copies: servers}, "test", logger(t))
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, "connection", c.Connected)
	waitFor(t, "streams", func() bool { return c.Prepare(t.Context()) == nil })
	return c, func() {
		cancel()
		for i := range all {
			_ = all[i].Load().process.Load().Kill() // it may have ended
		}
		for i := range all {
			<-all[i].Load().Done()
		}
		c.Close()
	}
}

// openRoute returns an address whose connections lead to the port for routes of a server, which may start later.
func openRoute(ctx context.Context, t *testing.T, to *atomic.Pointer[Server]) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	context.AfterFunc(ctx, func() { _ = l.Close() })
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			go func() {
				_ = Tunnel(ctx, c, func(ctx context.Context) (net.Conn, error) { // until an end closes
					if s := to.Load(); s != nil {
						return s.DialRoute(ctx)
					}
					return nil, ErrUnavailable
				})
			}()
		}
	}()
	return l.Addr().String()
}

// submit submits messages of a round until it cuts the power. It returns the acknowledged messages.
func (d *disk) submit(t *testing.T, c *Client, round int) (names []string) {
	t.Helper()
	const enough = 40 // messages
	var mu sync.Mutex
	var submitting sync.WaitGroup
	reached := make(chan struct{})
	for worker := range 4 {
		submitting.Go(func() {
			for i := 0; !d.off.Load(); i++ {
				name := fmt.Sprintf("%d-%d-%d", round, worker, i)
				err := c.Submit(t.Context(), 1, name, []byte(name))
				if d.off.Load() {
					return // it may not have been acknowledged before
				}
				if err != nil {
					t.Errorf("submit %s: %v", name, err)
				}
				mu.Lock()
				if names = append(names, name); len(names) == enough {
					close(reached)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-reached:
	case <-time.After(timeout):
		t.Errorf("no %d messages after %v", enough, timeout)
	}
	time.Sleep(rand.N(300 * time.Millisecond)) // at any moment of a write
	d.set(t, d.powerOff)
	submitting.Wait()
	return names
}
