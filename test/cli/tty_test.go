package cli

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"gaol/test/harness"
)

// hostTerminal is a terminal of this host, with a person at one end and a program at the
// other.
type hostTerminal struct {
	person, program *os.File
	screen          *bufio.Reader
}

func openTerminal(t *testing.T) *hostTerminal {
	t.Helper()
	fd, err := unix.Open("/dev/ptmx", unix.O_RDWR|unix.O_NOCTTY|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	person := os.NewFile(uintptr(fd), "person")
	n, err1 := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	err2 := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	err3 := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 33, Col: 77})
	program, err4 := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		person.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { program.Close(); person.Close() })
	return &hostTerminal{person, program, bufio.NewReader(person)}
}

func (d *hostTerminal) settings(t *testing.T) unix.Termios {
	t.Helper()
	s, err := unix.IoctlGetTermios(int(d.program.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// begin starts gaol run on the terminal.
func (d *hostTerminal) begin(t *testing.T, bin string, args ...string) *exec.Cmd {
	t.Helper()
	return d.beginAs(t, bin, "run", args...)
}

func (d *hostTerminal) beginAs(t *testing.T, bin, command string, args ...string) *exec.Cmd {
	t.Helper()
	args = append([]string{command, "--store", os.Getenv(harness.StoreVar)}, args...)
	if os.Getenv(harness.StoreVar) == "" {
		args = append(args[:1], args[3:]...)
	}
	cmd := exec.Command(bin, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = d.program, d.program, d.program
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd
}

func (d *hostTerminal) press(t *testing.T, keys string) {
	t.Helper()
	if _, err := d.person.WriteString(keys); err != nil {
		t.Fatal(err)
	}
}

// code waits for a program's end and returns its exit code.
func code(t *testing.T, cmd *exec.Cmd) int {
	t.Helper()
	late := time.AfterFunc(2*time.Minute, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// A person uses a guest's terminal from a terminal of the host, which has its old settings
// afterwards.
func TestTTY(t *testing.T) {
	bin := harness.Gaol(t)
	t.Run("work", func(t *testing.T) {
		d := openTerminal(t)
		was := d.settings(t)
		cmd := d.begin(t, bin, "--tty", "--command", "--", "sh", "-c", `trap 'echo inter''rupted' INT; trap 'stty size' WINCH; stty size; while read x; do echo got $x; done; while :; do read x && echo got $x && [ $x = end ] && exit 6; done`)
		harness.Expect(t, d.screen, "33 77\r\n")
		if now := d.settings(t); reflect.DeepEqual(was, now) || now.Lflag&unix.ICANON != 0 {
			t.Error("it does not take keys as they come")
		}
		d.press(t, "hello\r")
		harness.Expect(t, d.screen, "got hello\r\n")
		d.press(t, "\x03")
		harness.Expect(t, d.screen, "interrupted\r\n")
		if err := unix.IoctlSetWinsize(int(d.program.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 44, Col: 88}); err != nil {
			t.Fatal(err)
		}
		harness.Expect(t, d.screen, "44 88\r\n")
		d.press(t, "end\r")
		harness.Expect(t, d.screen, "got end\r\n")
		if strings.Contains(fmt.Sprint(cmd.ProcessState), "exited") {
			t.Error("it ended too soon")
		}
		d.press(t, "\x04end\r")
		if got := code(t, cmd); got != 6 {
			t.Errorf("exit status %d", got)
		}
		if now := d.settings(t); !reflect.DeepEqual(was, now) {
			t.Errorf("the terminal is %+v, was %+v", now, was)
		}
	})
	for _, tc := range []struct {
		name string
		args []string
		end  func(*exec.Cmd)
		want int
	}{
		{"terminated", []string{"--command", "--", "sh", "-c", "echo up; sleep 100"}, func(c *exec.Cmd) { _ = c.Process.Signal(unix.SIGTERM) }, 143},
		{"interrupted from outside", []string{"-e", "console.log('up'); setInterval(() => {}, 1000)"}, func(c *exec.Cmd) { _ = c.Process.Signal(unix.SIGINT) }, 130},
		{"out of time", []string{"--timeout", "4s", "-e", "console.log('up'); setInterval(() => {}, 1000)"}, func(*exec.Cmd) {}, 124},
		{"killed inside", []string{"-e", "console.log('up'); setTimeout(() => process.kill(process.pid, 'SIGKILL'), 100)"}, func(*exec.Cmd) {}, 137},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := openTerminal(t)
			was := d.settings(t)
			cmd := d.begin(t, bin, append([]string{"--tty"}, tc.args...)...)
			harness.Expect(t, d.screen, "up\r\n")
			tc.end(cmd)
			if got := code(t, cmd); got != tc.want {
				t.Errorf("exit status %d, want %d", got, tc.want)
			}
			if now := d.settings(t); !reflect.DeepEqual(was, now) {
				t.Errorf("the terminal is %+v, was %+v", now, was)
			}
		})
	}
	t.Run("no program", func(t *testing.T) {
		d := openTerminal(t)
		cmd := d.begin(t, bin, "--tty", "--command", "--", "/no/such")
		harness.Expect(t, d.screen, "give a program of the image")
		if got := code(t, cmd); got != 125 {
			t.Errorf("exit status %d", got)
		}
	})
}
