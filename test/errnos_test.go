package test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"gaol/jail/seccomp"
)

// The restrictions of package seccomp are the source of the errnos of calls that permissions refuse. The reference in
// policy/doc.go and the pages in docs name the same ones.
func TestErrnosOfRefusedCalls(t *testing.T) {
	for _, c := range []struct {
		restriction      []seccomp.Row
		scope, operation string // of the row in policy/doc.go
		page, row        string // beginning of the row in a page; "" if no row is about it alone
	}{
		{seccomp.NoSpawn, "childProcess", "spawn", "permissions.md", "childProcess: spawn"},
		{seccomp.NoForeignLimits, "process", "signal", "permissions.md", "process: signal"},
		{seccomp.NoMetadata, "fs", "chmod everywhere", "permissions.md", "fs: chmod"},
		{seccomp.NoRename, "fs", "rename everywhere", "", ""},
		{seccomp.NoWatch, "fs", "readdir", "permissions.md", "fs: read, readdir"},
		{seccomp.NoInternet, "network", "fetch connect listen", "permissions.md", "network: listen, and UDP"},
		{seccomp.NoStreams, "network", "fetch connect listen", "permissions.md", "network: listen, and UDP"},
		{seccomp.NoDatagrams, "network", "fetch connect listen", "permissions.md", "network: listen, and UDP"},
		{seccomp.AskConnect, "network", "dns, external hosts, by rule", "network.md", "a denied address or port"},
	} {
		documented := errnosOf(t, "../policy/doc.go", "//\t", c.scope, c.operation)
		inPage := documented
		if c.page != "" {
			inPage = errnosOf(t, "../docs/"+c.page, "| ", c.row, "")
		}
		for _, row := range c.restriction {
			for _, r := range row.Refuse {
				if name := unix.ErrnoName(r.Errno); !slices.Contains(documented, name) || !slices.Contains(inPage, name) {
					t.Errorf("%s: %s; policy/doc.go has %q, docs/%s %q", row.Calls, name, documented, c.page, inPage)
				}
			}
		}
	}
}

// errnosOf returns the errnos in the first or only row of a table that begins with the cells.
func errnosOf(t *testing.T, file, prefix string, cells ...string) []string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		row, ok := strings.CutPrefix(line, prefix+cells[0])
		if ok && strings.HasPrefix(strings.TrimLeft(row, " "), cells[1]) {
			return regexp.MustCompile(`\bE[A-Z]{3,}\b`).FindAllString(row, -1)
		}
	}
	t.Fatalf("%s has no row %q", file, cells)
	return nil
}
