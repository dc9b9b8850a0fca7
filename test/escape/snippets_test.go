package escape

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gaol/runtime"
	"gaol/runtime/snippets"
	"gaol/test/harness"
)

// TestSnippetsWithoutLint runs each known way round a validator of source code, with no
// validator. It may reach all of Node: the jail must hold. Neither the host's secrets nor
// another snippet's leave theirs, a snippet that runs at the same time is not disturbed, and
// a later one finds nothing that they left. The result is an Output within its limits.
func TestSnippetsWithoutLint(t *testing.T) {
	h := newSecretHost(t)
	r := newRunner(t, snippets.Options{})
	v := startVictim(t, r, h)
	clean := r.run(t, h.snippet(probe), 0)
	checkClean(t, clean)
	probes := harness.Fewer(1, 5) // leftovers stay, so that not each attack needs its own probe
	for i, a := range harness.Some(slices.Concat(ways(), deeds)) {
		t.Run(a.name, func(t *testing.T) {
			v.wait(t)
			out := r.run(t, h.snippet(a.code), a.timeout)
			checkBounds(t, out)
			h.checkNoSecret(t, out)
			if a.want != nil {
				a.want(t, out)
			}
			if i%probes == 0 {
				checkClean(t, r.run(t, h.snippet(probe), 0))
			}
			v.check(t)
		})
	}
	checkClean(t, r.run(t, h.snippet(probe), 0))
	if n := h.accepted.Load(); n > 0 {
		t.Errorf("snippets connected to the host %d times", n)
	}
}

// TestSharedSnippetsWithoutLint does the same with snippets of one owner, in one sandbox. They
// must not reach the host.
func TestSharedSnippetsWithoutLint(t *testing.T) {
	h := newSecretHost(t)
	r := newRunner(t, snippets.Options{Shared: true})
	list := slices.Concat(ways(), deeds)
	for i := 0; i < len(list); i += harness.Fewer(1, 15) {
		t.Run(list[i].name, func(t *testing.T) {
			out := r.run(t, h.snippet(list[i].code), list[i].timeout)
			checkBounds(t, out)
			h.checkNoSecret(t, out)
			if out := r.run(t, "export const a = 1", 0); string(out.Facts) != `{"a":1}` {
				t.Errorf("a later snippet reports %s, %q", out.Facts, out.Errors)
			}
		})
	}
	if n := h.accepted.Load(); n > 0 {
		t.Errorf("snippets connected to the host %d times", n)
	}
}

// TestPublicNetworkWithoutLint: a snippet that may use the public internet does not reach the
// host by any name of it.
func TestPublicNetworkWithoutLint(t *testing.T) {
	h := newSecretHost(t)
	r := newRunner(t, snippets.Options{Network: "public"})
	out := r.run(t, h.snippet(`
		const answers = [];
		for (const host of ['127.0.0.1', 'localhost', '[::1]', '[::ffff:7f00:1]', '2130706433', '0x7f.1', '0', '127.1.2.3', 'localhost.']) {
			answers.push(await fetch('http://' + host + ':' + places.port).then((r) => r.text(), () => 'refused'));
		}
		export const reached = answers.every((a) => a === 'refused'), found = await search(process, places);`), 0)
	h.checkNoSecret(t, out)
	wantReached(t, out)
	if n := h.accepted.Load(); n > 0 {
		t.Errorf("snippets connected to the host %d times", n)
	}
}

// TestSecretsAreFound shows that the search finds each kind of secret where it is allowed, and
// each kind of change.
func TestSecretsAreFound(t *testing.T) {
	h := newSecretHost(t)
	rt := harness.Create(t, runtime.Options{Mounts: []runtime.Mount{{Source: h.folder, Target: h.folder}}})
	const mine = "secret-own-0123456789abcdef"
	for name, tc := range map[string]struct {
		code, want string
		env        map[string]string
	}{
		"file of the host": {"__return(await search(process, places))", h.secret, nil},
		"file":             {"import fs from 'node:fs'; fs.writeFileSync('/workspace/secret', '" + mine + "'); __return(await search(process, places))", mine, nil},
		"variable":         {"__return(await search(process, places))", "secret-variable-0123456789abcdef", map[string]string{"A": "secret-variable-0123456789abcdef"}},
		"port": {"import net from 'node:net'; const s = net.createServer(c => c.end('secret-port-' + '0123456789abcdef')).listen(0, async () => {" +
			"places.port = s.address().port; __return(await search(process, places)); s.close() })", "secret-port-0123456789abcdef", nil},
		"prototype":    {"Object.prototype.left = 1; __return(changes())", "Object.prototype.left", nil},
		"function":     {"Map.prototype.get = () => {}; __return(changes())", "get", nil},
		"stack traces": {"Error.prepareStackTrace = function replaced() {}; __return(changes())", "prepareStackTrace", nil},
		"global":       {"globalThis.left = 1; __return(changes())", "left", nil},
	} {
		t.Run(name, func(t *testing.T) {
			var found []string
			res := harness.Run(t, rt, h.snippet(tc.code), runtime.RunOptions{Env: tc.env})
			if err := res.Decode(&found); err != nil || !slices.Contains(found, tc.want) {
				t.Errorf("%q, %v, want %s", found, err, tc.want)
			}
		})
	}
}

// probe is a snippet that reports everything which others could have left.
const probe = "export const found = await search(process, places), changed = changes()"

// checkClean checks the output of probe.
func checkClean(t *testing.T, out *snippets.Output) {
	t.Helper()
	if got := string(out.Facts); got != `{"changed":[],"found":[]}` && got != `{"found":[],"changed":[]}` || len(out.Errors)+len(out.Logs) > 0 {
		t.Errorf("a later snippet reports %.1000s, %.1000q, %.1000q", got, out.Errors, out.Logs)
	}
}

// checkBounds checks the limits of an output.
func checkBounds(t *testing.T, out *snippets.Output) {
	t.Helper()
	size := 0
	for _, line := range out.Logs {
		size += len(line)
	}
	if len(out.Logs) > snippets.MaxLogs+1 || size > snippets.MaxLogBytes+1000 {
		t.Errorf("%d lines of %d bytes", len(out.Logs), size)
	}
	if n := len(out.Facts) + len(out.Derived); n > 1<<20 || !json.Valid(out.Facts) || !json.Valid(out.Derived) {
		t.Errorf("a state of %d bytes: %.100s, %.100s", n, out.Facts, out.Derived)
	}
	if len(out.Errors) > 20 {
		t.Errorf("%d errors", len(out.Errors))
	}
	for _, e := range out.Errors {
		if len(e) > 10<<10 {
			t.Errorf("an error of %d bytes", len(e))
		}
	}
}

// A snippetRunner runs snippets.
type snippetRunner struct{ *snippets.Runner }

func newRunner(t *testing.T, o snippets.Options) snippetRunner {
	t.Helper()
	o.Sandbox = harness.Options(o.Sandbox)
	o.NoLint, o.MaxConcurrent = true, 3
	o.NodeModules, o.Cache = "../../runtime/snippets/testdata/packages/node_modules", t.TempDir()
	r, err := snippets.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	return snippetRunner{r}
}

// run runs a snippet. Without a timeout, the longest applies.
func (r snippetRunner) run(t *testing.T, source string, timeout time.Duration) *snippets.Output {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := r.Run(ctx, snippets.Input{Source: source, Timeout: cmp.Or(timeout, 10*time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// A secretHost is the forbidden targets of a snippet: files, a variable and listeners of this
// process that have a secret.
type secretHost struct {
	secret, folder string
	accepted       atomic.Int32
	places         string // JavaScript that declares where the secret is
	library        string
}

func newSecretHost(t *testing.T) *secretHost {
	t.Helper()
	h := &secretHost{secret: newSecret("host"), folder: t.TempDir()}
	library, err := os.ReadFile("testdata/snippets.mjs")
	if err != nil {
		t.Fatal(err)
	}
	h.library = string(library)
	for dir := h.folder; dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(h.folder, "file")
	if err := os.WriteFile(file, []byte(h.secret), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GAOL_TEST_SECRET", h.secret)
	socket, abstract := filepath.Join(h.folder, "socket"), "gaol-test-"+hex.EncodeToString([]byte(h.secret[len(h.secret)-8:]))
	tcp := h.listen(t, "tcp", "127.0.0.1:0")
	h.listen(t, "unix", socket)
	h.listen(t, "unix", "@"+abstract)
	h.places = fmt.Sprintf("const places = { files: [%q, '/etc/shadow', '/proc/1/environ'], port: %d, socket: %q, abstract: %q };\n",
		file, tcp.(*net.TCPAddr).Port, socket, abstract)
	return h
}

func newSecret(of string) string { return fmt.Sprintf("secret-%s-%016x", of, rand.Uint64()) }

// listen sends the secret on each connection.
func (h *secretHost) listen(t *testing.T, network, address string) net.Addr {
	t.Helper()
	l, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			h.accepted.Add(1)
			_, _ = c.Write([]byte(h.secret))
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr()
}

func (h *secretHost) snippet(code string) string { return h.places + h.library + code }

// checkNoSecret checks that an output contains no secret of others.
func (h *secretHost) checkNoSecret(t *testing.T, out *snippets.Output) {
	t.Helper()
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{h.secret, "secret-victim-"} {
		if i := strings.Index(string(text), secret); i >= 0 {
			t.Errorf("the snippet knows a secret: %.200s", text[i:])
		}
	}
}

// A victim is a snippet that runs beside the attacks, again and again. It has a secret, and
// reports when something of it changes.
type victim struct {
	ready   atomic.Bool
	changes chan string
}

func startVictim(t *testing.T, r snippetRunner, h *secretHost) *victim {
	t.Helper()
	v := &victim{changes: make(chan string, 100)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			v.run(ctx, r, h, newSecret("victim"))
		}
	}()
	t.Cleanup(func() { cancel(); <-done })
	return v
}

// run runs the victim until its timeout. It is ready when it has found its own secret.
func (v *victim) run(ctx context.Context, r snippetRunner, h *secretHost, secret string) {
	code := fmt.Sprintf(`
		import fs from 'node:fs';
		const secret = %q;
		for (const folder of ['/workspace', '/tmp', '/dev/shm']) fs.writeFileSync(folder + '/secret', secret);
		process.env.SECRET = secret;
		console.log((await search(process, places)).join());
		const before = fs.readdirSync('/proc').filter(Number).join();
		setInterval(() => {
			const list = changes();
			for (const folder of ['/workspace', '/tmp', '/dev/shm']) if (fs.readFileSync(folder + '/secret', 'utf8') !== secret) list.push(folder);
			if (fs.readdirSync('/proc').filter(Number).join() !== before) list.push('processes');
			if (list.length > 0) console.log(list.join());
		}, 50);`, secret)
	out, err := r.Run(ctx, snippets.Input{Source: h.snippet(code), Timeout: 10 * time.Second, OnLog: func(line string) {
		if line == "[log] "+secret {
			v.ready.Store(true)
		} else {
			v.report(line)
		}
	}})
	v.ready.Store(false)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		v.report(err.Error())
	case !out.TimedOut || len(out.Errors) != 1:
		v.report(strings.Join(out.Errors, "; "))
	}
}

func (v *victim) report(text string) {
	select {
	case v.changes <- text:
	default:
	}
}

func (v *victim) wait(t *testing.T) {
	t.Helper()
	harness.WaitFor(t, "the other snippet", func() bool { return v.ready.Load() || len(v.changes) > 0 })
}

// check fails the test if the victim was disturbed.
func (v *victim) check(t *testing.T) {
	t.Helper()
	for {
		select {
		case text := <-v.changes:
			t.Errorf("the other snippet reports %.500q", text)
		default:
			return
		}
	}
}

var errNoReport = errors.New("the snippet has not reported what it reached")

// reached returns a snippet's export named reached.
func reached(out *snippets.Output) (bool, error) {
	var facts struct{ Reached *bool }
	if err := json.Unmarshal(out.Facts, &facts); err != nil || facts.Reached == nil {
		return false, errors.Join(errNoReport, err)
	}
	return *facts.Reached, nil
}
