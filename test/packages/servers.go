package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"gaol/test/internettest"
)

const password = "sesame" // of both servers

// startPostgres starts PostgreSQL, as its user, on port 5432.
func startPostgres(t *scope, ca *internettest.Authority) {
	programs, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil || len(programs) == 0 {
		t.Fatal("postgresql is not installed: run .ci/deps packages ", err)
	}
	program := programs[len(programs)-1]
	s := newServer(t, "postgres")
	cert, key := ca.WriteCertificate(t, s.dir, host)
	secret := s.write("password", password)
	s.own(cert, key)
	data := filepath.Join(s.dir, "data")
	initdb := s.command(filepath.Join(filepath.Dir(program), "initdb"),
		"-D", data, "-U", "guest", "-A", "scram-sha-256", "--pwfile", secret, "-E", "UTF8", "--no-locale", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		t.Fatal("initdb: ", err, "\n", string(out))
	}
	access := s.write("pg_hba.conf", "host all all 0.0.0.0/0 scram-sha-256\n")
	s.start(s.command(program, "-D", data, "-c", "hba_file="+access, "-c", "listen_addresses="+address.String(), "-c", "unix_socket_directories=",
		"-c", "fsync=off", "-c", "ssl=on", "-c", "ssl_cert_file="+cert, "-c", "ssl_key_file="+key),
		"ready to accept connections", syscall.SIGINT) // which disconnects clients
}

// startRedis starts Redis, as an unprivileged user, on port 6379, and with TLS on port 6380.
func startRedis(t *scope, ca *internettest.Authority) {
	s := newServer(t, "nobody")
	cert, key := ca.WriteCertificate(t, s.dir, host)
	s.own(cert, key)
	// The package redis-tools contains the server, which starts no service, under this name.
	cmd := s.command("redis-check-rdb", "--bind", address.String(), "--port", "6379", "--tls-port", "6380",
		"--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", ca.File, "--tls-auth-clients", "no",
		"--requirepass", password, "--save", "", "--appendonly", "no")
	cmd.Args[0] = "redis-server"
	s.start(cmd, "Ready to accept connections", syscall.SIGTERM)
}

// server is a program that runs as another user, with files in a separate folder.
type server struct {
	t          *scope
	dir        string
	credential *syscall.Credential
}

func newServer(t *scope, name string) *server {
	u, err := user.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t, t.TempDir(), &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	s.own(s.dir)
	return s
}

// write writes a file that only the server can read.
func (s *server) write(name, text string) string {
	file := filepath.Join(s.dir, name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	s.own(file)
	return file
}

func (s *server) own(files ...string) {
	for _, file := range files {
		if err := os.Lchown(file, int(s.credential.Uid), int(s.credential.Gid)); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir = s.dir
	cmd.Env = []string{"PATH=/usr/bin:/bin", "LC_ALL=C"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: s.credential}
	return cmd
}

// start starts a server, and returns when it has printed a line with ready in it. At the
// end of the scope it is stopped by a signal.
func (s *server) start(cmd *exec.Cmd, ready string, stop os.Signal) {
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	drained := make(chan struct{})
	s.t.Cleanup(func() {
		_ = cmd.Process.Signal(stop) // it may have exited
		<-drained
		_ = cmd.Wait()
	})
	lines := bufio.NewReader(out)
	var text strings.Builder
	for !strings.Contains(text.String(), ready) {
		line, err := lines.ReadString('\n')
		text.WriteString(line)
		if err != nil {
			close(drained)
			s.t.Fatal(cmd.Path, ": ", err, "\n", text.String())
		}
	}
	go func() {
		defer close(drained)
		_, _ = io.Copy(io.Discard, lines)
	}()
}
