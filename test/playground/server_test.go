package playground

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"gaol/test/harness"
)

// token is a valid token, and tokens the line of the file with its hash.
const (
	token  = "0123456789abcdef0123456789abcdef"
	tokens = "people 3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9\n"
)

// startServer starts gaol serve with settings, and returns the URL of its TCP port.
func startServer(t *testing.T, gaol string, settings map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	config, err := json.Marshal(settings)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"config": string(config), "tokens": tokens} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"serve", "--socket", filepath.Join(dir, "s"), "--listen", "127.0.0.1:0", "--tokens", filepath.Join(dir, "tokens"),
		"--config", filepath.Join(dir, "config"), "--log-format", "json"}
	if store := os.Getenv(harness.StoreVar); store != "" {
		args = append(args, "--store", store)
	}
	cmd := exec.Command(gaol, args...)
	return start(t, cmd)
}

// start starts a server, which ends with the test, and returns its URL.
func start(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	logs, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	address := make(chan string, 1)
	done := make(chan struct{})
	var text []byte
	go func() {
		defer close(done)
		text = readLog(bufio.NewScanner(logs), address)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		<-done
		if err := cmd.Wait(); err != nil || t.Failed() {
			t.Logf("the server: %v\n%s", err, text)
		}
	})
	select {
	case a := <-address:
		return "http://" + a
	case <-done:
	case <-t.Context().Done():
	}
	t.Fatal("the server has not started")
	return ""
}

// readLog reads the server's log, and sends the address of its TCP listener.
func readLog(lines *bufio.Scanner, address chan<- string) (text []byte) {
	for lines.Scan() {
		var line struct{ Msg, Address string }
		if err := json.Unmarshal(lines.Bytes(), &line); err == nil && line.Msg == "serve" && line.Address[0] != '/' {
			address <- line.Address
		}
		text = append(append(text, lines.Bytes()...), '\n')
	}
	return text
}
