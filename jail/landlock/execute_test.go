package landlock

import (
	"debug/elf"
	"os"
	"strings"
	"testing"
)

// TestExecute checks the denials of the right to execute: neither programs in memory nor those
// that an executable loader maps.
func TestExecute(t *testing.T) {
	needRoot(t)
	needABI(t, 1)
	dir := tree(t)
	program := dir + "/a/true"
	text, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(program, text, 0o755); err != nil {
		t.Fatal(err)
	}
	loader := interpreter(t, program)
	list := []act{do("exec", program), do("exec", "/bin/true"), do("memfd", program), do("exec", loader, program)}
	if got := under(t, nil, list...); names(got) != "ok ok ok ok" {
		t.Fatalf("without a ruleset: %s", names(got))
	}
	ruleset := makeBelow(t, "/", &Ruleset{Handled: Execute, Rules: []Rule{{Path: "/usr", Tree: true, Access: Execute}}})
	if got := under(t, ruleset, list...); names(got) != "EACCES ok ok ok" {
		t.Errorf("execute handled: %s", names(got))
	}
	// A program that can't be read can't be copied to memory or mapped by a loader.
	const both = Execute | ReadFile
	ruleset = makeBelow(t, "/", &Ruleset{Handled: both, Rules: []Rule{
		{Path: "/usr", Tree: true, Access: both},
		{Path: "/etc", Tree: true, Access: ReadFile},
		{Path: "/dev/null", Access: ReadFile},
	}})
	got := under(t, ruleset, do("exec", program), do("exec", "/bin/true"), do("memfd", program), do("memfd", "/bin/true"))
	if names(got) != "EACCES ok EACCES ok" {
		t.Errorf("execute and read_file handled: %s", names(got))
	}
	if got := under(t, ruleset, do("exec", loader, program)); names(got) == "ok" {
		t.Error("the loader ran a program that it may not read")
	}
}

// interpreter returns the loader that a program names.
func interpreter(t *testing.T, program string) string {
	t.Helper()
	file, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	section := file.Section(".interp")
	if section == nil {
		t.Fatal(program + ": a static program has no loader")
	}
	name, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimRight(string(name), "\x00")
}
