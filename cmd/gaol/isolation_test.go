package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"gaol/runtime"
)

func TestIsolationErrors(t *testing.T) {
	inherit := `--inherit excludes --isolation`
	for args, want := range map[string]string{
		"run --isolation docker -e 1":                        `--isolation "docker": not one of native, gvisor, microvm, runc, crun and oci=/path; see gaol run --help`,
		"run --isolation= -e 1":                              `"--isolation" flag: it is empty`,
		"run --isolation=oci=runc -e 1":                      "not absolute",
		"run --isolation runc --launcher zygote -e 1":        "--launcher zygote: isolation oci does not support",
		"run --server=/nosuch --isolation= -e 1":             `"--isolation" flag: it is empty`,
		"run --server=/nosuch --isolation kata -e 1":         "no such file", // the server knows its names
		"eval --isolation docker -e 1":                       "see gaol eval --help",
		"repl --isolation docker":                            "see gaol repl --help",
		"snippet run --isolation docker -":                   "see gaol snippet run --help",
		"snippet check --isolation docker docs":              "see gaol snippet check --help",
		"mcp --isolation docker":                             "see gaol mcp --help",
		"mcp --isolation runc --socket /nosuch":              "the server's settings define its isolation",
		"mcp --config cursor --isolation runc --socket /run": "the server's settings define its isolation",
		"serve --isolation docker":                           `--isolation "docker"`,
		"serve --inherit 3 --isolation runc":                 inherit,
	} {
		t.Run(args, func(t *testing.T) {
			t.Setenv("GAOL_SOCKET", "")
			checkFailure(t, new(fake).call(t, "", strings.Fields(args)...), want)
		})
	}
}

// Errors of the SDK about both options name the flag.
func TestIsolationOptionErrors(t *testing.T) {
	for _, option := range []string{"Isolation", "OCI"} {
		failed := &runtime.OptionError{Option: option, Err: errors.New("no such program")}
		f := &fake{createErr: fmt.Errorf("gaol: create: %w", failed)}
		checkFailure(t, f.call(t, "", "run", "--isolation", "runc", "-e", "1"), "create: --isolation: no such program")
	}
}

func TestIsolationCompletion(t *testing.T) {
	for _, command := range []string{"run", "eval", "repl", "snippet run", "snippet check", "mcp", "serve"} {
		args := append(append([]string{"__complete"}, strings.Fields(command)...), "--isolation", "")
		if got := new(fake).call(t, "", args...); !strings.HasPrefix(got.stdout, "native\ngvisor\nmicrovm\nrunc\ncrun\noci=/\n") {
			t.Errorf("%s: %q", command, got.stdout)
		}
	}
}
