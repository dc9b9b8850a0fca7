package audit

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	goruntime "runtime"
	"strconv"
	"testing"

	"gaol/jail/landlock"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// helperEnv makes the test binary a guest that, once its standard input ends, enforces the
// ruleset in descriptor 3 with these flags and executes its arguments.
const helperEnv = "GAOL_AUDIT_HELPER"

func TestMain(m *testing.M) {
	if flags := os.Getenv(helperEnv); flags != "" {
		if err := help(flags); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func help(text string) error {
	goruntime.LockOSThread() // domains belong to threads
	flags, err := strconv.Atoi(text)
	if err != nil {
		return err
	}
	if _, err := os.Stdin.Read(make([]byte, 1)); err == nil {
		return fmt.Errorf("unexpected standard input")
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if err := ll.LandlockRestrictSelf(3, uint32(flags)); err != nil {
		return err
	}
	for i, arg := range os.Args[1:] {
		if err := helpWith(arg, i); err != nil {
			return err
		}
	}
	return nil
}

// helpWith reads the file of the first argument itself, and further ones by cat: denials
// after an execve are recorded only with LOG_NEW_EXEC_ON.
func helpWith(path string, i int) error {
	if path == "nest" {
		return nest()
	}
	if i == 0 {
		if _, err := os.ReadFile(path); err == nil {
			return fmt.Errorf("%s: was read", path)
		}
		return nil
	}
	if exec.Command("/bin/cat", path).Run() == nil {
		return fmt.Errorf("%s: was read by cat", path)
	}
	return nil
}

// nest enforces another domain, which the guest creates itself, and is denied by it.
func nest() error {
	ruleset, err := makeRuleset(&landlock.Ruleset{Handled: landlock.MakeDir})
	if err != nil {
		return err
	}
	defer ruleset.Close()
	if err := ll.LandlockRestrictSelf(int(ruleset.Fd()), unix.LANDLOCK_RESTRICT_SELF_LOG_NEW_EXEC_ON); err != nil {
		return err
	}
	if err := unix.Mkdir(os.TempDir()+"/nested", 0); err != unix.EACCES {
		return fmt.Errorf("mkdir: %w", err)
	}
	return nil
}

func makeRuleset(r *landlock.Ruleset) (*os.File, error) {
	root, err := os.OpenFile("/", unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return r.Make(root)
}

// enableAudit enables audit until the test ends. It skips the test if audit is locked.
func enableAudit(t *testing.T) {
	t.Helper()
	lock, err := os.Open("/run") // tests of other packages may do the same at the same time
	if err == nil {
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	was, err := enabled()
	switch {
	case err != nil:
		t.Skip("audit: ", err)
	case was > 1:
		t.Skip("audit is locked")
	case was == 0:
		if err := set(1); err != nil {
			t.Skip("enable audit: ", err)
		}
		t.Cleanup(func() {
			if err := set(0); err != nil {
				t.Error("disable audit: ", err)
			}
		})
	}
	if err := Available(); err != nil {
		t.Skip(err)
	}
}

func set(on uint32) error {
	status := make([]byte, 40) // struct audit_status
	binary.NativeEndian.PutUint32(status, unix.AUDIT_STATUS_ENABLED)
	binary.NativeEndian.PutUint32(status[4:], on)
	r := nl.NewNetlinkRequest(unix.AUDIT_SET, unix.NLM_F_ACK)
	r.AddRawData(status)
	_, err := request(r)
	return err
}
