package runtime

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"gaol/runtime/internal/node"
	"gaol/vfs"
)

// Sizes of arguments and variables.
const (
	maxString  = 128 << 10 // MAX_ARG_STRLEN of execve(2), including the final NUL
	maxStrings = 768 << 10 // of all arguments, and of all variables: execve(2) allows 2 MiB for both with the usual stack
)

// baseEnv returns the variables that a run has unless the caller replaces them.
func baseEnv() map[string]string {
	return map[string]string{
		"PATH":   "/usr/local/bin:/usr/bin:/bin",
		"HOME":   string(vfs.Home),
		"USER":   "node",
		"LANG":   node.Lang,
		"TMPDIR": "/tmp",
	}
}

var errEnvName = errors.New("a variable's name has at least one character and no '=' or NUL")

// overlayEnv checks extra and adds it to env.
func overlayEnv(env, extra map[string]string) error {
	for name, value := range extra {
		switch {
		case name == "" || strings.ContainsAny(name, "=\x00"):
			return fmt.Errorf("%q: %w", name, errEnvName)
		case strings.ContainsRune(value, 0):
			return fmt.Errorf("%q: the value has a NUL", name)
		case len(name)+len(value)+2 > maxString:
			return fmt.Errorf("%q: longer than %d bytes", name, maxString)
		}
		env[name] = value
	}
	total := 0
	for name, value := range env {
		total += len(name) + len(value) + 2
	}
	if total > maxStrings {
		return fmt.Errorf("all variables together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}

// envList returns variables as execve takes them, in a stable order.
func envList(env map[string]string) []string {
	list := make([]string, 0, len(env))
	for name, value := range env {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func checkArgs(args []string) error {
	total := 0
	for _, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return optionError("Args", "%q has a NUL", arg)
		}
		if len(arg) >= maxString {
			return optionError("Args", "an argument has %d bytes, the limit is %d", len(arg), maxString-1)
		}
		total += len(arg) + 1
	}
	if total > maxStrings {
		return optionError("Args", "all together have %d bytes, the limit is %d", total, maxStrings)
	}
	return nil
}
