package zygote

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gaol/runtime"
	"gaol/test/harness"
)

// getenvSource is a library for LD_PRELOAD that prints the names of variables that are
// read.
const getenvSource = `
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

static char *report(const char *function, const char *name)
{
	char *(*real)(const char *) = dlsym(RTLD_NEXT, function);
	char line[128] = "reads ";

	strncat(line, name, 100);
	strcat(line, "\n");
	if (write(2, line, strlen(line)) < 0)
		_exit(1);
	return real(name);
}

char *getenv(const char *name) { return report("getenv", name); }
char *secure_getenv(const char *name) { return report("secure_getenv", name); }
`

// readAtStart lists the variables that the image's Node reads until a zygote of it is warm.
func readAtStart(t *testing.T) []string {
	t.Helper()
	dir := t.TempDir()
	library, script := filepath.Join(dir, "getenv.so"), filepath.Join(dir, "warm.cjs")
	warm, err := os.ReadFile("../../runtime/internal/guest/warm.cjs")
	if err != nil {
		t.Fatal(err)
	}
	modules := regexp.MustCompile(`const warm = (\[[^\]]+\]);`).FindSubmatch(warm)
	if modules == nil {
		t.Fatal("warm.cjs has no list of modules")
	}
	code := "for (const name of " + string(modules[1]) + ") require(name); console.log(); console.error();"
	if err := os.WriteFile(script, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	cc := exec.Command("cc", "-x", "c", "-shared", "-fPIC", "-o", library, "-")
	cc.Stdin = strings.NewReader(getenvSource)
	if text, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	node := exec.Command(filepath.Join(harness.DefaultImage(t).Root(), "usr/local/bin/node"), "--disable-sigusr1", "--require="+script, script)
	node.Env = []string{"LD_PRELOAD=" + library}
	text, err := node.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	names := map[string]bool{}
	for _, found := range regexp.MustCompile(`(?m)^reads (\w+)$`).FindAllSubmatch(text, -1) {
		names[string(found[1])] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// A run with a variable that Node reads at its start gets a new Node instead of a fork.
// Other variables do not matter.
func TestZygoteVariables(t *testing.T) {
	rt := harness.CreateForking(t, runtime.Options{})
	launcher := func(name string) (runtime.Launcher, string) {
		res := harness.Run(t, rt, ``, runtime.RunOptions{Env: map[string]string{name: "0"}})
		return res.Launcher, res.LauncherReason
	}
	late := []string{
		"HOME", "NODE_PATH", // a child makes Node read it again
		"FORCE_COLOR", // Node reads it each time
		"NODE_ENV", "NODE_TLS_REJECT_UNAUTHORIZED", "SSL_CERT_FILE",
	}
	names := readAtStart(t)
	for _, name := range []string{"NODE_OPTIONS", "NODE_EXTRA_CA_CERTS", "LC_ALL", "OPENSSL_CONF"} {
		if !slices.Contains(names, name) {
			t.Errorf("%s is not among %q, which Node reads", name, names)
		}
	}
	for _, name := range harness.Some(names) {
		if l, reason := launcher(name); !slices.Contains(late, name) && (l != runtime.LauncherExec || !strings.Contains(reason, name)) {
			t.Errorf("%s: %v, %q", name, l, reason)
		}
	}
	for _, name := range late {
		if l, reason := launcher(name); l != runtime.LauncherZygote || reason != "" {
			t.Errorf("%s: %v, %q", name, l, reason)
		}
	}
}
