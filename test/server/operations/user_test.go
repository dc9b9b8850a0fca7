package operations

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// getVar holds the socket and the path of the URL for getAsUser.
const getVar = "GAOL_TEST_SERVER_GET"

// otherUser is a user that is not root.
const otherUser = 4242

// getAsUser prints the status and the body of a response.
func getAsUser() (code int) {
	socket, path, _ := strings.Cut(os.Getenv(getVar), " ")
	client := &http.Client{Timeout: hangTime, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socket)
	}}}
	a := request(client, "GET", "http://gaol"+path, "", nil)
	if a.err != nil {
		fmt.Fprintln(os.Stderr, a.err)
		return 1
	}
	fmt.Print(a.status, " ", a.text)
	return 0
}

// asUser returns the status and the body that another user gets.
func asUser(t testing.TB, socket, path string) string {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), modeVar+"=get", getVar+"="+socket+" "+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUser, Gid: otherUser}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}
