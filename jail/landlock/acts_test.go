package landlock

import (
	"errors"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// acts are the operations that a copy of the test binary can do.
var acts = map[string]func([]string) error{
	"open":       func(a []string) error { return open(a[0], unix.O_RDONLY) },
	"write":      func(a []string) error { return open(a[0], unix.O_WRONLY) },
	"append":     func(a []string) error { return open(a[0], unix.O_WRONLY|unix.O_APPEND) },
	"empty":      func(a []string) error { return open(a[0], unix.O_RDONLY|unix.O_TRUNC) },
	"truncate":   func(a []string) error { return unix.Truncate(a[0], 1) },
	"ftruncate":  ftruncate,
	"path":       func(a []string) error { return open(a[0], unix.O_PATH) },
	"stat":       func(a []string) error { return unix.Stat(a[0], new(unix.Stat_t)) },
	"list":       func(a []string) error { _, err := os.ReadDir(a[0]); return err },
	"create":     func(a []string) error { return open(a[0], unix.O_RDONLY|unix.O_CREAT|unix.O_EXCL) },
	"mkdir":      func(a []string) error { return unix.Mkdir(a[0], 0o755) },
	"symlink":    func(a []string) error { return unix.Symlink("target", a[0]) },
	"mkfifo":     func(a []string) error { return unix.Mkfifo(a[0], 0o644) },
	"bind":       bind,
	"mkchar":     func(a []string) error { return unix.Mknod(a[0], unix.S_IFCHR|0o644, int(unix.Mkdev(1, 3))) },
	"mkblock":    func(a []string) error { return unix.Mknod(a[0], unix.S_IFBLK|0o644, int(unix.Mkdev(7, 99))) },
	"unlink":     func(a []string) error { return unix.Unlink(a[0]) },
	"rmdir":      func(a []string) error { return unix.Rmdir(a[0]) },
	"rename":     func(a []string) error { return unix.Rename(a[0], a[1]) },
	"exchange":   func(a []string) error { return unix.Renameat2(-1, a[0], -1, a[1], unix.RENAME_EXCHANGE) },
	"link":       func(a []string) error { return unix.Link(a[0], a[1]) },
	"exec":       func(a []string) error { return runProgram(a[0], a[1:]...) },
	"memfd":      memfd,
	"ioctl":      ioctl,
	"mount":      func(a []string) error { return unix.Mount(a[0], a[1], "", unix.MS_BIND, "") },
	"private":    func([]string) error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") },
	"chmod":      func(a []string) error { return unix.Chmod(a[0], 0o600) },
	"reopen":     reopen,
	"chdir open": func(a []string) error { return chdirOpen(a[0], a[1]) },
	"kill":       kill,
	"kill child": killChild,
	"connect":    func(a []string) error { return connectBy(unix.IPPROTO_TCP, a[0]) },
	"fast open":  fastOpen,
	"mptcp":      func(a []string) error { return connectBy(unix.IPPROTO_MPTCP, a[0]) },
	"up":         func([]string) error { return bringUp() },
	"sysctl":     func(a []string) error { return os.WriteFile(a[0], []byte(a[1]), 0) },
	"listen":     listen,
}

func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0o644)
	if err == nil {
		unix.Close(fd)
	}
	return err
}

func chdirOpen(dir, name string) error {
	if err := unix.Chdir(dir); err != nil {
		return err
	}
	return open(name, unix.O_RDONLY)
}

// reopen opens a file by an O_PATH descriptor.
func reopen(a []string) error {
	fd, err := unix.Open(a[0], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return open("/proc/self/fd/"+strconv.Itoa(fd), unix.O_RDONLY)
}

// ftruncate opens a file without O_TRUNC and then truncates it.
func ftruncate(a []string) error {
	fd, err := unix.Open(a[0], unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Ftruncate(fd, 1)
}

func bind(a []string) error {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Bind(fd, &unix.SockaddrUnix{Name: a[0]})
}

// ioctl sends a command that a null device does not support.
func ioctl(a []string) error {
	fd, err := unix.Open(a[0], unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	_, err = unix.IoctlGetTermios(fd, unix.TCGETS)
	if err == unix.ENOTTY { // the command reached the device
		return nil
	}
	return err
}

func runProgram(path string, args ...string) error {
	err := exec.Command(path, args...).Run()
	if _, failed := errors.AsType[*exec.ExitError](err); failed {
		return unix.ENOEXEC // it was executed and failed
	}
	return err
}

// memfd runs a copy of a program in a memory file.
func memfd(a []string) error {
	program, err := os.ReadFile(a[0])
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return err
	}
	file := os.NewFile(uintptr(fd), "program")
	defer file.Close()
	if _, err := file.Write(program); err != nil {
		return err
	}
	return runProgram("/proc/self/fd/" + strconv.Itoa(fd))
}

func kill(a []string) error {
	pid, err := strconv.Atoi(a[0])
	if err != nil {
		return err
	}
	return unix.Kill(pid, 0)
}

func killChild([]string) error {
	cmd := exec.Command("/bin/sleep", "10")
	if err := cmd.Start(); err != nil {
		return err
	}
	err := unix.Kill(cmd.Process.Pid, unix.SIGKILL)
	if err != nil {
		time.Sleep(10 * time.Second)
	}
	_ = cmd.Wait()
	return err
}

// bringUp brings up the loopback interface of the network namespace.
func bringUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	request, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	request.SetUint16(unix.IFF_UP)
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, request)
}

func loopback(port string) *unix.SockaddrInet4 {
	n, err := strconv.Atoi(port)
	if err != nil {
		panic(err)
	}
	return &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}, Port: n}
}

func stream(protocol int) (int, error) {
	return unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, protocol)
}

// listen leaves its socket open until the copy exits.
func listen(a []string) error {
	fd, err := stream(unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_FASTOPEN, 8); err != nil {
		return err
	}
	if err := unix.Bind(fd, loopback(a[0])); err != nil {
		return err
	}
	return unix.Listen(fd, 8)
}

func connectBy(protocol int, port string) error {
	fd, err := stream(protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return unix.Connect(fd, loopback(port))
}

// fastOpen connects by sendto.
func fastOpen(a []string) error {
	fd, err := stream(unix.IPPROTO_TCP)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, []byte("hello"), unix.MSG_FASTOPEN, loopback(a[0])); err != nil {
		return err
	}
	_, err = unix.Getpeername(fd)
	return err
}

// names returns the names of errnos, "ok" for 0.
func names(errnos []syscall.Errno) string {
	var list []string
	for _, e := range errnos {
		list = append(list, map[bool]string{true: "ok", false: unix.ErrnoName(e)}[e == 0])
	}
	return strings.Join(list, " ")
}
