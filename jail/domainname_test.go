package jail

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	goruntime "runtime"

	"golang.org/x/sys/unix"
)

const domainVar = "GAOL_TEST_DOMAIN"

// A UTS namespace inherits the domain name of the host; the jail hides it. The test runs
// itself again with a domain name.
func TestHostDomainNameIsHidden(t *testing.T) {
	if os.Getenv(domainVar) == "" {
		again := exec.Command("/proc/self/exe", "-test.run=^TestHostDomainNameIsHidden$")
		again.Env = append(os.Environ(), domainVar+"=of-the-host")
		again.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUTS}
		if text, err := again.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, text)
		}
		return
	}
	host := os.Getenv(domainVar)
	if err := unix.Setdomainname([]byte(host)); err != nil {
		t.Fatal(err)
	}
	j := newJail(t)
	names := make(chan [2]string)
	go func() {
		goruntime.LockOSThread() // never unlocked: the thread ends in the jail's namespace
		defer close(names)
		space, err := os.Open("/proc/" + strconv.Itoa(j.pid1.PID()) + "/ns/uts")
		if err != nil {
			t.Error(err)
			return
		}
		defer space.Close()
		own := domainName(t)
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWUTS); err != nil {
			t.Error(err)
			return
		}
		names <- [2]string{own, domainName(t)}
	}()
	if got, want := <-names, [2]string{host, "(none)"}; got != want {
		t.Errorf("the host and the jail are in the domains %q, want %q", got, want)
	}
}

func domainName(t *testing.T) string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Error(err)
	}
	return unix.ByteSliceToString(u.Domainname[:])
}
